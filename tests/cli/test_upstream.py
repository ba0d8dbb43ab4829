"""Upstream's programs as processes: shims, what the library crashes over, and who starts what."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.forked_python import COMMAND
from support.vhlo_process import called, vhlo, warm_python

from vhlo_tools.cli.main import main

OPT = [sys.executable, "-m", "vhlo_tools.cli.entry", "opt"]
TANH = "func.func @f(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.tanh %a : tensor<f32> return %0 : tensor<f32> }\n"


def run(command: list[str], text: str = TANH) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def opt(*arguments: str, text: str = TANH) -> tuple[int, str, str]:
    """Return the exit code of `vhlo opt`, and what it writes."""
    done = vhlo("opt", *arguments, input=text.encode())
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_shims_run_this_python_whatever_the_folder_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "of two\twords" / "bin"
    assert main(["shims", str(folder)]) == 0
    ran = run([str(folder / "stablehlo-opt"), "--stablehlo-legalize-to-vhlo"])
    assert (ran.returncode, ran.stderr) == (0, "")
    assert '"vhlo.tanh_v2"' in ran.stdout
    assert run([str(folder / "stablehlo-translate")]).stderr.startswith("stablehlo-translate: expected a translation")
    assert main(["shims", str(folder)]) == 0


def test_shims_replace_nothing_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    real = tmp_path / "stablehlo-translate"
    real.write_text("the real one")
    assert main(["shims", str(tmp_path)]) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == [real.name]
    assert main(["shims", "--force", str(tmp_path)]) == 0
    assert "vhlo_tools.cli.upstream stablehlo-translate" in real.read_text()


def test_modules_beside_the_input_are_not_loaded(tmp_path: Path) -> None:
    assert main(["shims", str(tmp_path)]) == 0
    (tmp_path / "numpy.py").write_text("raise SystemExit('loaded')")
    ran = subprocess.run(["./stablehlo-opt"], input=TANH, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "stablehlo.tanh" in ran.stdout


@pytest.mark.parametrize("entry", ["vhlo_tools.cli.entry", "vhlo_tools.cli.main"])
def test_commands_take_arguments_as_they_are(entry: str, tmp_path: Path) -> None:
    output = tmp_path / "out.mlir"
    ran = run([sys.executable, "-m", entry, "opt", "-canonicalize", "-o", str(output), "-"])
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert "stablehlo.tanh" in output.read_text()
    assert "General options" in run([sys.executable, "-m", entry, "opt", "--help"]).stdout


def test_nothing_is_written_where_something_failed(tmp_path: Path) -> None:
    output = tmp_path / "out.mlir"
    assert opt("-o", str(output), text=TANH + "// -----\nno program")[0] == 1
    assert not output.exists()


def test_a_file_is_left_as_it_was_where_something_failed(tmp_path: Path) -> None:
    output = tmp_path / "out.mlir"
    output.write_text("what was there")
    assert opt("-o", str(output), text="no program")[0] == 1
    assert output.read_text() == "what was there"
    assert opt("-o", str(output))[0] == 0
    assert "stablehlo.tanh" in output.read_text()


def test_an_output_that_nobody_reads_is_no_error() -> None:
    script = f"{shlex.join(OPT)}; echo $? >&2"
    with subprocess.Popen(["sh", "-c", script], stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        assert process.communicate(TANH)[1] == "0\n"


def test_who_is_to_type_a_program_is_told_so() -> None:
    terminal, stdin = os.openpty()
    try:
        os.write(terminal, b"module {}\n\x04")
        ran = called(lambda files: warm_python().start(COMMAND, "opt", files=(stdin, *files[1:])).wait())
    finally:
        os.close(terminal)
        os.close(stdin)
    told = b"(processing input from stdin now, hit ctrl-c/ctrl-d to interrupt)\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"module {\n}\n", told)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_streams_may_be_closed(closed: str, tmp_path: Path) -> None:
    program, output = tmp_path / "a.mlir", tmp_path / "out.mlir"
    program.write_text(TANH)
    command = f"exec {shlex.join([*OPT, str(program), '-o', str(output)])} {closed}"
    ran = run(["sh", "-c", command])
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert "stablehlo.tanh" in output.read_text()


def test_what_the_library_dies_of_is_an_error() -> None:
    script = """
import os, signal
from vhlo_tools.upstream.guard import guarded, note

def die() -> int:
    note("input.mlir: canonicalize")
    os.kill(os.getpid(), signal.SIGSEGV)

print(guarded("vhlo opt", die), guarded("vhlo opt", lambda: 7))
"""
    ran = warm_python().run(script)
    assert (ran.returncode, ran.stdout) == (0, "1 7\n"), ran.stderr
    assert "input.mlir: canonicalize: error: vhlo opt: the library crashed with SIGSEGV" in ran.stderr


def test_the_input_keeps_its_name_in_locations(tmp_path: Path) -> None:
    path = tmp_path / "a.mlir"
    path.write_text("\n" + TANH)
    assert f'loc("{path}":2:53)' in opt("--mlir-print-debuginfo", str(path))[1]
    assert 'loc("<stdin>":1:53)' in opt("--mlir-print-debuginfo")[1]
    path.write_text(f"{TANH}// -----\n{TANH}")
    split = opt("--mlir-print-debuginfo", "--split-input-file", str(path))[1]
    assert f'loc("{path}":1:53)' in split
    assert f'loc("{path}":3:53)' in split
