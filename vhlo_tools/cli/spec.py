"""``vhlo spec``: the specification of the dialect, shown, compared, checked and extended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from vhlo_tools.cli import options, spec_text
from vhlo_tools.dialect.description import describe
from vhlo_tools.dialect.diff import diff as changes_between
from vhlo_tools.dialect.lint import has_release, write_release
from vhlo_tools.dialect.lint import lint as violations_of
from vhlo_tools.dialect.scaffold import NewAttribute, edits_for, write_edits
from vhlo_tools.dialect.specification import Specification, known_specification, load_specification
from vhlo_tools.version import Version

__all__ = ["spec"]

_F = TypeVar("_F", bound=Callable[..., Any])

_KINDS = ["op", "type", "attribute", "enum", "case", "constraint", "step", "feature", "encoding", "default", "version"]


class _VersionParameter(click.ParamType[Version]):
    name = "version"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Version:
        return Version(value)


def specs_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option for the folder, and give the command what that says."""

    @click.option(
        "--specs",
        "folder",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="The folder with the specification, laid out as dialect_specs/; files may be missing. By default ours.",
    )
    @wraps(function)
    def run(folder: Path | None, **arguments: Any) -> Any:
        return function(specs=load_specification(folder) if folder else known_specification(), **arguments)

    return run


@click.group()
def spec() -> None:
    """Show, compare, check and extend the specification of VHLO."""


@spec.command("list")
@click.option(
    "--kind", "kinds", type=click.Choice(_KINDS), multiple=True, help="Only entries of this kind; repeatable."
)
@specs_option
@options.format_option
def list_entries(specs: Specification, kinds: tuple[str, ...], output_format: str) -> None:
    """List every entry with its kind, its name, and the first and last version that has it."""
    entries = [entry for entry in specs.entries() if not kinds or entry.kind in kinds]
    if output_format == "json":
        options.echo_json([asdict(entry) for entry in entries])
    else:
        click.echo("\n".join(spec_text.entry_lines(entries)))


@spec.command()
@click.argument("name")
@specs_option
@options.format_option
def show(specs: Specification, name: str, output_format: str) -> None:
    """Show the life of NAME: an op, a type, an attribute, an enum, a feature, a default or a version."""
    descriptions = describe(specs, name)
    if output_format == "json":
        options.echo_json(descriptions)
    else:
        click.echo("\n\n".join(map(spec_text.description_text, descriptions)))


@spec.command()
@click.argument("start", type=_VersionParameter())
@click.argument("end", type=_VersionParameter())
@specs_option
@options.format_option
def diff(specs: Specification, start: Version, end: Version, output_format: str) -> None:
    """Show what changes from version START to version END; END may be the older one."""
    changes = changes_between(specs, start, end)
    if output_format == "json":
        options.echo_json({"start": start, "end": end, "changes": [asdict(change) for change in changes]})
    else:
        click.echo("\n".join(spec_text.change_lines(specs, start, end, changes)))


@spec.command()
@click.option(
    "--against",
    metavar="REV",
    help="What nothing may be changed of: a git revision of the folder, or another folder. By default its last "
    "release, which is in released.json.",
)
@click.option("--write-baseline", is_flag=True, help="If nothing is wrong, make this the last release.")
@specs_option
@options.format_option
@click.pass_context
def lint(
    context: click.Context, specs: Specification, against: str | None, write_baseline: bool, output_format: str
) -> None:
    """Check that nothing released has changed, and that everything fits together."""
    violations = violations_of(specs, against)
    released = against is not None or has_release(specs)
    written = write_release(specs) if write_baseline and not violations else None
    if output_format == "json":
        options.echo_json({"ok": not violations, "violations": [asdict(violation) for violation in violations]})
    else:
        for violation in violations:
            click.echo(str(violation))
        click.echo(spec_text.verdict(specs, violations, released=released), err=True)
    if written:
        click.echo(f"vhlo: {written} is now the last release", err=True)
    elif not released:
        click.echo("vhlo: warning: there is no released.json: the add-only rule was not checked", err=True)
    context.exit(1 if violations else 0)


@spec.command("new-version")
@click.option("--version", "version", type=_VersionParameter(), required=True, help="The version to add.")
@click.option("--op", metavar="NAME", help="The op that has a new version in it.")
@click.option("--attribute", metavar="NAME", help="The attribute that the op gains.")
@click.option(
    "--default", metavar="ID", help="The value of the attribute that older versions mean: an id in defaults.toml."
)
@click.option("--bytecode", type=int, metavar="N", help="The MLIR bytecode version of it, by default as before.")
@click.option("--brought", metavar="TEXT", help="What it brings, in a sentence.")
@click.option(
    "--tests",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the tests go: by default tests/dialect beside the specification, or else tests in it.",
)
@click.option("--dry-run", is_flag=True, help="Print what would change, and write nothing.")
@specs_option
@click.pass_context
def new_version(
    context: click.Context,
    specs: Specification,
    version: Version,
    op: str | None,
    attribute: str | None,
    default: str | None,
    bytecode: int | None,
    brought: str | None,
    tests: Path | None,
    dry_run: bool,
) -> None:
    """Add a version, and to an op in it an attribute: entries, step, feature, and a positive and a negative test."""
    given = (op, attribute, default)
    if any(given) and not all(given):
        raise click.UsageError("--op, --attribute and --default go together")
    change = NewAttribute(op, attribute, default) if op and attribute and default else None
    violations = violations_of(specs)
    if violations:
        for violation in violations:
            click.echo(str(violation))
        click.echo("vhlo: the specification has violations, and stays as it is: mend these first", err=True)
        context.exit(1)
    edits = edits_for(specs, version, change, tests=tests, bytecode=bytecode, brought=brought)
    if dry_run:
        click.echo("\n".join(map(str, edits)), nl=False)
        return
    write_edits(edits)
    for edit in edits:
        click.echo(f"{'wrote' if edit.before is None else 'changed'} {edit.path}")
    for line in spec_text.remaining(specs, change):
        click.echo(line, err=True)
