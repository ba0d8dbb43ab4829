"""What commands show on a terminal: tables that fit the window, with all that is there without one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support.corpus import EXAMPLES
from support.terminals import plain, shown_by_process, shown_on_terminal

from vhlo_tools.cli.main import main

HOSTILE = Path(__file__).parents[1] / "programs" / "hostile" / "names_with_escapes.mlir"

#: Commands with tables, and their exit codes.
COMMANDS = {
    "inspect keras_mlp.mlirbc": 0,
    "inspect jax_store/evaluate.jax_export": 0,
    "alias show transformer_step.mlir": 0,
    "diff saxpy.mlir keras_mlp.mlirbc": 1,
    "check saxpy.mlir keras_mlp.mlirbc transformer_step.mlir --target 1.0.0 --target 1.9.0 -j 1": 1,
}


def words(text: str) -> set[str]:
    """Return what is said in it, however cells were broken: the characters alone, of each word of the language."""
    return set(re.findall(r"\w{2,}", text))


def test_a_process_shows_what_is_shown_here() -> None:
    """The other tests call commands in their own process, where others were called before."""
    command = next(each for each in COMMANDS if each.startswith("check"))
    process, here = (
        function(command.split(), columns=80, folder=EXAMPLES, code=COMMANDS[command])
        for function in (shown_by_process, shown_on_terminal)
    )
    assert here == process


@pytest.mark.parametrize("columns", [60, 80, 100, 300])
@pytest.mark.parametrize("command", COMMANDS)
def test_it_fits_the_window(command: str, columns: int) -> None:
    shown = shown_on_terminal(command.split(), columns=columns, folder=EXAMPLES, code=COMMANDS[command])
    assert shown
    # Places in files stay whole: one opens them with a click.
    fitting = [plain(line) for line in shown if ".py:" not in line and "since 1." not in line]
    assert max(map(len, fitting)) <= columns


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wide_window_shows_all_that_a_program_reads(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES)
    assert main(command.split()) == COMMANDS[command]
    read = capsys.readouterr().out
    shown = shown_on_terminal(command.split(), columns=1000, folder=EXAMPLES, code=COMMANDS[command])
    assert words(read) <= words("\n".join(map(plain, shown)))


@pytest.mark.parametrize("command", COMMANDS)
def test_colours_can_be_had_or_not(command: str) -> None:
    def shown(**variables: str) -> str:
        lines = shown_on_terminal(command.split(), columns=100, folder=EXAMPLES, code=COMMANDS[command], **variables)
        return "\n".join(lines)

    assert re.search(r"\x1b\[[0-9;]*3[0-9]", shown())
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", shown(NO_COLOR="1"))


@pytest.mark.parametrize(
    "command", ["inspect P", "inspect A", "alias show A", "diff A B", "check P A --target 0.9.0 -j 1"]
)
def test_names_do_not_control_the_terminal(command: str, tmp_path: Path) -> None:
    shutil.copy(HOSTILE, tmp_path / "P")
    shutil.copy(EXAMPLES / "saxpy.mlir", tmp_path / "B")
    assert main(["serialize", str(HOSTILE), "-o", str(tmp_path / "A")]) == 0
    shown = shown_on_terminal(
        command.split(), columns=80, folder=tmp_path, code=int(command.startswith(("check", "diff")))
    )
    assert shown
    assert all(plain(line).isprintable() for line in shown)
