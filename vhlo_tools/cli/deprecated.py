"""Old names of commands, for one version more: what ``vhlo_tools.cli.helping.OLD_NAMES`` lists."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Final, Literal

import click

from vhlo_tools import api
from vhlo_tools.artifact import JaxContainer, Making
from vhlo_tools.cli import options
from vhlo_tools.cli.check import aliased_artifact, lost_aliases
from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import OLD_NAMES, Command, say_old, words_of
from vhlo_tools.cli.manifest import check_ as manifest_check
from vhlo_tools.cli.report import SUFFIXES, function_option, max_nodes_option, results_in, write_graph
from vhlo_tools.findings import finding_as_json
from vhlo_tools.gate import finding_lines


class _Old(Command):
    """A command that says what to call in its place."""

    def invoke(self, ctx: click.Context) -> Any:
        words = words_of(ctx)
        say_old(words, OLD_NAMES[words])
        return super().invoke(ctx)


def old_command(words: str) -> click.Command:
    found = _COMMANDS[words]
    # No help lists it.
    found.hidden = True
    return found


@click.command(cls=_Old)
@options.input_argument("PROGRAM")
@options.output_option(required=False)
@click.option(
    "--emit",
    type=click.Choice(api.GRAPH_LANGUAGES),
    help="The language; by default that of the suffix of OUTPUT, such as .dot, .mmd or .svg, or else dot.",
)
@function_option
@max_nodes_option
@options.provider_option
@options.force_option
def _graph(source: str, output: str, emit: str | None, force: bool, **drawing: Any) -> None:
    """Write the graph of PROGRAM, in any accepted format, as DOT, Mermaid or SVG."""
    options.check_output(output, force=force, binary=False)
    language = emit or SUFFIXES.get(PurePath(output).suffix.lower(), "dot")
    write_graph(source, output, language if language in api.GRAPH_LANGUAGES else "dot", force=force, **drawing)


@click.command(cls=_Old)
@options.input_argument("ARTIFACT")
@options.output_option(required=True)
@options.manifest_option
@options.force_option
@options.reporting
def _strip(source: str, output: str, with_manifest: bool, force: bool) -> dict[str, Any]:
    """Remove the source locations of ARTIFACT; this edits the bytes, and supports any version and size."""
    options.check_output(output, force=force, binary=True)
    options.check_manifest_output(output, with_manifest, force=force)
    opened = options.read_artifact(source)
    result = opened.stripped() if isinstance(opened, JaxContainer) else opened.without_locations()
    options.write_artifact(
        output, result, force=force, with_manifest=with_manifest, made=Making("strip"), source=opened.chunks
    )
    return options.artifact_report(result, output)


@click.command(cls=_Old)
@click.argument("results", metavar="RESULTS")
@options.format_option
def _store_report(results: str, output_format: Literal["text", "json"]) -> None:
    """Summarize RESULTS, a Parquet file that `vhlo migrate`, `store status` or `verify` wrote, or a folder of them."""
    for line in results_in(results, output_format):
        echo(line)


@click.command(cls=_Old)
@options.input_argument("PROGRAM")
@click.option(
    "--against",
    metavar="OTHER",
    help="Also report which aliases and donors of this program are lost or changed, in any form.",
)
@options.provider_option
@options.format_option
def _alias_lint(source: str, against: str | None, provider: str | None, output_format: str) -> int:
    """Report errors in the aliases of PROGRAM, which XLA refuses, and warnings about probable mistakes."""
    if source == against == options.STANDARD:
        raise click.UsageError("only one of the programs can come from stdin")
    artifact = aliased_artifact(source, provider)
    found = artifact.alias_findings()
    compared = [] if against is None else lost_aliases(artifact, aliased_artifact(against, provider))
    wrong = bool(compared) or any(each.level == "error" for each in found)
    found += compared
    if output_format == "json":
        file = {"path": artifact.name, "ok": not wrong, "findings": list(map(finding_as_json, found))}
        options.echo_json({"files": [file]})
    else:
        question = "XLA" if against is None else f"XLA, compared with {against}"
        for line in finding_lines(artifact.name, question, found):
            echo(line)
    return int(wrong)


_manifest_verify: Final = _Old(
    "verify", params=manifest_check.params, callback=manifest_check.callback, help=manifest_check.help
)

_COMMANDS: Final[dict[str, click.Command]] = {
    "alias lint": _alias_lint,
    "graph": _graph,
    "manifest verify": _manifest_verify,
    "store report": _store_report,
    "strip": _strip,
}
