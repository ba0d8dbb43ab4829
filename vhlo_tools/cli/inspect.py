"""``vhlo inspect``: what a file is and holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from vhlo_tools.artifact import inspect_bytes
from vhlo_tools.cli import options

_COUNTS = ("ops", "types", "attributes")
_VALUES = ("arguments", "results")


@click.command()
@options.input_argument("FILE")
@options.format_option
def inspect(source: str, output_format: str) -> None:
    """Show what FILE is and holds, from its bytes alone and for files of any version."""
    data, name = options.read_input(source)
    description = {"path": name, **inspect_bytes(data, name)}
    if output_format == "json":
        options.echo_json(description)
    else:
        click.echo("\n".join(_lines(description)))


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
        elif key == "vjps":
            for vjp in value:
                yield f"{indent}vjp:"
                yield from _lines(vjp, indent + "  ")
        elif key in _VALUES:
            yield label.rstrip() + ("" if value else " none")
            yield from (f"{indent}  {_value(each)}" for each in value)
        elif key in _COUNTS:
            yield label.rstrip()
            # Names of the dialect, which stay as they are spelled.
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
        elif isinstance(value, list | tuple):
            yield label + (", ".join(map(_words, value)) or "none")
        else:
            yield label + ("none" if value is None else str(value))


def _signature(function: dict[str, Any]) -> str:
    sides = (", ".join(each["type"] for each in function[side]) for side in ("arguments", "results"))
    return "@{}({}) -> ({})".format(function["name"], *sides)


def _value(value: dict[str, Any]) -> str:
    """Return an argument or a result of a jax.export file in words."""
    sharding = f", sharded {value['sharding']}" if value["sharding"] else ""
    main = "dropped" if value["main"] is None else f"number {value['main']} of main"
    return f"{value['path']}: {value['type']}{sharding}, {main}"


def _words(value: Any) -> str:
    """Return an alias or a donor as words, and anything else as it is."""
    if not isinstance(value, dict):
        return str(value)
    return " ".join(f"{key.replace('_', ' ')} {_path(each)}" for key, each in value.items() if each != ())


def _path(value: Any) -> str:
    return ".".join(map(str, value)) if isinstance(value, tuple) else str(value)
