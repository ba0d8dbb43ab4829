"""``vhlo inspect``: shows the kind and the contents of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from vhlo_tools.aliasing import format_index
from vhlo_tools.artifact import ManifestCheck, ManifestChoice, check_manifest, inspect_bytes, inspect_folder, outline
from vhlo_tools.cli import options
from vhlo_tools.cli.display import echo, show_facts
from vhlo_tools.cli.helping import command
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.files import place
from vhlo_tools.printable import printable
from vhlo_tools.spec import newest_version

# Instead of "none", which would be a statement about the program.
_MISSING = dict.fromkeys(("parameters", "result"), "unknown: the text has no entry computation of a known form")


@command()
@options.input_argument("FILE")
@click.option("-a", "--all", "details", is_flag=True, help="Show ops, types, functions, sections and features too.")
@options.input_manifest_options
@options.read_in_time_option
@options.format_option
def inspect(source: str, details: bool, manifest: ManifestChoice, output_format: str) -> None:
    """Show who can read FILE, what it takes and gives, and what is in it, from its bytes alone.

    It may be of any version, and a SavedModel folder. Where a manifest lies beside FILE, they are compared; exit
    code 2 if they differ.
    """
    where = None if source == options.STANDARD else place(source)
    checked = ManifestCheck("none", source)
    if isinstance(where, Path) and where.is_dir():
        description = {"path": source, **inspect_folder(where)}
    else:
        data, name = options.read_input(source, manifest=False)
        checked = check_manifest(data, where, manifest, contents=True, name=name)
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
        if key == "unreadable" and not value:
            continue
        label = f"{indent}{key.replace('_', ' ') + ':':<20} "
        if key in _ITEMS:
            if value or key != "unknown":
                yield label.rstrip() + ("" if value or key not in _SAID_IF_NONE else " none")
                yield from (f"{indent}  {item}" for item in _ITEMS[key](value))
        elif key == "vjps":
            for vjp in value:
                yield f"{indent}vjp:"
                yield from _lines(vjp, indent + "  ")
        elif key == "newer_than_data":
            if value:
                yield f"{label}yes: the data of vhlo_tools end at StableHLO {newest_version()}"
        elif isinstance(value, dict):
            yield label.rstrip()
            yield from _lines(value, indent + "  ")
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


def _counts(value: dict[str, int]) -> Iterator[str]:
    # Names of the dialect, which are not changed.
    return (f"{name + ':':<30} {number}" for name, number in value.items())


#: The lines of what stands below the label of a key.
_ITEMS: Final[Mapping[str, Callable[[Any], Iterable[str]]]] = {
    "sections": lambda value: (f"{each['name']:<18} {each['size']:>12} bytes at {each['offset']}" for each in value),
    "dialects": lambda value: (f"{name:<18} {', '.join(sorted(ops)) or 'no ops'}" for name, ops in value.items()),
    "signatures": lambda value: (f"{name}{_sides(sides)}" for name, sides in value.items()),
    **dict.fromkeys(("arguments", "results"), lambda value: map(_value, value)),
    **dict.fromkeys(("ops", "types", "attributes"), _counts),
    "functions": lambda value: map(_signature, value),
    "features": lambda value: (f"{each['id']}, since {each['introduced']}: {each['count']}" for each in value),
    "unknown": lambda value: (f"{each['name']}: {each['count']}" for each in value),
}
_SAID_IF_NONE: Final = ("signatures", "arguments", "results", "features")
