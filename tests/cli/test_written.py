"""On a terminal a command says in a line what it has written, once; in scripts and in CI it does not."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support.corpus import EXAMPLES
from support.terminals import plain, shown_on_terminal

from vhlo_tools.cli.main import main

#: For each command line, what is said of each file that it writes. SIZE stands for its bytes.
COMMANDS = {
    "serialize saxpy.mlir --target 1.9.0 -o O": ["wrote O: StableHLO 1.9.0, SIZE bytes"],
    "serialize saxpy.mlir --target 1.9.0 -o O --manifest": ["wrote O: StableHLO 1.9.0, with its manifest, SIZE bytes"],
    "retarget keras_mlp.mlirbc --target 1.4.0 -o O": ["wrote O: StableHLO 1.4.0, SIZE bytes"],
    "retarget symbolic_export.jax_export --strip-debug-info -o O": [
        "wrote O: a jax.export file of StableHLO 1.15.0, SIZE bytes"
    ],
    "deserialize keras_mlp.mlirbc -o O": ["wrote O: SIZE bytes"],
    "report keras_mlp.mlirbc -o O": ["wrote O: SIZE bytes"],
    "report keras_mlp.mlirbc -o O --output-format dot": ["wrote O: SIZE bytes"],
    "alias set keras_mlp.mlirbc --donor 0 -o O --form module": ["wrote O: StableHLO 1.0.0, SIZE bytes"],
    "constants externalize keras_mlp.mlirbc --min-size 64 -o O": ["wrote O: StableHLO 1.0.0, SIZE bytes"],
    "run saxpy.mlir -i 2.0 -i [1,2,3,4] -i [1,1,1,1] -o O.npy": ["wrote O.npy: SIZE bytes"],
    "verify saxpy.mlir saxpy.mlir --rounds 1 -o O": ["wrote O: SIZE bytes"],
    "migrate saxpy.mlir --target 1.9.0 --dry-run -o O": ["wrote O: SIZE bytes"],
    # These name the file in any case.
    "check saxpy.mlir --target 1.9.0 --isolated --no-cache -o O": [],
    "store status keras_mlp.mlirbc --as-of 2025-01-01 -o O": [],
    "manifest write keras_mlp.mlirbc": [],
    # JSON names it.
    "retarget keras_mlp.mlirbc --target 1.4.0 -o O --output-format json": [],
    "constants externalize keras_mlp.mlirbc --min-size 64 -o O --output-format json": [],
    # Nothing stays there.
    "serialize saxpy.mlir -o /dev/null --force": [],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CI", raising=False)
    return shutil.copytree(EXAMPLES, tmp_path / "examples")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal_is_told_what_was_written(command: str, folder: Path) -> None:
    shown = [plain(line) for line in shown_on_terminal(command.split(), columns=200, folder=folder)]
    said = [line for line in shown if line.startswith("wrote ")]
    for line in said:
        path = folder / line.split()[1].rstrip(":")
        assert line.endswith(f" {path.stat().st_size:,} bytes")
    assert [re.sub(r"[\d,]+ bytes", "SIZE bytes", line) for line in said] == COMMANDS[command]
    if not said and " -o O" in command:
        assert sum(bool(re.search(r"\bO\b(?!\.)", line)) for line in shown) == 1


def test_scripts_and_ci_are_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert main(["serialize", "saxpy.mlir", "-o", "O"]) == 0
    assert capfd.readouterr() == ("", "")
    command = ["serialize", "saxpy.mlir", "-o", "P"]
    assert shown_on_terminal(command, columns=80, folder=folder, CI="true") == []
    assert (folder / "P").read_bytes() == (folder / "O").read_bytes()
