"""How far the work on many files has come, on stderr: a bar on a terminal, and a line now and then in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

import click

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

__all__ = ["Progress", "shown_progress"]

# In a log, a line after so many seconds, or after this much of the work if that is not too soon.
_SECONDS: Final = 10.0
_SHARE: Final = 0.1
_SOON: Final = 2.0


class Progress(Protocol):
    """What shows how far the work has come."""

    def found(self, number: int) -> None:
        """Say how many files were found."""

    def begin(self, files: int, size: int) -> None:
        """Say how many there are to work on, and how many bytes they have."""

    def advance(self, size: int, *, ok: bool) -> None:
        """Say that one is done with."""


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Give what shows progress, until the work is done."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield _Log()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[problems]}"))
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        yield _Bar(bar)


class _Bar:
    def __init__(self, bar: RichProgress) -> None:
        self._bar = bar
        self._task = bar.add_task("looking for files", total=None, problems="")
        self._problems = 0

    def found(self, number: int) -> None:
        self._bar.update(self._task, completed=number)

    def begin(self, files: int, size: int) -> None:
        self._bar.reset(self._task, total=files, description="files")

    def advance(self, size: int, *, ok: bool) -> None:
        self._problems += not ok
        problems = f"{self._problems} with problems" if self._problems else ""
        self._bar.update(self._task, advance=1, problems=problems)


class _Log:
    def __init__(self) -> None:
        self._began = self._told = time.monotonic()
        self._files = self._done = self._problems = 0
        self._size = self._worked = 0
        self._share = 0.0

    def found(self, number: int) -> None:
        if time.monotonic() - self._told >= _SECONDS:
            self._tell(f"{number} files found")

    def begin(self, files: int, size: int) -> None:
        self._files, self._size = files, size
        self._began = time.monotonic()

    def advance(self, size: int, *, ok: bool) -> None:
        self._done += 1
        self._worked += size
        self._problems += not ok
        since = time.monotonic() - self._told
        share = self._done / max(self._files, 1)
        if self._done < self._files and (since >= _SECONDS or (since >= _SOON and share >= self._share + _SHARE)):
            self._share = share
            left = (time.monotonic() - self._began) * (self._size / max(self._worked, 1) - 1)
            problems = f", {self._problems} with problems" if self._problems else ""
            self._tell(f"{self._done} of {self._files} files ({share:.0%}){problems}, about {max(left, 0):.0f} s left")

    def _tell(self, line: str) -> None:
        click.echo(f"vhlo: {line}", err=True)
        self._told = time.monotonic()
