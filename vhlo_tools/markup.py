"""Results as HTML, for notebooks: tables and lists of facts, in which everything from a file is text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Final

from vhlo_tools.printable import printable

#: The rows that a notebook shows; a program may have a hundred thousand findings.
_MOST: Final = 200
# Colours and fonts are those of the notebook, in light and dark.
_CELL: Final = ' style="text-align: left; vertical-align: top"'


def facts(title: str, rows: Iterable[tuple[str, object]]) -> str:
    lines = (f"<tr><th scope=row{_CELL}>{_text(label)}</th><td{_CELL}>{_text(said)}</td></tr>" for label, said in rows)
    return f"<table>{_caption(title)}{''.join(lines)}</table>"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Only the first of very many rows are shown; a cell of ``None`` is empty."""
    remaining = iter(rows)
    shown = "".join(
        f"<tr>{''.join(f'<td{_CELL}>{_text(cell)}</td>' for cell in row)}</tr>" for row in islice(remaining, _MOST)
    )
    if more := sum(1 for _ in remaining):
        shown += f"<tr><td colspan={len(columns)}{_CELL}>and {more:,} more</td></tr>"
    heads = "".join(f"<th scope=col{_CELL}>{_text(name)}</th>" for name in columns)
    return f"<table>{_caption(title)}<thead><tr>{heads}</tr></thead><tbody>{shown}</tbody></table>"


def _caption(title: str) -> str:
    return f'<caption style="text-align: left; font-weight: bold">{_text(title)}</caption>'


def _text(value: object) -> str:
    return "" if value is None else escape(printable(str(value)))
