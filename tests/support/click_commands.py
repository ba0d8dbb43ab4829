"""The commands of the tool, as click has them."""

from __future__ import annotations

from collections.abc import Iterator

import click


def commands_of(command: click.Command, words: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield the commands in a group, each with its words; hidden names of old ones are left out."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from commands_of(found, f"{words} {name}".strip())
