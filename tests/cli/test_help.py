"""What ``--help`` prints: a screen for each command, with an example that works."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from support.corpus import EXAMPLES
from support.vhlo_process import kept_workers

from vhlo_tools.cli.helping import HELP, Command
from vhlo_tools.cli.main import cli, main

#: A screen.
LINES, COLUMNS = 40, 80

#: Those that have the arguments and the help of upstream's programs.
OF_UPSTREAM = {"opt", "translate"}

#: Examples that do not run here, and why.
ELSEWHERE = {
    "completion": "tests/cli/test_completion.py installs it",
    "manifest sign": "needs a key: tests/frontends/scale signs",
    "matrix": "asks the package index",
    "spec import": "needs a checkout: tests/spec_tools/test_checkout.py has one",
    "spec new-version": "writes into the specification: tests/cli/test_spec.py does",
    "store report": "needs pyarrow: tests/frontends/scale has it",
}

#: The exit codes of commands whose answer about the examples is no.
CODES = {"store status jax_store/ --horizon 6m --as-of 2026-07-01": 1}


def commands(command: click.Command = cli, path: str = "") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            if name not in OF_UPSTREAM:
                yield from commands(below, f"{path} {name}".strip())


COMMANDS = dict(commands())


@pytest.fixture(autouse=True)
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    folder = shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(folder)
    return folder


def test_every_command_has_help_and_no_other() -> None:
    assert set(HELP) == set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_help_fits_a_screen_and_ends_with_an_example(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path.split(), "--help"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) <= LINES
    assert max(map(len, printed)) <= COLUMNS
    example = HELP[path].example.splitlines()
    assert printed[-len(example) - 1 :] == ["Example:", *(f"  $ {line}" for line in example)]
    assert isinstance(COMMANDS[path], click.Group) or f"{example[-1]} ".startswith(f"vhlo {path} ")


@pytest.mark.parametrize("path", [path for path, each in COMMANDS.items() if isinstance(each, Command)])
def test_usual_options_are_options_and_the_long_help_has_all(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = {each.name: each for each in COMMANDS[path].params if isinstance(each, click.Option)}
    usual = HELP[path].usual.split()
    assert set(usual) <= set(options)
    assert main([*path.split(), "--help"]) == 0
    short = capsys.readouterr().out
    assert main([*path.split(), "--help-all"]) == 0
    long = capsys.readouterr().out
    for name, option in options.items():
        spelling = max(option.opts, key=len)
        # In the list, and not in what is said of another one.
        listed = re.compile(rf"^  (-\w, |--[\w-]+[,/] ?)?{spelling}(?![\w-])", re.MULTILINE)
        assert listed.search(long), spelling
        assert not usual or bool(listed.search(short)) == (name in usual), spelling
    assert ("--help-all" in short) == bool(usual)


@pytest.mark.parametrize("path", sorted(set(HELP) - set(ELSEWHERE)))
def test_examples_work(path: str) -> None:
    for line in HELP[path].example.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "vhlo"
        with kept_workers():
            assert main(arguments) == CODES.get(" ".join(arguments), 0), line


@pytest.mark.parametrize("path", ELSEWHERE)
def test_examples_that_run_elsewhere_name_options_that_there_are(path: str) -> None:
    for line in HELP[path].example.splitlines():
        words = shlex.split(line)[1:]
        command: click.Command = cli
        context = click.Context(cli)
        while isinstance(command, click.Group):
            name, command_or_none, words = command.resolve_command(context, words)
            assert command_or_none is not None
            command, context = command_or_none, click.Context(command_or_none, info_name=name)
        # Refuses what the command does not take; a path in it need not be there.
        parser = command.make_parser(context)
        parsed, left, _ = parser.parse_args(words)
        assert parsed
        assert not left
