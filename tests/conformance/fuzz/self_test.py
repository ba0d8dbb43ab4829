"""A layer that does what must not be, so that tests see that the campaign notices it."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import vhlo_tools as vt
from fuzz.cases import Case, Layer, Seeds


def _refuse(_: Path) -> bool:
    return False


def _answer(_: Path) -> bool:
    return True


def _die(_: Path) -> bool:
    os.kill(os.getpid(), signal.SIGKILL)
    return True


def _hang(_: Path) -> bool:
    begun = time.process_time()
    while time.process_time() - begun < 60:
        pass
    return True


def _eat(_: Path) -> bool:
    return bool(bytearray(3 << 30))


def _write(folder: Path) -> bool:
    (folder.parents[2] / "outside").write_text("x")
    return True


def _leave(folder: Path) -> bool:
    (folder / "left").write_text("x")
    return True


def _raise(_: Path) -> bool:
    raise KeyError("x")


def _raise_typed(_: Path) -> bool:
    raise vt.InvalidProgramError("a case handles it itself")


def _say(_: Path) -> bool:
    sys.stdout.write("\x1b[31m\n")
    return True


def _trace(_: Path) -> bool:
    os.write(2, b"Traceback (most recent call last):\n")
    return True


#: By what they count as.
DEEDS: dict[str, tuple[Callable[[Path], bool], ...]] = {
    "answered": (_answer,),
    "refused": (_refuse,),
    "deaths": (_die,),
    "hangs": (_hang,),
    "memory": (_eat,),
    "files": (_write, _leave),
    "untyped": (_raise, _raise_typed),
    "output": (_say, _trace),
}
_ALL = [deed for deeds in DEEDS.values() for deed in deeds]


def _draw(chance: random.Random, seeds: Seeds) -> Case:
    deed = chance.choice(_ALL)
    return Case(deed.__name__.strip("_"), {"file": b"x"}, deed, is_command=True)


SELF_TEST = Layer("self-test", _draw, seconds=0.5)
