"""Output: lines that control no terminal, tables, and progress."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final, Literal

import click

from vhlo_tools.printable import printable, printable_lines
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress

# Output of text that can control neither the terminal nor a CI runner, whatever a file contains


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print lines as :func:`vhlo_tools.printable.printable_lines` returns them."""
    click.echo(printable_lines(str(text)), err=err, nl=nl)


def has_colours() -> bool:
    """Whether stdout shows colours: a terminal does, unless ``NO_COLOR`` is set; ``FORCE_COLOR`` forces them.

    Source: the conventions at no-color.org and force-color.org.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


# Text and tables for people: as wide as the window on a terminal, one row to a line for a program
#
# Text from files is never markup, and has no control characters.

#: Below it, every line would hold a word or two.
_NARROWEST: Final = 40


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    align: Literal["left", "right"] = "left"
    style: str = ""  # on a terminal, in words of rich
    whole: bool = False  # whether a cell is never broken; others are where a row does not fit the window


def window_width() -> int | None:
    """Return the columns of the terminal; ``None`` if stdout is none, so that nothing has to fit."""
    if not sys.stdout.isatty():
        return None
    # Imported here, because a program that reads the output needs no window.
    from shutil import get_terminal_size

    return max(get_terminal_size().columns, _NARROWEST)


def show_facts(title: str, facts: Iterable[tuple[str, str]]) -> None:
    """Print a title and labelled texts, wrapped at the window."""
    width, held = window_width(), [(_cell(label), _cell(text)) for label, text in facts]
    if width is None:
        longest = max((len(label) for label, _ in held), default=0)
        echo("\n".join([_cell(title), *(f"  {label.ljust(longest)}  {text}" for label, text in held)]))
        return
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = _console(width)
    console.print(Text(_cell(title), style="bold"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in held:
        grid.add_row(Text(label), Text(text))
    console.print(Padding(grid, (0, 0, 0, 2)))


def show_table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    indent: int = 0,
    width: int | None = None,
) -> None:
    """Print a table: cells are broken at the window on a terminal; elsewhere at ``width``, or a row is a line."""
    window, cells = window_width(), [[_cell(cell) for cell in row] for row in rows]
    if window is None:
        lines = [title] if title else []
        lines += [f"{' ' * indent}{line}" for line in plain_rows(columns, cells, width)]
        echo("\n".join(lines))
        return
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = _console(window)
    if title:
        console.print(Text(_cell(title), style="bold"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(
            Text(column.name), justify=column.align, style=column.style, no_wrap=column.whole, overflow="fold"
        )
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(Padding(table, (0, 0, 0, indent)))


def plain_rows(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int | None = None) -> Iterable[str]:
    rows = [[column.name for column in columns], *cells]
    widths = [max(len(row[at]) for row in rows) for at in range(len(columns))]
    if width is None:
        broken: Iterable[Iterable[Sequence[str]]] = ([row] for row in rows)
    else:
        # Imported here because most tables are not broken.
        from textwrap import wrap

        left = width - 2 * (len(columns) - 1) - sum(widths[at] for at, each in enumerate(columns) if each.whole)
        narrow = sorted((at for at, each in enumerate(columns) if not each.whole), key=widths.__getitem__)
        for number, at in enumerate(narrow):
            widths[at] = min(widths[at], left // (len(narrow) - number))
            left -= widths[at]
        pieces = ([wrap(*each, break_on_hyphens=False) for each in zip(row, widths, strict=True)] for row in rows)
        broken = (zip_longest(*each, fillvalue="") for each in pieces)
    for line in chain.from_iterable(broken):
        placed = zip(columns, line, widths, strict=True)
        yield "  ".join(
            cell.rjust(most) if column.align == "right" else cell.ljust(most) for column, cell, most in placed
        ).rstrip()


def _cell(text: str) -> str:
    """One line, which may begin one of the output."""
    return printable_lines(printable(text))


def _console(width: int) -> Console:
    from rich.console import Console

    return Console(width=width, highlight=False, markup=False, emoji=False, no_color=not has_colours())


# Progress of work on many files, on stderr: a bar on a terminal, and occasional lines in a log

# In a log, a line is printed after _SECONDS, or after _SHARE of the work if some seconds have passed, by default _SOON.
_SECONDS: Final = 10.0
_SHARE: Final = 0.1
_SOON: Final = 2.0


class Progress:
    """Shows nothing."""

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
        yield Progress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bar, TextColumn, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[problems]}"))
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as shown:
        yield _Bar(shown)


class _Bar(Progress):
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


class _Log(Progress):
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
