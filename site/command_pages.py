"""The pages of the commands, from what the commands say of themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click
from pages import Page, cell, code, fence, table

from vhlo_tools.cli.helping import HELP
from vhlo_tools.cli.main import cli

__all__ = ["FOLDER", "command_pages", "commands", "navigation"]

FOLDER: Final = "reference/commands"
PROGRAM: Final = "vhlo"


def commands(group: click.Group = cli, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command, those within groups too, with its words after ``vhlo``."""
    context = click.Context(group, info_name=PROGRAM)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))


def navigation() -> list[dict[str, Any]]:
    """Return the part of the navigation that is the commands: a page for each, and for the group of them all."""
    top = [words[0] for words, _ in commands() if len(words) == 1]
    return [{"All commands": f"{FOLDER}/README.md"}, *({f"vhlo {name}": f"{FOLDER}/{name}.md"} for name in top)]


def command_pages() -> list[Page]:
    """Return a page for each command, with those of a group on the page of the group, and one that lists them all."""
    pages: dict[str, list[str]] = {}
    for words, command in commands():
        pages.setdefault(words[0], []).extend(_command(words, command))
    made = [Page(f"{FOLDER}/{name}.md", "\n".join(lines)) for name, lines in pages.items()]
    return [Page(f"{FOLDER}/README.md", "\n".join(_index())), *made]


def _index() -> Iterator[str]:
    yield "# Commands\n"
    yield (
        "`vhlo COMMAND --help` prints the usual options on a screen, `--help-all` prints all. `-` as a file is "
        "standard input or output; paths may be [URLs](../../remote.md); [exit codes](../exit-codes.md) are the same "
        "for all.\n"
    )
    rows = (
        [f"[`{PROGRAM} {' '.join(words)}`]({words[0]}.md{_anchor(words)})", command.get_short_help_str(200)]
        for words, command in commands()
    )
    yield from table(["command", "what it does"], rows)


def _anchor(words: tuple[str, ...]) -> str:
    return f"#{PROGRAM}-{'-'.join(words)}" if len(words) > 1 else ""


def _command(words: tuple[str, ...], command: click.Command) -> Iterator[str]:
    context = _context(words, command)
    yield f"{'#' * len(words)} {PROGRAM} {' '.join(words)}\n"
    yield f"{_text(command)}\n"
    yield fence("text", " ".join([context.command_path, *command.collect_usage_pieces(context)]))
    parameters = [each for each in command.get_params(context) if not getattr(each, "hidden", False)]
    records = [record for each in parameters if (record := each.get_help_record(context)) is not None and record[1]]
    if records:
        yield from table(["option", "what it does"], ([code(name), _escaped(said)] for name, said in records))
    if isinstance(command, click.Group):
        names = (f"[`{name}`](#{PROGRAM}-{'-'.join((*words, name))})" for name in command.list_commands(context))
        yield f"Commands: {', '.join(names)}.\n"
    elif (help_of := HELP.get(" ".join(words))) is not None:
        yield "An example, in the folder `examples/` of the repository:\n"
        yield fence("console", "\n".join(f"$ {line}" for line in help_of.example.splitlines()))


def _context(words: tuple[str, ...], command: click.Command) -> click.Context:
    context = click.Context(cli, info_name=PROGRAM, terminal_width=100)
    for word in words[:-1]:
        context = click.Context(cli, info_name=word, parent=context)
    return click.Context(command, info_name=words[-1], parent=context)


def _text(command: click.Command) -> str:
    """Return what a command says of itself, as paragraphs; a paragraph that click is to leave alone keeps its lines."""
    paragraphs = (command.help or "").replace("\r", "").split("\n\n")
    shown = []
    for paragraph in paragraphs:
        if paragraph.startswith("\b"):
            shown.append(fence("text", paragraph.removeprefix("\b\n")).rstrip())
        else:
            shown.append(_escaped(" ".join(paragraph.split())))
    return "\n\n".join(shown)


def _escaped(text: str) -> str:
    return "".join(f"\\{each}" if each in "<*_[" else each for each in cell(text))
