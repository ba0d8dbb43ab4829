"""Tables of a page that a script makes of what was measured: each stands after a comment that names it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any


def rows_of(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of Markdown."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def with_tables(page: str, tables: Mapping[str, Callable[[Any], str]], measured: Any) -> str:
    """Return a page with its tables made anew.

    Args:
        page: The page, in which ``<!-- table: NAME -->`` stands above each table.
        tables: What makes the table of a name.
        measured: What it is made of.
    """

    def table(found: re.Match[str]) -> str:
        return f"<!-- table: {found[1]} -->\n{tables[found[1]](measured)}\n"

    return re.sub(r"<!-- table: ([a-z ]+) -->\n(?:\|.*\n)*", table, page)
