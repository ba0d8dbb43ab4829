"""How time and memory grow with an artifact: every command on one, the bare library and ``cp``, each as a process.

``bench.py growth`` runs it. Artifacts have ten to a million ops, a kilobyte to four gigabytes of constants, or many ops
of another shape. Each command has its turn before any has the next. Memory is what the kernel says of a process.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import performance_page
from growth_commands import COMMANDS, LARGEST_FOR_LIBRARY, MANY_OPS, NEW, OPS, OPS_OF_SHAPES, SIZES, Command, turns_of
from measurements import LINEAR, MEGABYTE, Point, describe_machine, exponent, record
from rich.console import Console
from rich.table import Table
from shapes import OF_AIMS, SHAPES, chain_of_ops, constants
from support.large_artifacts import write_artifact_of_constants
from support.processes import Run, run_measured
from turns import RAW, median

#: The number of constants of an artifact that is large for them.
_CONSTANTS: Final = 16
#: Programs that some commands need beside that of an artifact of ops.
_OTHER_PROGRAMS: Final[dict[str, Callable[[int], str]]] = {
    "changed": partial(chain_of_ops, changed=True),
    "moving": SHAPES["ops that move"],
}
#: Files beside an artifact of constants are at most so many times as large: a copy, or what it is made of.
_ROOM: Final = 2.2


@dataclass(slots=True)
class Subject:
    """An artifact, with what commands need beside it."""

    family: str  # what else is alike: ``ops``, ``constants`` or the name of a shape
    size: int  # the number of ops, or the bytes of the constants
    folder: Path  # where its files are, and no other
    kept: set[Path] = field(default_factory=set)  # the files that stay from command to command

    def file(self, name: str) -> Path:
        """Return a file by the name that commands have for it; it is made if it is not there, and stays if it is."""
        path = self.folder / name
        if name == "to" or path in self.kept:
            return path
        if name == "artifact" and self.family == "constants":
            write_artifact_of_constants(path, self.size, _CONSTANTS, NEW)
        elif name in ("artifact", *_OTHER_PROGRAMS):
            text = self.file("text" if name == "artifact" else f"{name} text")
            subprocess.run([*RAW, "serialize", str(text), str(path), NEW], check=True)
        elif name == "copy":
            shutil.copyfile(self.file("artifact"), path)
        elif self.family == "constants":
            path.write_text(constants(self.size, _CONSTANTS))
        elif self.family == "ops":
            path.write_text(_OTHER_PROGRAMS.get(name.removesuffix(" text"), chain_of_ops)(self.size))
        else:
            path.write_text({**SHAPES, **OF_AIMS}[self.family](self.size))
        self.kept.add(path)
        return path

    def arguments(self, parts: Sequence[str]) -> list[str]:
        """Return arguments with files in place of their names."""
        return [self._argument(each) if each.startswith("{") else each for each in parts]

    def _argument(self, part: str) -> str:
        name, _, rest = part[1:].partition("}")
        return f"{self.file(name)}{rest}"

    def tidy(self, *names: str) -> None:
        """Delete what a command has written, and some of the files that were made for it."""
        self.kept -= {self.folder / name for name in names}
        for path in self.folder.iterdir():
            if path in self.kept:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def measure(subject: Subject, turns: int) -> list[Point]:
    """Run the commands that suit an artifact, by turns, and return the medians of each."""
    suiting = [each for each in COMMANDS if each.suits(subject.family, subject.size)]
    runs: dict[str, list[Run]] = {each.name: [] for each in suiting}
    for _ in range(turns):
        for command in suiting:
            runs[command.name].append(_run(subject, command))
    return [
        Point(
            subject.family,
            subject.size,
            name,
            median(own, "seconds"),
            median(own, "cpu"),
            int(median(own, "peak")),
            turns,
        )
        for name, own in runs.items()
    ]


def _run(subject: Subject, command: Command) -> Run:
    try:
        if command.before:
            run_measured(subject.arguments(command.before))
        return run_measured(subject.arguments(command.arguments), codes=command.codes)
    except subprocess.CalledProcessError as error:
        said = f"{error}\n{error.stderr or ''}"
        raise SystemExit(f"bench growth: {command.name} of {subject.family}, {subject.size}: {said}") from error
    finally:
        # A copy of what is large takes room that others need.
        subject.tidy(*(["copy"] if subject.family == "constants" else []))


def subjects(folder: Path, *, quick: bool) -> Iterator[Subject]:
    """Yield the artifacts, one at a time; each is deleted when the next is asked for.

    Args:
        folder: An empty folder.
        quick: Whether to leave out what takes minutes.
    """
    sizes = [
        *(("ops", size) for size in OPS if not quick or size < MANY_OPS),
        *(("constants", size) for size in SIZES if not quick or size <= LARGEST_FOR_LIBRARY),
        *((name, size // 4 if quick and size > OPS[0] else size) for name in SHAPES for size in OPS_OF_SHAPES),
    ]
    for number, (family, size) in enumerate(sizes):
        if family == "constants" and size * _ROOM > shutil.disk_usage(folder).free:
            print(f"left out: {size:,} bytes of constants, for which the disk has no room", file=sys.stderr)
            continue
        own = folder / str(number)
        own.mkdir()
        yield Subject(family, size, own)
        shutil.rmtree(own)


def run(*, quick: bool, keep: bool) -> None:
    """Measure, and print tables.

    Args:
        quick: Whether to leave out what takes minutes: a million ops, gigabytes of constants, and repetitions.
        keep: Whether to keep what was measured, and to write the page on performance and its pictures anew.
    """
    machine, started, points = describe_machine(), time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        warm = Path(folder, "warm")
        warm.mkdir()
        measure(Subject("ops", OPS[0], warm), 1)
        measure(Subject("constants", SIZES[0], warm), 1)
        shutil.rmtree(warm)
        for subject in subjects(Path(folder), quick=quick):
            points += measure(subject, turns_of(subject.family, subject.size, quick=quick))
            taken = time.monotonic() - started
            print(f"{taken:4.0f} s: {subject.family}, {subject.size:,}", file=sys.stderr, flush=True)
    _print(points)
    if keep:
        record("growth", machine, points, quick=quick)
        performance_page.write()


def _print(points: Sequence[Point]) -> None:
    console = Console(width=160)
    for family in dict.fromkeys(each.family for each in points):
        own = [each for each in points if each.family == family]
        sizes = sorted({each.size for each in own})
        table = Table(title=f"{family}: s / MB", title_justify="left", box=None, pad_edge=False)
        table.add_column("command", no_wrap=True)
        for title in (*(f"{size:,}" for size in sizes), "time ~ size^", "memory ~ size^"):
            table.add_column(title, justify="right")
        for name in dict.fromkeys(each.command for each in own):
            row = {each.size: each for each in own if each.command == name}
            cells = [f"{row[s].seconds:.2f} / {row[s].peak / MEGABYTE:.0f}" if s in row else "" for s in sizes]
            powers = (exponent(list(row.values()), "cpu"), exponent(list(row.values()), "peak"))
            table.add_row(name, *cells, *("-" if each is None else _marked(each) for each in powers))
        console.print(table, "")
    console.print(
        "Medians, whole processes. The exponents are of processor time and memory over the last decade of sizes, "
        f"beyond the smallest artifact; - where that is too little to tell. Above {LINEAR} is marked with !"
    )


def _marked(power: float) -> str:
    return f"{power:.2f}{' !' if power > LINEAR else ''}"
