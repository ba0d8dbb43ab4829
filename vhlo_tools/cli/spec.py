"""``vhlo spec``: shows, compares, checks and extends the specification of the dialect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vhlo_tools.cli import options, spec_text
from vhlo_tools.cli.display import echo
from vhlo_tools.cli.helping import Group, command
from vhlo_tools.printable import printable
from vhlo_tools.spec import Specification, known_specification, load_specification
from vhlo_tools.spec_tools import (
    NewEntry,
    Plan,
    Survey,
    compare,
    describe,
    diff as changes_between,
    draft,
    find_tablegen,
    has_release,
    lint as violations_of,
    parse_attribute,
    parse_case,
    parse_kind,
    parse_op,
    plan_version,
    survey_checkout,
    write_edits,
    write_release,
)
from vhlo_tools.version import Version

# Option that names the folder of a specification, for the commands of ``vhlo spec``


def specs_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option, and pass the loaded specification to the command."""

    @click.option(
        "--specs",
        "folder",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="The folder with the specification, laid out as dialect_specs/; files may be missing. By default that of "
        "vhlo_tools.",
    )
    @wraps(function)
    def run(folder: Path | None, **arguments: Any) -> Any:
        return function(specs=load_specification(folder) if folder else known_specification(), **arguments)

    return run


# ``vhlo spec import`` and ``vhlo spec probe``: comparison of a specification with other sources of VHLO

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
def import_checkout(
    specs: Specification, checkout: Path, write: bool, tblgen: Path | None, include: Path | None, output_format: str
) -> int:
    """Compare with PATH, a checkout, and draft what is missing.

    It is of openxla/stablehlo, or of a fork. The files of TableGen are read by llvm-tblgen (Debian: llvm-19,
    libmlir-19-dev), C++ by patterns. What these do not find is listed. Exits with 1 if anything differs or could not be
    read.
    """
    survey = survey_checkout(checkout, find_tablegen(tblgen, include))
    return _report(specs, survey, write=write, output_format=output_format)


@command()
@click.option("--write", is_flag=True, help=_WRITE_HELP)
@options.provider_option
@specs_option
@options.format_option
def probe(specs: Specification, provider: str | None, write: bool, output_format: str) -> int:
    """Compare with the installed library, and draft what is missing.

    The library is asked in a child process: which ops, types, attributes and enum cases it has, and which versions have
    them. Exits with 1 if anything differs or could not be asked.
    """
    # Imported here, as bindings are in every command: others need none.
    from vhlo_tools.spec_tools import survey_library

    return _report(specs, survey_library(specs, provider), write=write, output_format=output_format)


def _report(specs: Specification, survey: Survey, *, write: bool, output_format: str) -> int:
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
    return 1 if comparison.differences or survey.unread else 0


_KINDS = ["op", "type", "attribute", "enum", "case", "constraint", "step", "feature", "encoding", "default", "version"]


if TYPE_CHECKING:
    _VersionType = click.ParamType[Version]
else:
    # Old releases of click have the class without the type of its values.
    _VersionType = click.ParamType


class _VersionParameter(_VersionType):
    name = "version"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Version:
        return Version(value)


@click.group(cls=Group)
def spec() -> None:
    """Show, compare, check and extend the specification of VHLO."""


spec.add_command(import_checkout)
spec.add_command(probe)


@spec.command("list")
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(_KINDS),
    multiple=True,
    metavar="KIND",
    help=f"Only entries of this kind: {', '.join(_KINDS)}. May be repeated.",
)
@specs_option
@options.format_option
def list_entries(specs: Specification, kinds: tuple[str, ...], output_format: str) -> None:
    """List every entry, with its first and its last version."""
    entries = [entry for entry in specs.entries() if not kinds or entry.kind in kinds]
    options.show(output_format, [asdict(entry) for entry in entries], spec_text.entry_lines(entries))


@spec.command()
@click.argument("name")
@specs_option
@options.format_option
def show(specs: Specification, name: str, output_format: str) -> None:
    """Show the history of NAME. It is an op, a type, an attribute, an enum, a feature, a default or a version."""
    descriptions = describe(specs, name)
    options.show(output_format, descriptions, ["\n\n".join(map(spec_text.description_text, descriptions))])


@spec.command()
@click.argument("start", type=_VersionParameter())
@click.argument("end", type=_VersionParameter())
@specs_option
@options.format_option
def diff(specs: Specification, start: Version, end: Version, output_format: str) -> None:
    """Show the changes from version START to END. END may be older."""
    changes = changes_between(specs, start, end)
    as_json = {"start": start, "end": end, "changes": [asdict(change) for change in changes]}
    options.show(output_format, as_json, spec_text.change_lines(specs, start, end, changes))


@spec.command()
@click.option(
    "--against",
    metavar="REV",
    help="The released specification, which must not be changed: a git revision of the folder, or another folder. By "
    "default the last release, in released.json.",
)
@click.option("--write-baseline", is_flag=True, help="If there are no violations, make this the last release.")
@specs_option
@options.format_option
def lint(specs: Specification, against: str | None, write_baseline: bool, output_format: str) -> int:
    """Check that the specification is consistent. No released entry may have changed."""
    violations = violations_of(specs, against)
    released = against is not None or has_release(specs)
    written = write_release(specs) if write_baseline and not violations else None
    if output_format == "json":
        options.echo_json({"ok": not violations, "violations": [asdict(violation) for violation in violations]})
    else:
        for violation in violations:
            echo(str(violation))
        echo(spec_text.verdict(specs, violations, released=released), err=True)
    if written:
        echo(f"vhlo: {spec_text.shown(written)} is now the last release", err=True)
    elif not released:
        echo("vhlo: warning: there is no released.json: the add-only rule was not checked", err=True)
    return 1 if violations else 0


@spec.command("new-version")
@click.argument("version", type=_VersionParameter())
@click.option("--op", "ops", metavar="FAMILY/NAME", multiple=True, help="A new op.")
@click.option(
    "--attribute", "attributes", metavar="OP.NAME=DEFAULT", multiple=True, help="An attribute that an op gains."
)
@click.option("--type", "types", metavar="NAME", multiple=True, help="A new type.")
@click.option("--attribute-kind", "kinds", metavar="NAME", multiple=True, help="A new attribute of the dialect.")
@click.option("--enum-case", "cases", metavar="ENUM.CASE", multiple=True, help="A new case of an enum, old or new.")
@click.option("--feature", metavar="ID", help="One feature for all of these. By default each is a feature of its own.")
@click.option("--bytecode", type=int, metavar="N", help="The MLIR bytecode version, by default unchanged.")
@click.option(
    "--brought", metavar="TEXT", help="A sentence on what the version adds. By default it names all of these."
)
@click.option(
    "--tests",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The folder of the tests: by default tests/spec beside the specification, otherwise tests in it.",
)
@click.option("--dry-run", is_flag=True, help="Print the changes as a diff, and write nothing.")
@specs_option
@options.format_option
def new_version(
    specs: Specification,
    version: Version,
    ops: tuple[str, ...],
    attributes: tuple[str, ...],
    types: tuple[str, ...],
    kinds: tuple[str, ...],
    cases: tuple[str, ...],
    dry_run: bool,
    output_format: str,
    **settings: Any,
) -> int:
    """Add VERSION and its changes, with tests that pass.

    Entries, steps, features and defaults are written. The newest version can be given again, with more changes, until
    it is in released.json. The remaining manual steps are printed, each with file and line.

    An op is 'FAMILY/NAME(lhs, rhs*) -> (result) {attribute, other} [region]', as far as known. DEFAULT is an id in
    defaults.toml, true, false, [], an integer, a text in quotes, or ENUM.CASE. A type or a kind of attribute is NAME,
    or 'NAME(field: kind, other: kind[])' with the fields of its encoding.
    """
    changes: list[NewEntry] = [
        *map(parse_op, ops),
        *map(parse_attribute, attributes),
        *(parse_kind("type", text) for text in types),
        *(parse_kind("attribute", text) for text in kinds),
        *map(parse_case, cases),
    ]
    violations = violations_of(specs)
    if violations:
        for violation in violations:
            echo(str(violation))
        echo("vhlo: the specification has violations and was not changed: fix the violations first", err=True)
        return 1
    plan = plan_version(specs, version, changes, **settings)
    if not dry_run:
        write_edits(plan.edits)
    if output_format == "json":
        options.echo_json(spec_text.plan_as_json(plan, is_written=not dry_run))
        return 0
    if dry_run:
        # A patch, whose lines begin as `patch` expects.
        click.echo("\n".join(map(printable, "\n".join(spec_text.plan_diffs(plan)).split("\n"))), nl=False)
    else:
        echo("\n".join(spec_text.plan_files(plan)))
    echo("\n".join(spec_text.remaining(plan)), err=dry_run)
    return 0
