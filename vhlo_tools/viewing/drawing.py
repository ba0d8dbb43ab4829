"""Drawings of graphs: DOT, Mermaid, and SVG with a layout by elkjs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from html import escape
from typing import Any, Final

from vhlo_tools.errors import LayoutError, MissingExtraError, installing
from vhlo_tools.viewing.picturing import Arrow, Box, Picture

# Picture of a graph in DOT, the language of Graphviz
#
# Source: «The DOT Language» and «clusterrank», «compound», «lhead» in the documentation of Graphviz.

_SHAPES: Final = {"op": "box", "argument": "ellipse", "folded": "box3d"}
_NEWER: Final = "#fdd49e"


def dot_lines(picture: Picture) -> Iterator[str]:
    yield "digraph program {"
    # Arrows begin and end at the borders of clusters.
    yield "  compound=true;"
    yield '  node [fontname="sans-serif", fontsize=10];'
    yield '  edge [fontname="sans-serif", fontsize=8, color="#555555"];'
    yield from _boxes(picture.root)
    anchors = {box.id: _anchor(box) for box in picture.root.walk()}
    for source, target, uses in picture.arrows:
        attributes = [f'label="{uses}"'] if uses > 1 else []
        # An arrow is between nodes; that it ends at the cluster around one is an attribute.
        attributes += [f"ltail=cluster_{source}"] if anchors[source] != source else []
        attributes += [f"lhead=cluster_{target}"] if anchors[target] != target else []
        said = f" [{', '.join(attributes)}]" if attributes else ""
        yield f"  {anchors[source]} -> {anchors[target]}{said};"
    yield "}"


def _boxes(root: Box) -> Iterator[str]:
    for depth, box, is_ended in root.brackets():
        indent = "  " * depth
        if is_ended:
            yield f"{indent}}}"
        elif box.kind == "unfolded":
            yield f"{indent}subgraph cluster_{box.id} {{"
            yield f"{indent}  label={_label(box)};"
            if not any(each.kind != "unfolded" for each in box.members):
                # What arrows to the cluster end at.
                yield f'{indent}  {box.id} [shape=point, style=invis, label=""];'
        else:
            newer = f', style=filled, fillcolor="{_NEWER}"' if box.is_newer else ""
            yield f"{indent}{box.id} [shape={_SHAPES[box.kind]}, label={_label(box)}{newer}];"


def _anchor(box: Box) -> str:
    """Return the node that stands for a box in arrows: of a cluster, the first in it."""
    if box.kind != "unfolded":
        return box.id
    return next((each.id for each in box.members if each.kind != "unfolded"), box.id)


def _label(box: Box) -> str:
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') for line in box.lines)
    return '"{}"'.format("\\n".join(escaped))


# Picture of a graph as a flowchart of Mermaid, which GitHub, GitLab and many editors show in Markdown
#
# Source: «Flowcharts - Basic Syntax» in the documentation of Mermaid.

#: What opens and closes a node, by the kind of its box: a rectangle, a stadium, a subroutine.
_BRACKETS: Final = {"op": ("[", "]"), "argument": ("([", "])"), "folded": ("[[", "]]")}
#: By their numbers, as entities: what would end a text in quotes, begin one of Markdown, or an entity.
_SPECIAL: Final = str.maketrans({char: f"#{ord(char)};" for char in '"#&<>`[]{}()|\\*_~:;$@'})


def mermaid_lines(picture: Picture) -> Iterator[str]:
    yield "flowchart TB"
    yield from _mermaid_boxes(picture.root)
    for source, target, uses in picture.arrows:
        yield f"  {source} -->{f'|{uses}|' if uses > 1 else ''} {target}"
    newer = [box.id for box in picture.root.walk() if box.is_newer and box.kind in ("op", "folded")]
    if newer:
        yield "  classDef newer fill:#fdd49e,stroke:#b35806,color:#000000"
        yield f"  class {','.join(newer)} newer"


def _mermaid_boxes(root: Box) -> Iterator[str]:
    for depth, box, is_ended in root.brackets():
        indent = "  " * depth
        if is_ended:
            yield f"{indent}end"
        elif box.kind == "unfolded":
            yield f"{indent}subgraph {box.id}[{_text(box)}]"
        else:
            opening, closing = _BRACKETS[box.kind]
            yield f"{indent}{box.id}{opening}{_text(box)}{closing}"


def _text(box: Box) -> str:
    return '"{}"'.format("<br/>".join(line.translate(_SPECIAL) for line in box.lines))


# Layout of a picture by the Eclipse Layout Kernel: elkjs, run by V8 in this process
#
# Input and output of elkjs are JSON. It has no access to files or to the network: V8 alone has neither.
# Source: the documentation of elkjs, and the options of «ELK Layered».

#: Of text of 10 pixels in a font of fixed width.
_CHARACTER: Final = 6.1
LINE_HEIGHT: Final = 13.0
_MARGIN: Final = 8.0
#: What a layout may take, in seconds: one of a thousand boxes takes one.
_SECONDS: Final = 300.0

_FEWER: Final = "draw a function of it, or fewer boxes"

_OPTIONS: Final = {
    "elk.algorithm": "layered",
    "elk.direction": "DOWN",
    "elk.hierarchyHandling": "INCLUDE_CHILDREN",
    "elk.json.shapeCoords": "ROOT",
    "elk.json.edgeCoords": "ROOT",
    "elk.spacing.nodeNode": "14",
    "elk.layered.spacing.nodeNodeBetweenLayers": "26",
}
# As a worker elkjs gets messages and posts answers; V8 alone has neither.
_AROUND: Final = """
var answers = {}, self = globalThis;
self.postMessage = (answer) => { answers[answer.id] = answer; };
"""
_RUN: Final = """
onmessage({data: {id: 0, cmd: "register", algorithms: ["layered"]}});
onmessage({data: {id: 1, cmd: "layout", graph: JSON.parse(GRAPH), layoutOptions: {}, options: {}}});
JSON.stringify(answers[1]);
"""


_AROUND_MEMBERS: Final = {
    "elk.nodeLabels.placement": "[H_LEFT, V_TOP, INSIDE]",
    "elk.nodeSize.constraints": "[NODE_LABELS]",
    "elk.padding": f"[top={_MARGIN},left={_MARGIN},bottom={_MARGIN},right={_MARGIN}]",
}


def elk_graph(picture: Picture) -> dict[str, Any]:
    """Return the input of elkjs: boxes with their sizes in pixels, and arrows."""
    edges = [
        {"id": f"arrow{number}", "sources": [arrow.source], "targets": [arrow.target]}
        for number, arrow in enumerate(picture.arrows)
    ]
    return {"id": "picture", "layoutOptions": _OPTIONS, "children": [_elk_box(picture.root)], "edges": edges}


def lay_out(picture: Picture, elkjs: str) -> Mapping[str, Any]:
    """Add ``x``, ``y`` and bends of arrows to :func:`elk_graph`; ``elkjs`` is the text of ``elk-worker.min.js``."""
    try:
        from py_mini_racer import JSEvalException, JSTimeoutException, MiniRacer
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"a picture of a graph needs mini-racer, which is not installed: {installing('svg')}; "
            "or write the graph as DOT or Mermaid, and let Graphviz or Mermaid draw it"
        ) from error
    graph = json.dumps(json.dumps(elk_graph(picture)))

    def run() -> str:
        with MiniRacer() as context:
            context.eval(_AROUND)
            context.eval(elkjs)
            return str(context.eval(_RUN.replace("GRAPH", graph), timeout_sec=_SECONDS))

    try:
        # In a thread of its own, for mini-racer waits in another way where an event loop runs, as in notebooks.
        with ThreadPoolExecutor(1) as thread:
            answer = json.loads(thread.submit(run).result())
    except JSTimeoutException as error:
        raise LayoutError(f"elkjs did not lay out the graph within {_SECONDS:g} seconds; {_FEWER}") from error
    except JSEvalException as error:
        raise LayoutError(f"elkjs failed on the graph: {error}; {_FEWER}") from error
    if "error" in answer:
        raise LayoutError(f"elkjs refused the graph: {answer['error'].get('message')}; {_FEWER}")
    placed: Mapping[str, Any] = answer["data"]
    return placed


def _elk_box(root: Box) -> dict[str, Any]:
    """Recursion is avoided, because regions may be deep."""
    made: dict[str, dict[str, Any]] = {}
    for box in reversed(list(root.walk())):
        width = _CHARACTER * max(map(len, box.lines)) + 2 * _MARGIN
        if box.kind == "unfolded":
            # The name stands above what is in it. As a label it makes room for itself; a smallest size is not heeded.
            made[box.id] = {
                "id": box.id,
                "layoutOptions": _AROUND_MEMBERS,
                "labels": [{"text": box.lines[0], "width": width, "height": LINE_HEIGHT * len(box.lines)}],
                "children": [made[each.id] for each in box.members],
            }
        else:
            made[box.id] = {"id": box.id, "width": width, "height": LINE_HEIGHT * len(box.lines) + _MARGIN}
    return made[root.id]


# Picture of a graph as SVG, in light and dark, with titles for screen readers

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
_PADDING: Final = 12.0
_INSIDE: Final = 8.0


def svg_lines(picture: Picture, elkjs: str) -> Iterator[str]:
    """``elkjs`` is the source text of ``elk-worker.min.js``, which lays out the picture."""
    placed = lay_out(picture, elkjs)
    width, height = (placed[side] + 2 * _PADDING for side in ("width", "height"))
    title = escape(", ".join(picture.root.lines))
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-_PADDING:g} {-_PADDING:g} {width:.0f} {height:.0f}" role="img" aria-labelledby="title">'
    )
    yield f'<title id="title">{title}</title>'
    yield f"<style>{_STYLE}</style>"
    yield (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path class="head" d="M0 0 8 4 0 8z"/></marker></defs>'
    )
    yield f'<rect class="ground" x="{-_PADDING:g}" y="{-_PADDING:g}" width="100%" height="100%"/>'
    places: dict[str, Mapping[str, Any]] = {}
    pending = list(placed["children"])
    while pending:
        each = pending.pop()
        places[each["id"]] = each
        pending += each.get("children", ())
    for box in picture.root.walk():
        yield from _box(box, places[box.id])
    for arrow, edge in zip(picture.arrows, placed.get("edges", ()), strict=True):
        yield from _arrow(arrow, edge)
    yield "</svg>"


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
        path = " ".join(f"{point['x']:.1f} {point['y']:.1f}" for point in points)
        yield f'<path class="arrow" marker-end="url(#head)" d="M{path}"/>'
        if arrow.uses > 1:
            last = points[-1]
            yield f'<text x="{last["x"] + 4:.1f}" y="{last["y"] - 8:.1f}">{arrow.uses}</text>'
