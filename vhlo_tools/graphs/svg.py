"""Picture of a graph as SVG, in light and dark, with titles for screen readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from vhlo_tools.graphs.layout import LINE_HEIGHT, lay_out
from vhlo_tools.graphs.picturing import Arrow, Box, Picture

#: Letters of a fixed width, which the sizes of boxes rest on; colours of both schemes with a contrast above 4.5.
_STYLE: Final = """\
text { font: 10px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1c1e21; }
.name { font-weight: 600; }
.box { fill: #ffffff; stroke: #8a9099; }
.argument { fill: #eef2f7; stroke-dasharray: 3 2; }
.folded { fill: #e8eaee; stroke-width: 2; }
.unfolded { fill: #5a6b8510; stroke: #b4bac4; }
.newer { fill: #ffe8c7; stroke: #b35806; }
.arrow { fill: none; stroke: #7b828c; }
.head { fill: #7b828c; stroke: none; }
.ground { fill: #ffffff; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e8eb; }
  .box { fill: #24282e; stroke: #78808b; }
  .argument { fill: #1d2733; }
  .folded { fill: #31363d; }
  .unfolded { fill: #8fa3c010; stroke: #4d545e; }
  .newer { fill: #573a10; stroke: #f0a04b; }
  .arrow { stroke: #9aa1ab; }
  .head { fill: #9aa1ab; }
  .ground { fill: #16191d; }
}"""
_MARGIN: Final = 12.0
_INSIDE: Final = 8.0


def svg_lines(picture: Picture, elkjs: str) -> Iterator[str]:
    """``elkjs`` is the source text of ``elk-worker.min.js``, which lays out the picture."""
    placed = lay_out(picture, elkjs)
    width, height = (placed[side] + 2 * _MARGIN for side in ("width", "height"))
    title = escape(", ".join(picture.root.lines))
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-_MARGIN:g} {-_MARGIN:g} {width:.0f} {height:.0f}" role="img" aria-labelledby="title">'
    )
    yield f'<title id="title">{title}</title>'
    yield f"<style>{_STYLE}</style>"
    yield (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path class="head" d="M0 0 8 4 0 8z"/></marker></defs>'
    )
    yield f'<rect class="ground" x="{-_MARGIN:g}" y="{-_MARGIN:g}" width="100%" height="100%"/>'
    places = {each["id"]: each for each in _boxes_in(placed)}
    for box in picture.root.walk():
        yield from _box(box, places[box.id])
    for arrow, edge in zip(picture.arrows, placed.get("edges", ()), strict=True):
        yield from _arrow(arrow, edge)
    yield "</svg>"


def _boxes_in(placed: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    pending = list(placed["children"])
    while pending:
        each = pending.pop()
        yield each
        pending += each.get("children", ())


def _box(box: Box, place: Mapping[str, Any]) -> Iterator[str]:
    x, y, width, height = (place[key] for key in ("x", "y", "width", "height"))
    classes = f"box {box.kind}{' newer' if box.is_newer and box.kind != 'unfolded' else ''}"
    yield f'<g id="{box.id}"><title>{escape(", ".join(box.lines))}</title>'
    yield f'<rect class="{classes}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4"/>'
    for number, line in enumerate(box.lines):
        style = ' class="name"' if number == 0 else ""
        yield f'<text{style} x="{x + _INSIDE:.1f}" y="{y + LINE_HEIGHT * (number + 1):.1f}">{escape(line)}</text>'
    yield "</g>"


def _arrow(arrow: Arrow, edge: Mapping[str, Any]) -> Iterator[str]:
    for section in edge.get("sections", ()):
        points = [section["startPoint"], *section.get("bendPoints", ()), section["endPoint"]]
        yield f'<path class="arrow" marker-end="url(#head)" d="M{_path(points)}"/>'
        if arrow.uses > 1:
            last = points[-1]
            yield f'<text x="{last["x"] + 4:.1f}" y="{last["y"] - 8:.1f}">{arrow.uses}</text>'


def _path(points: Sequence[Mapping[str, float]]) -> str:
    return " ".join(f"{point['x']:.1f} {point['y']:.1f}" for point in points)
