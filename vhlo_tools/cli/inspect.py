"""``vhlo inspect``: shows the kind and the contents of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from vhlo_tools.aliasing import format_index
from vhlo_tools.artifact import ManifestCheck, check_manifest, inspect_bytes, inspect_folder, outline
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo, show_facts
from vhlo_tools.cli.helping import command
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.files import place
from vhlo_tools.printable import printable
from vhlo_tools.spec import newest_version

_COUNTS = ("ops", "types", "attributes")
_VALUES = ("arguments", "results")
# Instead of "none", which would be a statement about the program.
_MISSING = dict.fromkeys(("parameters", "result"), "unknown: the text has no entry computation of a known form")


@command()
@options.input_argument("FILE")
@click.option("-a", "--all", "details", is_flag=True, help="Show ops, types, functions, sections and features too.")
@options.input_manifest_options
@options.format_option
def inspect(
    source: str, details: bool, manifest: str | None, require_manifest: bool, no_manifest: bool, output_format: str
) -> None:
    """Show who can read FILE, what it takes and gives, and what is in it, from its bytes alone.

    It may be of any version, and a SavedModel folder. Where a manifest lies beside FILE, they are compared; exit
    code 2 if they differ.
    """
    choice = options.choose_manifest(manifest, required=require_manifest, ignored=no_manifest)
    where = None if source == options.STANDARD else place(source)
    checked = ManifestCheck("none", source)
    if isinstance(where, Path) and where.is_dir():
        description = {"path": source, **inspect_folder(where)}
    else:
        data, name = options.read_input(source, manifest=False)
        checked = check_manifest(data, where, choice, contents=True, name=name)
        try:
            described = inspect_bytes(data, name)
        except MalformedArtifactError:
            # Not what the bytes are now, but that they are not what they were.
            checked.require()
            raise
        description = {"path": name, "manifest": checked.state, **described}
    if output_format == "json":
        options.echo_json(description)
    else:
        # Few files have one.
        shown = {key: value for key, value in description.items() if (key, value) != ("manifest", "none")}
        if details:
            echo("\n".join(map(printable, _lines(shown))))
        else:
            compared = [("manifest", shown["manifest"])] if "manifest" in shown else []
            show_facts(shown["path"], [*outline(shown), *compared])
    checked.require()


def _lines(description: dict[str, Any], indent: str = "") -> Iterator[str]:
    for key, value in description.items():
        label = f"{indent}{key.replace('_', ' ') + ':':<20} "
        if key == "sections":
            yield label.rstrip()
            for section in value:
                yield f"{indent}  {section['name']:<18} {section['size']:>12} bytes at {section['offset']}"
        elif key == "dialects":
            yield label.rstrip()
            for dialect, ops in value.items():
                yield f"{indent}  {dialect:<18} {', '.join(sorted(ops)) or 'no ops'}"
        elif key == "signatures":
            yield label.rstrip() + ("" if value else " none")
            yield from (f"{indent}  {name}{_sides(sides)}" for name, sides in value.items())
        elif key == "vjps":
            for vjp in value:
                yield f"{indent}vjp:"
                yield from _lines(vjp, indent + "  ")
        elif key in _VALUES:
            yield label.rstrip() + ("" if value else " none")
            yield from (f"{indent}  {_value(each)}" for each in value)
        elif key in _COUNTS:
            yield label.rstrip()
            # Names of the dialect, which are not changed.
            yield from (f"{indent}  {name + ':':<30} {number}" for name, number in value.items())
        elif isinstance(value, dict):
            yield label.rstrip()
            yield from _lines(value, indent + "  ")
        elif key == "functions":
            yield label.rstrip()
            yield from (f"{indent}  {_signature(function)}" for function in value)
        elif key == "features":
            yield label.rstrip() + ("" if value else " none")
            yield from (f"{indent}  {each['id']}, since {each['introduced']}: {each['count']}" for each in value)
        elif key == "newer_than_data":
            if value:
                yield f"{label}yes: the data of vhlo_tools end at StableHLO {newest_version()}"
        elif key == "unknown":
            if value:
                yield label.rstrip()
                yield from (f"{indent}  {each['name']}: {each['count']}" for each in value)
        elif isinstance(value, list | tuple):
            yield label + (", ".join(map(_words, value)) or "none")
        else:
            yield label + (_MISSING.get(key, "none") if value is None else str(value))


def _signature(function: dict[str, Any]) -> str:
    sides = (", ".join(each["type"] for each in function[side]) for side in ("arguments", "results"))
    return "@{}({}) -> ({})".format(function["name"], *sides)


def _sides(signature: dict[str, dict[str, str]]) -> str:
    """Return a signature of a SavedModel as text, with unchanged names."""
    sides = (", ".join(f"{name}: {kind}" for name, kind in signature[side].items()) for side in ("inputs", "outputs"))
    return "({}) -> ({})".format(*sides)


def _value(value: dict[str, Any]) -> str:
    sharding = f", sharded {value['sharding']}" if value["sharding"] else ""
    main = "dropped" if value["main"] is None else f"number {value['main']} of main"
    return f"{value['path']}: {value['type']}{sharding}, {main}"


def _words(value: Any) -> str:
    """Return an alias or a donor as text, and anything else as it is."""
    if not isinstance(value, dict) or "parameter_number" not in value:
        return str(value)
    index = value["parameter_index"]
    parameter = f"parameter {value['parameter_number']}" + (f" {format_index(index)}" if index else "")
    if "output_index" not in value:
        return parameter
    return f"output {format_index(value['output_index'])} with {parameter} ({value['kind']})"
