"""What XLA says to programs, each on a client of its own: run as a script, so that no caller's process is harmed.

Reads a list of MLIR texts as JSON from stdin and writes a list of answers as JSON: the message of the conversion to HLO
that failed, or of the compilation, or nothing. After a refused compilation jaxlib may crash the process later, so each
process that was refused something ends there, and the next program is given to a new one, forked before any client.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

_TIMEOUT: Final = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """What XLA says to a program."""

    #: ``conversion`` or ``compilation`` where it was refused, ``compiled``, or ``died`` with the process
    stage: Literal["conversion", "compilation", "compiled", "died"]
    message: str = ""  # why

    @property
    def refused(self) -> bool:
        """Whether XLA refused it."""
        return self.stage in ("conversion", "compilation")


def ask_xla(programs: Sequence[str]) -> list[Answer]:
    done = subprocess.run(
        [sys.executable, Path(__file__)],
        input=json.dumps(list(programs)),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=True,
    )
    return [Answer(*each) for each in json.loads(done.stdout)]


def _answers(programs: Sequence[str]) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(programs):
        found = _forked(programs[at:])
        yield from found
        at += len(found)


def _forked(programs: Sequence[str]) -> list[tuple[str, str]]:
    """Return the answers that a new process gave before it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writing, "w") as pipe:
            _tell(programs, pipe)
        # Without destructors, which is where processes die that were refused something.
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        lines = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    found = [(stage, message) for stage, message in map(json.loads, lines)]
    return found if status == 0 else [*found, ("died", f"status {status}")]


def _tell(programs: Sequence[str], pipe: Any) -> None:
    from jaxlib import xla_client

    client = xla_client.make_cpu_client()
    devices = xla_client.DeviceList((client.local_devices()[0],))
    for program in programs:
        answer = _asked(program, client, devices)
        print(json.dumps(answer), file=pipe, flush=True)
        if answer[0] != "compiled":
            return


def _asked(program: str, client: Any, devices: Any) -> tuple[str, str]:
    from jaxlib import _jax, xla_client

    try:
        _jax.mlir.mlir_module_to_xla_computation(program, use_tuple_args=False, return_tuple=False)
    except Exception as error:
        return "conversion", str(error)
    try:
        client.compile_and_load(program, devices, xla_client.CompileOptions())
    except Exception as error:
        return "compilation", str(error)
    return "compiled", ""


if __name__ == "__main__":
    # Before any process is forked, so that each has them at once.
    import jaxlib.xla_client  # noqa: F401

    json.dump(list(_answers(json.load(sys.stdin))), sys.stdout)
