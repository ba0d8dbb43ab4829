"""``vhlo inspect``: what a file is and holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from vhlo_tools.artifact import inspect_bytes
from vhlo_tools.cli import options


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
        elif isinstance(value, dict):
            yield label.rstrip()
            yield from _lines(value, indent + "  ")
        elif isinstance(value, list):
            yield label + (", ".join(map(str, value)) or "none")
        else:
            yield f"{label}{value}"
