"""Generated pages, and the Markdown that they are made of."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["UNSEARCHED", "Page", "cell", "code", "codes", "fence", "slug", "table"]

#: The head of a page that the search leaves out.
UNSEARCHED: Final = "---\nsearch:\n  exclude: true\n---\n"


@dataclass(frozen=True, slots=True)
class Page:
    """A page that is generated.

    Attributes:
        uri: Where it stands, as a path from the folder of pages: ``reference/commands/check.md``.
        text: Its Markdown.
    """

    uri: str
    text: str


def cell(text: str) -> str:
    """Return text for a cell of a table: on one line, and with no bar outside of code that would end it."""
    parts = re.split(r"(`[^`]*`)", re.sub(r"\s+", " ", text).strip())
    return "".join(part if part.startswith("`") else part.replace("|", "&#124;") for part in parts)


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, with an empty one after it."""
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    yield from (f"| {' | '.join(map(cell, row))} |" for row in rows)
    yield ""


def code(text: str) -> str:
    """Return text as code within a line. Markup between ``<`` and ``>`` is shown as it is."""
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{ticks} {text} {ticks}" if len(ticks) > 1 else f"`{text}`"


def codes(texts: Iterable[object], nothing: str = "") -> str:
    """Return several texts as code, divided by commas; ``nothing`` if there is none."""
    return ", ".join(code(str(text)) for text in texts) or nothing


def fence(language: str, text: str) -> str:
    """Return text as a block of code, whatever marks of blocks it has itself."""
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}\n"


def slug(text: str) -> str:
    """Return the anchor of a heading that is the text, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", html.unescape(text).lower()).replace(" ", "-")
