"""``vhlo report``: writes a page or a picture of a program, of two programs side by side, of a store, or of results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import click

from vhlo_tools import api
from vhlo_tools.api import GraphLanguage
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import OptionDecorator, command
from vhlo_tools.cli.reports import encoded, readable_size
from vhlo_tools.printable import json_record, json_text, printable
from vhlo_tools.stores import summarize_results
from vhlo_tools.viewing import MOST_BOXES

if TYPE_CHECKING:
    from vhlo_tools.stores import ResultsSummary

_Format = Literal["html", "dot", "mermaid", "svg", "text", "json"]
_PAGE: Final = ("html",)
_GRAPH: Final = api.GRAPH_LANGUAGES
_RESULTS: Final = ("text", "json")

#: Other suffixes are those of pages.
SUFFIXES: Final[dict[str, _Format]] = {
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".svg": "svg",
    ".txt": "text",
    ".json": "json",
}
#: The formats that a parameter is for; others are for all.
_FORMATS_OF: Final = {
    "other": _PAGE,
    "target": _PAGE,
    "as_of": _PAGE,
    "compile_for": _PAGE,
    "trusted": _PAGE,
    "provider": (*_PAGE, *_GRAPH),
    "function": _GRAPH,
    "max_nodes": _GRAPH,
}

function_option: OptionDecorator = click.option(
    "--function", metavar="NAME", help="Of a graph: draw this function alone."
)
max_nodes_option: OptionDecorator = click.option(
    "--max-nodes",
    type=click.IntRange(min=0),
    default=MOST_BOXES,
    show_default=True,
    metavar="NUMBER",
    help="Of a graph: unfold groups of ops while there are no more nodes; 0 unfolds all.",
)


@command()
@options.input_argument("PROGRAM|STORE|RESULTS")
@click.argument("other", metavar="[OTHER]", required=False)
@click.option("-o", "--output", help="The file to write, or a URL; - is stdout.")
@click.option(
    "--output-format",
    "--format",
    type=click.Choice([*_PAGE, *_GRAPH, *_RESULTS]),
    help="By default what the suffix of OUTPUT says: .svg, .dot, .gv, .mmd, .mermaid, .txt, .json, or else html.",
)
@click.option(
    "--target",
    metavar="TARGET",
    help="The consumer that findings are about: a version (1.9.0), a release (jaxlib==0.4.31), a window (12w).",
)
@click.option(
    "--for",
    "compile_for",
    multiple=True,
    metavar="RELEASE",
    help="Show what its compiler makes of PROGRAM: libtpu==0.0.52@v5e. May be given several times.",
)
@options.as_of_option
@options.read_in_time_option
@function_option
@max_nodes_option
@options.provider_option
@options.trusted_option
@options.force_option
def report(
    source: str,
    other: str | None,
    output: str | None,
    output_format: _Format | None,
    function: str | None,
    max_nodes: int,
    force: bool,
    **showing: Any,
) -> None:
    """Write a page or a picture to look at.

    A page is one HTML file, which asks nothing of the network. Of PROGRAM, in any format: what each version brought in,
    which releases read it, what blocks others; its graph, constants, inputs, outputs, aliases and findings. With OTHER,
    how the two differ. Of STORE, a folder: who reads its files, when they leave their windows, what blocks most. Of
    RESULTS, Parquet of `migrate`, `store status` or `verify`: files by status, version, feature and reason, as text and
    json too. A picture is the graph of PROGRAM as svg (extra "svg"), or for Graphviz or Mermaid.
    """
    if output is None and output_format is None:
        raise click.UsageError("give -o FILE, such as -o page.html or -o graph.svg, or --output-format for stdout")
    output = options.STANDARD if output is None else output
    output_format = output_format or SUFFIXES.get(PurePath(output).suffix.lower(), "html")
    for name, formats in _FORMATS_OF.items():
        if output_format not in formats and (given := options.given(name)):
            raise click.UsageError(f"{given} is for --output-format {' or '.join(formats)}: found {output_format}")
    options.check_output(output, force=force, binary=False)
    if output_format in _RESULTS:
        lines = results_in(source, output_format)
        options.write_output(output, encoded(lines), force=force, binary=False)
    elif output_format in _GRAPH:
        write_graph(source, output, output_format, function, max_nodes, showing["provider"], force=force)
    else:
        _write_page(source, other, output, force=force, **showing)


def _write_page(source: str, other: str | None, output: str, *, force: bool, **showing: Any) -> None:
    if other is None:
        program, name = options.read_program(source)
        page = api.report(program, name=name, say=lambda line: echo(f"vhlo: {line}", err=True), **showing)
    else:
        (program, name), (compared, other_name) = options.read_programs(source, other)
        page = api.report(program, compared, name=name, other_name=other_name, **showing)
    if not page.has_picture:
        echo(
            "vhlo: warning: the page has no picture of the graph: elkjs, which lays it out, is not installed; "
            "scripts/page_assets.py fetches it with npm",
            err=True,
        )
    options.write_output(output, [memoryview(bytes(page))], force=force, binary=False)


def write_graph(
    source: str,
    output: str,
    language: str,
    function: str | None,
    max_nodes: int,
    provider: str | None,
    *,
    force: bool,
) -> None:
    program, name = options.read_program(source)
    drawing: Any = {"function": function, "max_nodes": max_nodes or None, "provider": provider}
    try:
        text = api.draw_graph(program, cast(GraphLanguage, language), name=name, **drawing)
    except IsADirectoryError:
        raise click.UsageError(
            f"{source} is a folder: a graph is of one program, and -o page.html of a store"
        ) from None
    options.write_output(output, [text.encode()], force=force, binary=False)


def results_in(source: str, output_format: Literal["text", "json"]) -> Iterator[str]:
    """Summarize results that a command wrote as Parquet."""
    summary = summarize_results(source)
    return (
        iter([json_text(json_record(summary.as_json()), indent=2)])
        if output_format == "json"
        else results_lines(summary)
    )


# The text about results

#: So many features, versions and reasons are shown; JSON has more.
_SHOWN: Final = 10


def results_lines(summary: ResultsSummary) -> Iterator[str]:
    total = summary.files.counts.total()
    size = readable_size(summary.sizes.counts.total())
    said = "".join(f", {name} {printable(value)}" for name, value in sorted(summary.said.items()))
    yield f"{total} {'file' if total == 1 else 'files'}, {size} ({summary.table}{said})"
    for status, number in summary.files.ranked():
        yield f"  {printable(status or '-'):<10} {number:>12} {readable_size(summary.sizes.counts[status]):>10}"
    if summary.new_size:
        yield f"  the results have {readable_size(summary.new_size)}"
    yield from _section("versions", ((number, text or "none") for text, number in summary.versions.ranked()))
    yield from _section(
        "features found, by files",
        ((each.files, f"{name} ({each.count} times)") for name, each in summary.ranked_features()),
    )
    yield from _section("reasons", ((number, text or "-") for text, number in summary.reasons.ranked()))
    if summary.reasons.others:
        yield f"  {summary.reasons.others:>12} for others, rarer ones"
    if (median := summary.seconds.median) is not None:
        yield f"seconds: {summary.seconds.total:.1f} in all, {median:.2g} in the median; the slowest files"
        for seconds, path in summary.seconds.slowest:
            yield f"  {seconds:>12.3g} {printable(path)}"


def _section(title: str, counts: Iterable[tuple[int, str]]) -> Iterator[str]:
    rest = iter(counts)
    shown = list(islice(rest, _SHOWN))
    if not shown:
        return
    yield title
    for number, text in shown:
        yield f"  {number:>12} {printable(text)}"
    if more := sum(1 for _ in rest):
        yield f"  {'':>12} and {more} more: --output-format json"
