"""Picture of a graph in DOT, the language of Graphviz.

Source: «The DOT Language» and «clusterrank», «compound», «lhead» in the documentation of Graphviz.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vhlo_tools.graphs.picturing import Box, Picture

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
