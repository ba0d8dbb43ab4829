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
