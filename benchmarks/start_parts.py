"""What the start of a command consists of: the modules that are imported, by what they belong to, and what then runs.

``bench.py start`` prints it. Each figure is the least of several runs, as others on the machine only add to it. Python
says itself how long each import takes (``-X importtime``); what runs is the rest of the process.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_IMPORT: Final = re.compile(r"import time:\s+(\d+) \|\s+\d+ \| +(\S+)")
_OURS: Final = "vhlo_tools"
#: ``importlib.import_module``, by which rooms import what is asked of them, in a form that Python times as it does
#: ``import``.
_TIMED: Final = (
    "import importlib, sys; importlib.import_module = lambda name: (__import__(name), sys.modules[name])[1]; "
)
#: What is imported without us: of these a command cannot start with less.
_BEFORE: Final = {"Python": "pass", "click": "import click"}
#: Why the others are there.
WHY: Final[Mapping[str, str]] = {
    "Python": "the interpreter, and `site`",
    "click": "the command line, and what it takes of the standard library",
    "standard library": "`pathlib` with `urllib` and `ipaddress`, and what else it takes",
    "cli": "the options of the command, its help, its completion",
    "artifact": "what is asked of a file",
    "bytecode": "the reader of the file",
    "files": "what may be a file, and what kind it is",
    "spec": "the tables of VHLO, converted and checked",
    "compat": "which version has what",
    "aliasing": "aliases and donors",
    "gate": "settings, levels, the report",
    "api": "the function of Python behind the command",
    "stores": "the door of a room that the gate asks for later",
    "leaves": "errors, versions, text; the doors of rooms",
    "runs": "start and end of the interpreter; methods that are compiled on first use, tables and the file, printing",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the start of a command."""

    command: str
    part: str  # a key of `WHY`
    modules: int
    milliseconds: float


def parts_of(name: str, command: Sequence[str], runs: int) -> list[Part]:
    """Return the parts of the start of a command of Python, in the order of their cost.

    Args:
        name: What the command is called.
        command: An interpreter and its arguments.
        runs: How often it runs.
    """
    before: dict[str, str] = {}
    for part, code in reversed(_BEFORE.items()):
        before |= dict.fromkeys(_imports([sys.executable, "-c", code], 1), part)
    found = _imports(command, runs)
    times: defaultdict[str, list[float]] = defaultdict(list)
    for module, taken in found.items():
        times[before.get(module) or _room(module)].append(taken)
    whole = min(_seconds(command) for _ in range(runs)) * 1e3
    parts = [Part(name, part, len(own), round(sum(own), 1)) for part, own in times.items()]
    parts.append(Part(name, "runs", 0, round(max(whole - sum(found.values()), 0.0), 1)))
    return sorted(parts, key=lambda each: -each.milliseconds)


def _room(module: str) -> str:
    top, _, rest = module.partition(".")
    if top != _OURS:
        return "standard library"
    return rest.partition(".")[0] if "." in rest else "leaves"


def _imports(command: Sequence[str], runs: int) -> dict[str, float]:
    """Return milliseconds by module."""
    at = command.index("-c") + 1
    timed = [command[0], "-X", "importtime", *command[1:at], f"{_TIMED}{command[at]}", *command[at + 1 :]]
    least: dict[str, float] = {}
    for _ in range(runs):
        done = subprocess.run(
            timed,
            env=_environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        for module, taken in _told(done.stderr):
            least[module] = min(taken, least.get(module, taken))
    return least


def _told(printed: str) -> Iterator[tuple[str, float]]:
    for found in _IMPORT.finditer(printed):
        yield found[2], int(found[1]) / 1e3


def _seconds(command: Sequence[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, env=_environment(), stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def _environment() -> dict[str, str]:
    return {**os.environ, "VHLO_TOOLS_CACHE": os.devnull}
