"""Picture of a graph as a flowchart of Mermaid, which GitHub, GitLab and many editors show in Markdown.

Source: «Flowcharts - Basic Syntax» in the documentation of Mermaid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vhlo_tools.graphs.picturing import Box, Picture

#: What opens and closes a node, by the kind of its box: a rectangle, a stadium, a subroutine.
_SHAPES: Final = {"op": ("[", "]"), "argument": ("([", "])"), "folded": ("[[", "]]")}
#: By their numbers, as entities: what would end a text in quotes, begin one of Markdown, or an entity.
_SPECIAL: Final = str.maketrans({char: f"#{ord(char)};" for char in '"#&<>`[]{}()|\\*_~:;$@'})


def mermaid_lines(picture: Picture) -> Iterator[str]:
    yield "flowchart TB"
    yield from _boxes(picture.root)
    for source, target, uses in picture.arrows:
        yield f"  {source} -->{f'|{uses}|' if uses > 1 else ''} {target}"
    newer = [box.id for box in picture.root.walk() if box.is_newer and box.kind in ("op", "folded")]
    if newer:
        yield "  classDef newer fill:#fdd49e,stroke:#b35806,color:#000000"
        yield f"  class {','.join(newer)} newer"


def _boxes(root: Box) -> Iterator[str]:
    for depth, box, is_ended in root.brackets():
        indent = "  " * depth
        if is_ended:
            yield f"{indent}end"
        elif box.kind == "unfolded":
            yield f"{indent}subgraph {box.id}[{_text(box)}]"
        else:
            opening, closing = _SHAPES[box.kind]
            yield f"{indent}{box.id}{opening}{_text(box)}{closing}"


def _text(box: Box) -> str:
    return '"{}"'.format("<br/>".join(line.translate(_SPECIAL) for line in box.lines))
