"""Text and tables for people: as wide as the window on a terminal, one row to a line for a program.

Text from files is never markup, and has no control characters.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal

from vhlo_tools.cli.echo import echo, has_colours
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from rich.console import Console

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
    width, held = window_width(), [(printable(label), printable(text)) for label, text in facts]
    if width is None:
        longest = max((len(label) for label, _ in held), default=0)
        echo("\n".join([printable(title), *(f"  {label.ljust(longest)}  {text}" for label, text in held)]))
        return
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = _console(width)
    console.print(Text(printable(title), style="bold"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in held:
        grid.add_row(Text(label), Text(text))
    console.print(Padding(grid, (0, 0, 0, 2)))


def show_table(columns: Sequence[Column], rows: Iterable[Sequence[str]], *, title: str = "", indent: int = 0) -> None:
    """Print a table: a row to a line for a program, and cells broken at the window on a terminal."""
    width, cells = window_width(), [[printable(cell) for cell in row] for row in rows]
    if width is None:
        lines = [title] if title else []
        lines += [f"{' ' * indent}{line}" for line in _plain(columns, cells)]
        echo("\n".join(lines))
        return
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = _console(width)
    if title:
        console.print(Text(printable(title), style="bold"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(
            Text(column.name), justify=column.align, style=column.style, no_wrap=column.whole, overflow="fold"
        )
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(Padding(table, (0, 0, 0, indent)))


def _plain(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> Iterable[str]:
    rows = [[column.name for column in columns], *cells]
    widths = [max(len(row[at]) for row in rows) for at in range(len(columns))]
    for row in rows:
        placed = zip(columns, row, widths, strict=True)
        yield "  ".join(
            cell.rjust(width) if column.align == "right" else cell.ljust(width) for column, cell, width in placed
        ).rstrip()


def _console(width: int) -> Console:
    from rich.console import Console

    return Console(width=width, highlight=False, markup=False, emoji=False, no_color=not has_colours())
