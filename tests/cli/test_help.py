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
}

#: The exit codes of commands whose answer about the examples is no.
CODES = {"store status jax_store/": 1}


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


#: The commands that most users need.
FIRST = "inspect report serialize deserialize retarget check migrate store targets run diff verify"


def test_twelve_commands_stand_first_and_others_are_for_someone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    sections: dict[str, list[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            sections[line[:-1]] = []
        elif line.startswith("  ") and sections:
            sections[[*sections][-1]].append(line.split()[0])
    del sections["Example"]
    assert sections.pop("Commands") == FIRST.split()
    assert all(title.startswith(("For ", "In place of ")) for title in sections)
    listed = [name for names in sections.values() for name in names]
    assert sorted([*listed, *FIRST.split()]) == sorted(cli.list_commands(click.Context(cli)))


@pytest.mark.parametrize("path", [path for path, each in COMMANDS.items() if isinstance(each, click.Group)])
@pytest.mark.parametrize("columns", [COLUMNS, 40])
def test_groups_say_of_each_command_what_it_does_in_a_whole_line(
    path: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main([*path.split(), "--help"]) == 0
    help_ = capsys.readouterr().out
    listed = help_.partition("Commands:\n")[2].partition("\nExample:")[0]
    assert listed
    assert "..." not in listed
    if columns == COLUMNS:
        # Each line begins with a name: none is broken.
        assert [line for line in listed.splitlines() if line.startswith("   ")] == []


def test_help_has_no_marks_of_click(capsys: pytest.CaptureFixture[str]) -> None:
    for path in COMMANDS:
        assert main([*path.split(), "--help-all" if isinstance(COMMANDS[path], Command) else "--help"]) == 0
    assert re.findall(r"\\b|[\b\f]", capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("inspct x", "No such command 'inspct'. Did you mean 'inspect'?"),
        ("alias clera a -o b", "No such command 'clera'. Did you mean 'clear'?"),
        ("spec newversion 1.2.3", "No such command 'newversion'. Did you mean 'new-version'?"),
        ("xyzzy --help", "No such command 'xyzzy'."),
    ],
)
def test_a_command_that_is_not_there(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.splitlines()[-1]) == ("", f"Error: {message}")


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
