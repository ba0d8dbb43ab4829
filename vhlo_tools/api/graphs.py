"""Graphs of programs, written down for other tools to draw, or drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from vhlo_tools.api.aliases import aliased_artifact
from vhlo_tools.errors import InvalidInputError, LayoutError
from vhlo_tools.viewing import MOST_BOXES, dot_lines, mermaid_lines, picture_of, program_graph, svg_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vhlo_tools.program import ProgramSource
    from vhlo_tools.viewing import Picture

GraphLanguage = Literal["dot", "mermaid", "svg"]


def _svg(picture: Picture) -> Iterator[str]:
    # Imported here because the others do without.
    from vhlo_tools.viewing import layout_worker

    engine = layout_worker()
    if engine is None:
        raise LayoutError(
            "elkjs, which lays graphs out, is not in this checkout: fetch it with `python scripts/page_assets.py`, "
            "which needs npm; or write the graph as DOT or Mermaid"
        )
    return svg_lines(picture, engine.decode())


_WRITERS: Final = {"dot": dot_lines, "mermaid": mermaid_lines, "svg": _svg}

#: The languages that a graph can be written in.
GRAPH_LANGUAGES: Final = tuple(_WRITERS)


def draw_graph(
    program: ProgramSource,
    language: GraphLanguage = "svg",
    *,
    function: str | None = None,
    max_nodes: int | None = MOST_BOXES,
    name: str | None = None,
    provider: str | None = None,
) -> str:
    """Return the graph of a program as text in a language of graphs, or as a picture.

    Ops are folded by function, region, source line and position; what was introduced after the oldest version with
    guarantees is marked, with its version.

    Args:
        program: Anything that :func:`vhlo_tools.serialize` accepts; an artifact needs no MLIR.
        language: ``dot``, which Graphviz draws; ``mermaid``, a flowchart for Markdown; ``svg``, a picture, which needs
            the extra ``svg``.
        function: The name of the function to draw; by default all.
        max_nodes: The most nodes, arguments not counted: groups of ops are unfolded while there is room, outer ones
            first. ``None`` unfolds all.
        name: The name of the program in messages, by default its path.
        provider: The bindings to use if they are needed.

    Raises:
        InvalidInputError: If the language is not known, or the program has no such function.
        InvalidProgramError: If it is not a valid program.
        LayoutError: If the picture cannot be laid out.
        MalformedArtifactError: If it is a damaged artifact.
        MissingExtraError: If the extra is not installed.
        UnsupportedFeatureError: If it contains something that no artifact can represent.

    >>> import vhlo_tools as vt
    >>> vt.draw_graph("examples/saxpy.mlir", "mermaid").splitlines()[0]
    'flowchart TB'
    """
    write = _WRITERS.get(language)
    if write is None:
        raise InvalidInputError(f"{language!r} is not a language of graphs; expected one of {', '.join(_WRITERS)}")
    graph = program_graph(aliased_artifact(program, name=name, provider=provider))
    return "\n".join([*write(picture_of(graph, function=function, most=max_nodes)), ""])
