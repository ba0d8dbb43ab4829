"""Old names of commands: they do what they did, say what to call in their place, and stand in no help."""

from __future__ import annotations

import tomllib
from pathlib import Path

import click
import pytest
from packaging.version import Version
from support.corpus import EXAMPLES, ROOT

import vhlo_tools as vt
from vhlo_tools.cli.deprecated import old_command
from vhlo_tools.cli.helping import HELP, OLD_NAMES, OLD_OPTIONS, REMOVED_IN
from vhlo_tools.cli.main import cli, main

STEP = str(EXAMPLES / "transformer_step.mlir")


def called(capsys: pytest.CaptureFixture[str], words: str, *arguments: str) -> tuple[int, str]:
    """Return the exit code and the output of an old name, which must say that it is one, in one line."""
    capsys.readouterr()
    code = main([*words.split(), *arguments])
    said = capsys.readouterr()
    message = f'vhlo: warning: "vhlo {words}" is deprecated, and is removed in {REMOVED_IN}: use "{OLD_NAMES[words]}"\n'
    assert said.err.startswith(message)
    return code, said.out


def test_they_are_removed_in_time() -> None:
    """Once this fails, take out `cli/deprecated.py`, `OLD_NAMES`, `OLD_OPTIONS`, and this file."""
    now = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert Version(now) < Version(REMOVED_IN)


@pytest.mark.parametrize("words", OLD_NAMES)
def test_no_help_lists_them_and_what_to_call_is_there(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    *group, name = words.split()
    assert main([*group, "--help"]) == 0
    assert f"\n  {name} " not in capsys.readouterr().out
    assert old_command(words).hidden
    assert main([*words.split(), "--help"]) == 0
    assert capsys.readouterr().out.endswith(f"Example:\n  $ {OLD_NAMES[words]}\n")
    # The command that it names, with options that it has.
    command: click.Command = cli
    path = []
    for word in OLD_NAMES[words].split()[1:]:
        if not isinstance(command, click.Group):
            break
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
        path.append(word)
    assert " ".join(path) in HELP
    options = {spelled for each in command.params for spelled in each.opts}
    assert {word for word in OLD_NAMES[words].split() if word.startswith("-")} <= options


def test_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = called(capsys, "graph", STEP, "--emit", "mermaid", "--max-nodes", "9")
    assert main(["report", STEP, "--output-format", "mermaid", "--max-nodes", "9"]) == code == 0
    assert text == capsys.readouterr().out
    # A suffix that says nothing is one of DOT, as it was.
    assert called(capsys, "graph", STEP, "-o", str(tmp_path / "graph.json")) == (0, "")
    assert (tmp_path / "graph.json").read_text().startswith("digraph program {\n")


def test_strip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    source = str(EXAMPLES / "keras_mlp.mlirbc")
    assert called(capsys, "strip", source, "-o", str(old), "--manifest") == (0, "")
    assert main(["retarget", source, "--strip-debug-info", "-o", str(new), "--manifest"]) == 0
    assert old.read_bytes() == new.read_bytes()
    manifests = [path.with_name(f"{path.name}.manifest.json").read_bytes() for path in (old, new)]
    assert manifests[0] == manifests[1]


def test_alias_lint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(capsys, "alias lint", STEP) == (0, f"{STEP}: ok for XLA\n")
    full, bare = str(tmp_path / "full.mlirbc"), str(tmp_path / "bare.mlirbc")
    vt.serialize(STEP).save(full)
    assert main(["alias", "clear", full, "-o", bare]) == 0
    code, text = called(capsys, "alias lint", bare, "--against", full)
    assert (code, "warning: alias_lost" in text) == (1, True)


def test_manifest_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model.mlirbc"
    vt.serialize(STEP).save(model)
    assert main(["manifest", "write", str(model)]) == 0
    assert called(capsys, "manifest verify", str(model)) == (0, f"{model} is what its manifest says\n")


def test_store_report_without_pyarrow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it prints is in tests/frontends/scale, where pyarrow is."""
    assert called(capsys, "store report", str(tmp_path)) == (2, "")


@pytest.mark.parametrize("words", OLD_OPTIONS)
def test_what_options_are_called_now_is_there(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words.split(), "--help-all"]) == 0
    help_ = capsys.readouterr().out
    for old, new in OLD_OPTIONS[words].items():
        assert (f"{old} " in help_, f"{new} " in help_) == (False, True)


def test_migrate_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vt.serialize(STEP).save(tmp_path / "step.mlirbc")
    command = ["migrate", str(tmp_path / "step.mlirbc"), "--target", "1.9.0", "--dry-run"]
    assert main([*command, "-o", str(tmp_path / "new")]) == 0
    capsys.readouterr()
    for at, given in enumerate((["--report", str(tmp_path / "0")], [f"--report={tmp_path / '1'}"])):
        assert main([*command, *given]) == 0
        assert capsys.readouterr().err.startswith(
            f'vhlo: warning: "vhlo migrate --report" is deprecated, and is removed in {REMOVED_IN}: '
            f'use "vhlo migrate --output"\n'
        )
        assert (tmp_path / str(at)).read_bytes() == (tmp_path / "new").read_bytes()


def test_run_report(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", str(EXAMPLES / "saxpy.mlir"), "-i", "2.0", "-i", "[1, 2, 3, 4]", "-i", "[1, 1, 1, 1]"]
    assert main([*command, "--details"]) == 0
    said = capsys.readouterr()
    assert main([*command, "--report"]) == 0
    warning, _, rest = capsys.readouterr().err.partition("\n")
    assert warning.endswith('use "vhlo run --details"')
    assert rest == said.err != ""
