"""What all commands share: usage, help, terminals, closed streams, and files that are whole or not there."""

from __future__ import annotations

import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.bytecode import is_compiled
from vhlo_tools.cli.main import main

SAXPY = str(EXAMPLES / "saxpy.mlir")


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    path = tmp_path / "saxpy.mlirbc"
    vt.serialize(SAXPY, "1.4.2").save(path)
    return path


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", SAXPY], 2, "requires 3 inputs, got 0"),
        (["run", str(EXAMPLES / "custom_calls.mlir"), "-i", "x.npy"], 2, "x.npy"),
        (["run", SAXPY, "-i", "{"], 2, "nor a JSON literal"),
        (["run", SAXPY, "-o", "out.txt"], 2, "neither a .npy nor a .npz"),
        (["run", SAXPY, "--engine", "gpu"], 2, "'gpu' is not one of"),
        (["targets", "nonsense"], 2, "is not a target"),
        (["targets", "--as-of", "1990-01-01"], 2, "no release is known by 1990-01-01"),
        (["targets", "--as-of", "yesterday"], 2, "does not match the format"),
        (["nonsense"], 2, "No such command 'nonsense'"),
        (["retarget", SAXPY, "-o", "x"], 2, "Missing option '--target'"),
    ],
)
def test_usage(arguments: list[str], code: int, message: str, capfd: Any) -> None:
    assert main(arguments) == code
    out, err = capfd.readouterr()
    assert (out, "Traceback" in err) == ("", False)
    assert message in err


@pytest.mark.parametrize(
    "command", [["serialize", SAXPY, "-o", "-"], ["deserialize", "{artifact}", "--emit", "bytecode"]]
)
def test_bytes_never_go_to_a_terminal(command: list[str], artifact: Path) -> None:
    ours, theirs = pty.openpty()
    arguments = [part.format(artifact=artifact) for part in command]
    result = subprocess.run(
        [sys.executable, "-m", "vhlo_tools.cli.main", *arguments], stdout=theirs, stderr=subprocess.PIPE
    )
    os.close(theirs)
    os.close(ours)
    assert result.returncode == 2
    assert b"bytes are not written to a terminal" in result.stderr


def test_a_reader_that_stops_is_no_error() -> None:
    code = f"{shlex.quote(sys.executable)} -m vhlo_tools.cli.main targets --format json | head -c 10"
    result = subprocess.run(["bash", "-o", "pipefail", "-c", code], capture_output=True)
    assert len(result.stdout) == 10
    assert (result.returncode, result.stderr) == (0, b"")


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for command in ("serialize", "deserialize", "retarget", "inspect", "run", "targets"):
        assert command in out
        assert main([command, "--help"]) == 0
    assert main(["--version"]) == 0
    compiled = r" \(compiled\)" if is_compiled() else ""
    assert re.search(rf"^vhlo, version [0-9.]+{compiled}$", capsys.readouterr().out, re.MULTILINE)


def test_closed_streams_and_odd_outputs(tmp_path: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m vhlo_tools.cli.main"
    saxpy, folder = shlex.quote(str(SAXPY)), shlex.quote(str(tmp_path))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for line, code in (
        (f"{command} serialize {saxpy} -o - >&-", 2),
        (f"{command} inspect - <&-", 2),
        (f"{command} serialize {saxpy} -o {folder}/loop", 2),
        (f"{command} serialize {saxpy} -o {folder}/no/such/folder", 2),
        (f"{command} serialize {saxpy} -o ''", 2),
        (f"{command} serialize {saxpy} -o {folder}/{'n' * 250}", 0),
        (f"{command} serialize {saxpy} -o /dev/full", 2),
    ):
        result = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
        assert (result.returncode, "Traceback" in result.stderr) == (code, False), (line, result.stderr)
        assert ".part" not in result.stderr
    for line in (f"{command} targets | true", f"{command} inspect {saxpy} | true"):
        result = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (0, "")


def test_no_interrupt_leaves_half_a_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "vhlo_tools.cli.main", "serialize", str(EXAMPLES / "transformer_step.mlir"), "-o"]
    whole, out = tmp_path / "whole", tmp_path / "out"
    subprocess.run([*command, str(whole)], check=True)
    for delay in (0.05, 0.1, 0.15, 0.2, 0.3):
        process = subprocess.Popen([*command, str(out)], stderr=subprocess.PIPE)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode in (0, 130, 1, -signal.SIGINT)
        # An interrupt may come after the file was written, while the process ends.
        assert out.exists() or process.returncode != 0
        assert not out.exists() or out.read_bytes() == whole.read_bytes()
        out.unlink(missing_ok=True)
        assert set(tmp_path.iterdir()) == {whole}


@pytest.mark.parametrize("command", ["check P --target 1.0.0", "migrate P --target 1.0.0", "store status P"])
def test_a_closed_pipe_is_no_success(command: str, tmp_path: Path) -> None:
    (tmp_path / "P").mkdir()
    for number in range(40):
        (tmp_path / "P" / f"{number}.mlir").write_text(f"func.func @main() {{ return }} // {number}")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        words = [sys.executable, "-m", "vhlo_tools.cli.entry", *command.split()]
        done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, cwd=tmp_path, text=True)
    finally:
        os.close(writing)
    assert done.returncode == 141, done.stderr
    assert "Traceback" not in done.stderr
    # What was written is complete.
    for made in (tmp_path / "P").glob("*.mlirbc"):
        vt.open_artifact(made).requirements()
    assert not list((tmp_path / "P").glob(".vhlo-*.part"))
