"""Drawings of lives on a time line of versions, as SVG within a page: which version has what, from when to when.

They take their colours from the page (``assets/site.css``), so that they are light and dark as it is, and say in
words what they show; the page has the same in a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from vhlo_tools.version import Version

__all__ = ["Life", "Row", "drawing"]

#: In units of the drawing, which are pixels where there is room: a version, a row, the names before and what is above.
COLUMN: Final = 15
ROW: Final = 24
BAR: Final = 16
CHARACTER: Final = 7.3
HEAD: Final = 30


@dataclass(frozen=True, slots=True)
class Life:
    """The versions of StableHLO that have something.

    Attributes:
        label: What is written into the bar, such as ``v2``.
        first: The first version.
        last: The last version; ``None`` while it is current.
        style: The class of the bar in the stylesheet.
    """

    label: str
    first: Version
    last: Version | None
    style: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the drawing: a name and its lives."""

    name: str
    lives: tuple[Life, ...]

    def __str__(self) -> str:
        """Return it in words."""
        spans = (f"{life.label} {life.first} to {life.last or 'current'}" for life in self.lives)
        return f"{self.name}: {', '.join(spans)}"


def drawing(title: str, rows: Sequence[Row], versions: Sequence[Version]) -> str:
    """Return the lives of rows as a figure of HTML on one line, as Markdown keeps it.

    Args:
        title: What is drawn, for those who do not see it.
        rows: What is drawn, from above.
        versions: All versions, oldest first; each has a column, whatever time lies between two.
    """
    margin = round(max(len(row.name) for row in rows) * CHARACTER) + 12
    width, height = margin + COLUMN * len(versions) + 4, HEAD + ROW * len(rows) + 4
    mark = f"lives-{''.join(each if each.isalnum() else '-' for each in title.lower())}"
    return "".join(
        [
            '<figure class="lives" markdown="0">',
            f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-labelledby="{mark} {mark}-text">',
            f'<title id="{mark}">{escape(title)}</title>',
            f'<desc id="{mark}-text">{escape("; ".join(map(str, rows)))}</desc>',
            *_scale(versions, margin, height),
            *(part for number, row in enumerate(rows) for part in _row(row, HEAD + ROW * number, versions, margin)),
            "</svg></figure>",
        ]
    )


def _scale(versions: Sequence[Version], margin: int, height: int) -> Iterator[str]:
    """Yield a line down from each version, and the names of the first one and of every fifth."""
    named = {column for column, version in enumerate(versions) if column == 0 or version.minor % 5 == 0}
    for column, version in enumerate(versions):
        x, is_named = margin + COLUMN * column, column in named
        yield f'<line class="{"major" if is_named else "minor"}" x1="{x}" y1="{HEAD - 6}" x2="{x}" y2="{height}"/>'
        if is_named:
            # Two names have no room beside each other.
            y = HEAD - (19 if column + 1 in named else 9)
            yield f'<text class="version" x="{x}" y="{y}">{version.major}.{version.minor}</text>'


def _row(row: Row, top: int, versions: Sequence[Version], margin: int) -> Iterator[str]:
    yield f'<text class="name" x="{margin - 6}" y="{top + 15}" text-anchor="end">{escape(row.name)}</text>'
    for life in row.lives:
        columns = [
            column
            for column, version in enumerate(versions)
            if life.first.minor_release <= version and (life.last is None or version <= life.last)
        ]
        if not columns:
            continue
        x, width = margin + COLUMN * columns[0], COLUMN * len(columns)
        # What is current goes on to the right.
        yield f'<rect class="{life.style}" x="{x + 1}" y="{top + 3}" width="{width - 2}" height="{BAR}" rx="3"/>'
        yield f'<text class="label" x="{x + 5}" y="{top + 15}">{escape(life.label)}</text>'
