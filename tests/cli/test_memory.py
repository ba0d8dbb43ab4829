"""Commands that have not enough memory say so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest
from support.corpus import ROOT

import vhlo_tools as vt
from vhlo_tools.cli.main import main

#: What a command has beside the interpreter and its modules, in bytes: less than the objects of the program take.
LIMIT = 32 << 20
FUNCTIONS = 30_000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("large") / "large.mlirbc"
    functions = (f"func.func @f{i}(%a: tensor<{i + 1}xf32>) {{ return loc({i % 9}) }}" for i in range(FUNCTIONS))
    file.write_bytes(bytes(vt.serialize("\n".join(functions).replace("loc(", 'loc("l').replace(") }", '") }'))))
    return file


def limited(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    run = f"import resource; resource.setrlimit(resource.RLIMIT_DATA, ({LIMIT}, {LIMIT})); "
    run += "import sys; from vhlo_tools.cli.main import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run([sys.executable, "-c", run, *command], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="others do not limit the memory of a process so")
def test_too_little_memory_is_an_error(program: Path) -> None:
    for command in (["inspect", program], ["check", "--target", "12w", program.parent]):
        done = limited([str(each) for each in command])
        assert (done.returncode, "not enough memory" in " ".join((done.stdout + done.stderr).split())) == (2, True), (
            done
        )
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("said", ["error return without exception set", "can't start new thread"])
def test_errors_by_which_python_says_that_it_has_no_memory(
    said: str, program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise SystemError(said) if "exception" in said else RuntimeError(said)

    monkeypatch.setattr("vhlo_tools.cli.options.read_input", fail)
    assert main(["inspect", str(program)]) == 2
    assert "not enough memory" in capsys.readouterr().err
    monkeypatch.setattr("vhlo_tools.cli.options.read_input", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["inspect", str(program)])
