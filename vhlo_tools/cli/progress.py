"""Progress of work on many files, on stderr: a bar on a terminal, and occasional lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from vhlo_tools.cli.echo import echo

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

# In a log, a line is printed after _SECONDS, or after _SHARE of the work if some seconds have passed, by default _SOON.
_SECONDS: Final = 10.0
_SHARE: Final = 0.1
_SOON: Final = 2.0


class Progress(Protocol):
    def expect(self, files: int, size: int, *, more: bool = False) -> None:
        """Set the number of files to process and their size in bytes; with ``more``, of those found so far."""

    def advance(self, size: int, *, ok: bool) -> None:
        """Count one finished file."""


@contextmanager
def shown_progress(*, bar: bool = True, soon: float = _SOON) -> Iterator[Progress]:
    """Yield a display of progress. ``bar`` is false while the command prints to the terminal.

    ``soon`` is the number of seconds before a first line in a log.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield _Log(soon)
        return
    if not bar:
        yield _Silence()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bar, TextColumn, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[problems]}"))
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as shown:
        yield _Bar(shown)


class _Silence:
    def expect(self, files: int, size: int, *, more: bool = False) -> None: ...

    def advance(self, size: int, *, ok: bool) -> None: ...


class _Bar:
    def __init__(self, bar: RichProgress) -> None:
        self._bar = bar
        self._task = bar.add_task("looking for files", total=None, problems="")
        self._problems = 0

    def expect(self, files: int, size: int, *, more: bool = False) -> None:
        self._bar.update(self._task, total=files, description="files found so far" if more else "files")

    def advance(self, size: int, *, ok: bool) -> None:
        self._problems += not ok
        problems = f"{self._problems} with problems" if self._problems else ""
        self._bar.update(self._task, advance=1, problems=problems)


class _Log:
    def __init__(self, soon: float) -> None:
        self._soon = soon
        self._began = self._told = time.monotonic()
        self._files = self._done = self._problems = 0
        self._size = self._worked = 0
        self._share = 0.0
        self._more = False

    def expect(self, files: int, size: int, *, more: bool = False) -> None:
        self._files, self._size, self._more = files, size, more

    def advance(self, size: int, *, ok: bool) -> None:
        self._done += 1
        self._worked += size
        self._problems += not ok
        since = time.monotonic() - self._told
        share = self._done / max(self._files, 1)
        if self._done < self._files and (since >= _SECONDS or (since >= self._soon and share >= self._share + _SHARE)):
            self._share = share
            left = (time.monotonic() - self._began) * (self._size / max(self._worked, 1) - 1)
            problems = f", {self._problems} with problems" if self._problems else ""
            if self._more:
                self._tell(f"{self._done} files{problems}, {self._files} found so far")
            else:
                parts = f"{self._done} of {self._files} files ({share:.0%}){problems}"
                self._tell(f"{parts}, about {max(left, 0):.0f} s left")

    def _tell(self, line: str) -> None:
        echo(f"vhlo: {line}", err=True)
        self._told = time.monotonic()
