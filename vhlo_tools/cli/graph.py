"""``vhlo graph``: writes the graph of a program as DOT, Mermaid or SVG."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Final

import click

from vhlo_tools import api
from vhlo_tools.api import GraphLanguage
from vhlo_tools.cli import options
from vhlo_tools.cli.helping import command
from vhlo_tools.viewing import MOST_BOXES

_SUFFIXES: Final[dict[str, GraphLanguage]] = {
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".svg": "svg",
}


@command()
@options.input_argument("PROGRAM")
@options.output_option(required=False)
@click.option(
    "--emit",
    type=click.Choice(api.GRAPH_LANGUAGES),
    help="The language; by default that of the suffix of OUTPUT, such as .dot, .mmd or .svg, or else dot.",
)
@click.option("--function", metavar="NAME", help="Draw this function alone.")
@click.option(
    "--max-nodes",
    type=click.IntRange(min=0),
    default=MOST_BOXES,
    show_default=True,
    metavar="NUMBER",
    help="Unfold groups of ops while there are no more nodes; 0 unfolds all.",
)
@options.read_in_time_option
@options.provider_option
@options.force_option
def graph(source: str, output: str, emit: GraphLanguage | None, max_nodes: int, force: bool, **drawing: Any) -> None:
    """Write the graph of PROGRAM, in any accepted format, as DOT, Mermaid or SVG.

    Ops are folded by function, region and source line. SVG needs the extra "svg".
    """
    options.check_output(output, force=force, binary=False)
    language = emit or _SUFFIXES.get(PurePath(output).suffix.lower(), "dot")
    program, name = options.read_program(source)
    text = api.draw_graph(program, language, max_nodes=max_nodes or None, name=name, **drawing)
    options.write_output(output, [text.encode()], force=force, binary=False)
