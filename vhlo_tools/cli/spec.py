"""``vhlo spec``: shows, compares, checks and extends the specification of the dialect."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vhlo_tools.cli import options, spec_text
from vhlo_tools.cli.echo import echo
from vhlo_tools.cli.helping import Group
from vhlo_tools.cli.spec_sources import import_checkout, probe
from vhlo_tools.cli.specs_option import specs_option
from vhlo_tools.spec import Specification
from vhlo_tools.spec_tools import (
    NewEntry,
    describe,
    diff as changes_between,
    has_release,
    lint as violations_of,
    parse_attribute,
    parse_case,
    parse_kind,
    parse_op,
    plan_version,
    write_edits,
    write_release,
)
from vhlo_tools.version import Version

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
    """List every entry with its kind, its name, and the first and last version that has it."""
    entries = [entry for entry in specs.entries() if not kinds or entry.kind in kinds]
    if output_format == "json":
        options.echo_json([asdict(entry) for entry in entries])
    else:
        echo("\n".join(spec_text.entry_lines(entries)))


@spec.command()
@click.argument("name")
@specs_option
@options.format_option
def show(specs: Specification, name: str, output_format: str) -> None:
    """Show the version history of NAME: an op, a type, an attribute, an enum, a feature, a default or a version."""
    descriptions = describe(specs, name)
    if output_format == "json":
        options.echo_json(descriptions)
    else:
        echo("\n\n".join(map(spec_text.description_text, descriptions)))


@spec.command()
@click.argument("start", type=_VersionParameter())
@click.argument("end", type=_VersionParameter())
@specs_option
@options.format_option
def diff(specs: Specification, start: Version, end: Version, output_format: str) -> None:
    """Show the changes from version START to version END, which may be older than START."""
    changes = changes_between(specs, start, end)
    if output_format == "json":
        options.echo_json({"start": start, "end": end, "changes": [asdict(change) for change in changes]})
    else:
        echo("\n".join(spec_text.change_lines(specs, start, end, changes)))


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
@click.pass_context
def lint(
    context: click.Context, specs: Specification, against: str | None, write_baseline: bool, output_format: str
) -> None:
    """Check that no released entry has changed, and that the specification is consistent."""
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
    context.exit(1 if violations else 0)


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
@click.pass_context
def new_version(
    context: click.Context,
    /,
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
) -> None:
    r"""Add VERSION and its changes: entries, steps, features, defaults, and tests that pass.

    The newest version can be given again, with more changes, until it is in released.json. The remaining manual steps
    are printed, each with file and line.

    \b
    --op 'FAMILY/NAME(lhs, rhs*) -> (result) {attribute, other} [region]', as far as known
    --attribute OP.NAME=DEFAULT, where DEFAULT is an id in defaults.toml, true, false, [], an integer,
                a text in quotes, or ENUM.CASE
    --type, --attribute-kind NAME, or 'NAME(field: kind, other: kind[])' with the fields of its encoding
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
        context.exit(1)
    plan = plan_version(specs, version, changes, **settings)
    if not dry_run:
        write_edits(plan.edits)
    if output_format == "json":
        options.echo_json(spec_text.plan_as_json(plan, is_written=not dry_run))
        return
    if dry_run:
        echo("\n".join(spec_text.plan_diffs(plan)), nl=False)
    else:
        echo("\n".join(spec_text.plan_files(plan)))
    echo("\n".join(spec_text.remaining(plan)), err=dry_run)
