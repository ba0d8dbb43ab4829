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
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.corpus import EXAMPLES
from support.forked_python import COMMAND
from support.vhlo_process import called, standard_files, vhlo, warm_python

import vhlo_tools as vt
from vhlo_tools.bytecode import is_compiled
from vhlo_tools.cli.main import main

pytestmark = pytest.mark.every_python

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
        (
            ["run", SAXPY, "--engine", "gpu"],
            2,
            "'gpu' is not an engine: expected one of auto, reference, xla, iree, or pjrt:PLUGIN",
        ),
        (["targets", "nonsense"], 2, "is not a target"),
        (["targets", "--as-of", "1990-01-01"], 2, "no release is known by 1990-01-01"),
        (["targets", "--as-of", "yesterday"], 2, "does not match the format"),
        (["nonsense"], 2, "No such command 'nonsense'"),
        (["retarget", SAXPY, "-o", "x"], 2, "give --target, or --strip-debug-info"),
        (["diff", "-", "-"], 2, "only one of the programs can come from stdin"),
        (["report", "-", "-", "-o", "page.html"], 2, "only one of the programs can come from stdin"),
        (["verify", "-", "-"], 2, "only one of the programs can come from stdin"),
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

    def run(files: tuple[int, int, int]) -> int:
        with standard_files(files[0], theirs, files[2]):
            return main(arguments)

    result = called(run)
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


def test_closed_streams() -> None:
    command = f"{shlex.quote(sys.executable)} -m vhlo_tools.cli.main"
    for line in (f"{command} serialize {shlex.quote(SAXPY)} -o - >&-", f"{command} inspect - <&-"):
        result = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
        assert (result.returncode, "Traceback" in result.stderr) == (2, False), (line, result.stderr)


def test_odd_outputs(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for output, code in (
        (f"{tmp_path}/loop", 2),
        (f"{tmp_path}/no/such/folder", 2),
        ("", 2),
        (f"{tmp_path}/{'n' * 250}", 0),
        ("/dev/full", 2),
    ):
        result = vhlo("serialize", SAXPY, "-o", output)
        assert (result.returncode, b"Traceback" in result.stderr) == (code, False), (output, result.stderr)
        assert b".part" not in result.stderr


def test_readers_that_read_nothing(tmp_path: Path) -> None:
    warm_python().write_program(tmp_path / "vhlo", COMMAND)
    for arguments in ("targets", f"inspect {shlex.quote(SAXPY)}"):
        line = f"{shlex.quote(str(tmp_path / 'vhlo'))} {arguments} | true"
        result = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (0, "")


def test_no_interrupt_leaves_half_a_file(tmp_path: Path) -> None:
    command = ["serialize", str(EXAMPLES / "transformer_step.mlir"), "-o"]
    whole, out = tmp_path / "whole", tmp_path / "out"
    vhlo(*command, str(whole), check=True)
    for delay in (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3):

        def interrupted(files: tuple[int, int, int], delay: float = delay) -> int:
            # What it imports is there already, so that more of its time is that of the work.
            process = warm_python().start(COMMAND, *command, str(out), files=files)
            time.sleep(delay)
            with suppress(ProcessLookupError):
                os.kill(process.number, signal.SIGINT)
            return process.wait()

        assert (code := called(interrupted).returncode) in (0, 130, 1, -signal.SIGINT), delay
        # An interrupt may come after the file was written, while the process ends.
        assert out.exists() or code != 0, delay
        assert not out.exists() or out.read_bytes() == whole.read_bytes(), delay
        out.unlink(missing_ok=True)
        assert set(tmp_path.iterdir()) == {whole}, delay


@pytest.mark.parametrize("command", ["check P --target 1.0.0", "migrate P --target 1.0.0 -j 1", "store status P"])
def test_a_closed_pipe_is_no_success(command: str, tmp_path: Path) -> None:
    (tmp_path / "P").mkdir()
    for number in range(40):
        (tmp_path / "P" / f"{number}.mlir").write_text(f"func.func @main() {{ return }} // {number}")
    reading, writing = os.pipe()
    os.close(reading)

    def run(files: tuple[int, int, int]) -> int:
        return warm_python().start(COMMAND, *command.split(), files=(files[0], writing, files[2])).wait()

    try:
        done = called(run, folder=tmp_path)
    finally:
        os.close(writing)
    assert done.returncode == 141, done.stderr
    assert b"Traceback" not in done.stderr
    # What was written is complete.
    for made in (tmp_path / "P").glob("*.mlirbc"):
        vt.open_artifact(made).requirements()
    assert not list((tmp_path / "P").glob(".vhlo-*.part"))


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are text")
@pytest.mark.parametrize(
    "command",
    [
        ["opt", "--stablehlo-legalize-to-vhlo"],
        ["translate", "--serialize", "--target=1.0.0"],
        ["inspect"],
        ["check", "--target", "1.0.0"],
        ["run", "-i", "[1, 2]"],
        ["golden", "record", "suite", "-i", "[1, 2]"],
        ["report", "--format", "dot"],
    ],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize(
    "name", [b"\xff\xfe.mlir", b"n" * 250 + b".mlir", b"\x1b[31m\n.mlir"], ids=["no text", "long", "signs"]
)
def test_files_of_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], name: bytes) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path(os.fsdecode(name))
    path.write_text("func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }")
    done = vhlo(*command, str(path))
    assert b"Traceback" not in done.stderr
    # A folder of a record is named as its program, with something before and after it.
    assert done.returncode == (2 if command[0] == "golden" and len(name) == 255 else 0), done.stderr
