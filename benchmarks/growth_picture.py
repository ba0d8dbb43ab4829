"""Growth as a picture: panels of lines over size, both axes logarithmic, each line named where it ends.

The SVG is written here, not drawn by a library: it is small, has no background, is the same bytes for the same
measurements with any installation, and text and lines are of colours that are read on white and on black.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

__all__ = ["Line", "Panel", "draw"]

#: At least 3.6 : 1 to white and to the dark pages of GitHub; neighbours differ for people with any colour vision.
_COLOURS: Final = ("#0072b2", "#d55e00", "#00896a", "#b5569b", "#a6761d", "#6674d8", "#d6456b")
_INK: Final = "#767676"
#: Pixels: of a panel's axes, of what stands around them, and of a line of text.
_WIDTH, _HEIGHT = 300, 260
_LEFT, _TOP, _RIGHT, _BOTTOM = 46, 30, 124, 42
_TEXT: Final = 13
#: Pixels that the name of a size takes.
_NAME: Final = 34
#: So many powers of ten are few.
_FEW: Final = 2.5


@dataclass(frozen=True, slots=True)
class Line:
    """A line.

    Attributes:
        name: What stands at its end.
        points: Sizes and values, all positive, by size.
        compared: Whether it is something that the others are compared with; drawn dashed, without a colour.
    """

    name: str
    points: Sequence[tuple[float, float]]
    compared: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines with axes of their own.

    Attributes:
        title: What stands above it.
        lines: The lines.
    """

    title: str
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Logarithms to pixels."""

    low: float
    high: float
    pixels: float
    upwards: bool

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.pixels * (1 - share if self.upwards else share)


def draw(panels: Sequence[Panel], *, what: str, sizes: Sequence[tuple[float, str]], of: str) -> str:
    """Return a picture as SVG, of panels that share their axes.

    Args:
        panels: From left to right.
        what: What the values are, with their unit.
        sizes: The sizes that are marked, each with its name.
        of: What the sizes are.
    """
    values = [value for panel in panels for line in panel.lines for _, value in line.points]
    across = _Scale(math.log10(sizes[0][0]), math.log10(sizes[-1][0]), _WIDTH, upwards=False)
    up = _Scale(math.log10(min(values)) - 0.05, math.log10(max(values)) + 0.05, _HEIGHT, upwards=True)
    width, height = len(panels) * (_LEFT + _WIDTH + _RIGHT), _TOP + _HEIGHT + _BOTTOM
    label = escape(f"{what} over {of}")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="11" fill="{_INK}" role="img" aria-label="{label}">'
    )
    parts = [head, f'<clipPath id="axes"><path d="M0 0H{_WIDTH}V{_HEIGHT}H0Z"/></clipPath>']
    for number, panel in enumerate(panels):
        left = number * (_LEFT + _WIDTH + _RIGHT) + _LEFT
        parts.append(f'<g transform="translate({left} {_TOP})">')
        parts += _axes(panel.title, across, up, what=what, sizes=sizes, of=of)
        parts += _lines(panel.lines, across, up)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>\n"])


def _axes(
    title: str, across: _Scale, up: _Scale, *, what: str, sizes: Sequence[tuple[float, str]], of: str
) -> Iterator[str]:
    yield f'<text y="-16" font-weight="bold">{escape(title)}</text>'
    yield f'<text y="-3">{escape(what)}</text>'
    for value in _marks(up.low, up.high):
        y = up.at(value)
        yield f'<path d="M0 {y:.1f}H{_WIDTH}" stroke="{_INK}" stroke-opacity=".3"/>'
        yield f'<text x="-5" y="{y + 4:.1f}" text-anchor="end">{value:,g}</text>'
    nexts = [*(across.at(size) for size, _ in sizes[1:]), math.inf]
    for (size, name), after in zip(sizes, nexts, strict=True):
        x = across.at(size)
        yield f'<path d="M{x:.1f} {_HEIGHT}v4" stroke="{_INK}"/>'
        # A name that would run into the next one is left out.
        if after - x > _NAME:
            yield f'<text x="{x:.1f}" y="{_HEIGHT + 16}" text-anchor="middle">{escape(name)}</text>'
    yield f'<text x="{_WIDTH / 2}" y="{_HEIGHT + 32}" text-anchor="middle">{escape(of)}</text>'
    yield f'<path d="M0 {_HEIGHT}H{_WIDTH}" stroke="{_INK}"/>'
    # What is as steep as this grows as the size does.
    end = _HEIGHT * (across.high - across.low) / (up.high - up.low)
    guide = f'd="M0 {end:.1f}L{_WIDTH} 0" stroke="{_INK}" stroke-opacity=".5" stroke-dasharray="1 4"'
    yield f'<path clip-path="url(#axes)" {guide}/>'


def _marks(low: float, high: float) -> list[float]:
    """Return values to be marked between two logarithms: powers of ten, and some between them where these are few."""
    steps = (1, 2, 5) if high - low < _FEW else (1,)
    values = [step * 10.0**power for power in range(math.floor(low), math.ceil(high)) for step in steps]
    return [each for each in values if low <= math.log10(each) <= high]


def _lines(lines: Sequence[Line], across: _Scale, up: _Scale) -> Iterator[str]:
    colours = iter(_COLOURS * len(lines))
    ends = []
    for line in lines:
        colour = _INK if line.compared else next(colours)
        dashes = ' stroke-dasharray="5 3"' if line.compared else ""
        places = [(across.at(size), up.at(value)) for size, value in line.points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="{colour}"/>' for x, y in places)
        ends.append((places[-1], colour, line.name))
    # Names stand in one column, in the order of the ends, and each as near to its own as those above it let it.
    ends.sort(key=lambda end: end[0][1])
    for ((x, y), colour, name), place in zip(ends, _spread([end[0][1] for end in ends]), strict=True):
        yield (
            f'<path d="M{x + 4:.1f} {y:.1f}L{_WIDTH + 12} {place:.1f}" stroke="{colour}" stroke-opacity=".5" '
            'stroke-width=".8"/>'
        )
        yield f'<text x="{_WIDTH + 15}" y="{place + 4:.1f}" fill="{colour}">{escape(name)}</text>'


def _spread(wanted: Sequence[float]) -> list[float]:
    """Return places as near as can be to those that are wanted, at least a line of text apart, within the panel.

    Args:
        wanted: From the top down.
    """
    # Without the lines of text above each, places only have to be in order: neighbours that are not get their mean.
    groups: list[list[float]] = []
    for index, each in enumerate(wanted):
        groups.append([each - index * _TEXT])
        while len(groups) > 1 and _mean(groups[-2]) > _mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    room = max(0.0, _HEIGHT - (len(wanted) - 1) * _TEXT)
    places = [min(max(_mean(group), 0.0), room) for group in groups for _ in group]
    return [place + index * _TEXT for index, place in enumerate(places)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
