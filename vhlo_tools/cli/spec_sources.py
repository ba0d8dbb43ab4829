"""``vhlo spec import`` and ``vhlo spec probe``: comparison of a specification with other sources of VHLO."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from vhlo_tools.cli import options, spec_text
from vhlo_tools.cli.echo import echo
from vhlo_tools.cli.helping import command
from vhlo_tools.cli.specs_option import specs_option
from vhlo_tools.spec import Specification
from vhlo_tools.spec_tools import Plan, Survey, compare, draft, find_tablegen, survey_checkout, write_edits

_WRITE_HELP = (
    "Add what is missing and newer to the folder of the specification, and list what is left to do by hand. Nothing is "
    "written unless the result passes the lint."
)


@command("import")
@click.argument("checkout", metavar="PATH", type=click.Path(path_type=Path))
@click.option("--write", is_flag=True, help=_WRITE_HELP)
@click.option("--tblgen", metavar="PROGRAM", type=click.Path(path_type=Path), help="llvm-tblgen, by default on PATH.")
@click.option(
    "--mlir-include",
    "include",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The folder with mlir/IR/*.td, by default that of the LLVM of llvm-tblgen.",
)
@specs_option
@options.format_option
@click.pass_context
def import_checkout(
    context: click.Context,
    specs: Specification,
    checkout: Path,
    write: bool,
    tblgen: Path | None,
    include: Path | None,
    output_format: str,
) -> None:
    """Compare with PATH, a checkout of openxla/stablehlo or of a fork, and draft what is missing.

    The files of TableGen are read by llvm-tblgen (Debian: llvm-19, libmlir-19-dev), C++ by patterns. What these do not
    find is listed. Exits with 1 if anything differs or could not be read.
    """
    survey = survey_checkout(checkout, find_tablegen(tblgen, include))
    _report(context, specs, survey, write=write, output_format=output_format)


@command()
@click.option("--write", is_flag=True, help=_WRITE_HELP)
@options.provider_option
@specs_option
@options.format_option
@click.pass_context
def probe(context: click.Context, specs: Specification, provider: str | None, write: bool, output_format: str) -> None:
    """Compare with the installed library, and draft what is missing.

    The library is asked in a child process: which ops, types, attributes and enum cases it has, and which versions have
    them. Exits with 1 if anything differs or could not be asked.
    """
    # Imported here, as bindings are in every command: others need none.
    from vhlo_tools.spec_tools import survey_library

    _report(context, specs, survey_library(specs, provider), write=write, output_format=output_format)


def _report(context: click.Context, specs: Specification, survey: Survey, *, write: bool, output_format: str) -> None:
    comparison = compare(specs, survey)
    plan: Plan | None = None
    if write:
        plan = draft(specs, survey, comparison)
        write_edits(plan.edits)
    if output_format == "json":
        report = {
            "source": survey.source,
            "version": str(survey.version),
            "specification": str(specs.newest),
            "differences": [asdict(difference) for difference in comparison.differences],
            "newer": [{"kind": kind, "name": name} for kind, name in comparison.newer],
            "unread": [asdict(unread) for unread in survey.unread],
        }
        options.echo_json(report | ({"plan": spec_text.plan_as_json(plan, is_written=True)} if plan else {}))
    else:
        echo("\n".join(spec_text.comparison_lines(specs, survey, comparison)))
        if plan is not None:
            files = list(spec_text.plan_files(plan)) or ["nothing is missing that can be drafted"]
            echo("\n".join(["", *files, *(spec_text.remaining(plan) if plan.remaining else [])]))
    context.exit(1 if comparison.differences or survey.unread else 0)
