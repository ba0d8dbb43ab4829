"""Large files that another process cuts short while a command reads them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.large_artifacts import write_artifact_of_constants
from support.vhlo_process import warm_python

#: Of two constants: each alone is more than what is read at once, 16 MB.
SIZE = 34 << 20

# Another process cuts the file short before a command reads it for the nth time.
CUTTING = """
import os, sys
from vhlo_tools.files import mapping
from vhlo_tools.cli.main import main

path, number, *arguments = sys.argv[1:]
left = int(number)
read, copy = mapping._OpenFile.read, mapping.FileRange.copy_to

def before():
    global left
    left -= 1
    if left == 0:
        other = os.fork()
        if not other:
            os.truncate(path, 1 << 16)
            os._exit(0)
        assert os.waitpid(other, 0)[1] == 0

def cut_and_read(*given):
    before()
    return read(*given)

def cut_and_copy(*given):
    before()
    return copy(*given)

mapping._OpenFile.read, mapping.FileRange.copy_to = cut_and_read, cut_and_copy
sys.exit(main(arguments))
"""

COMMANDS = {
    "inspect": [],
    "check": ["--target", "1.0.0"],
    "diff": ["{path}"],
    "retarget": ["--target", "1.0.0", "-o", "{output}"],
    "retarget --strip-debug-info": ["-o", "{output}"],
    "constants list": [],
    "constants extract": ["-o", "{output}"],
}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.mlirbc"
    write_artifact_of_constants(path, SIZE, 2, "1.4.0")
    return path


def cut(path: Path, number: int, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return warm_python().run(CUTTING, str(path), str(number), *arguments)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_is_cut_short_before_some_read(command: str, large: Path, tmp_path: Path) -> None:
    path, output = tmp_path / "large.mlirbc", tmp_path / "output"
    arguments = [*command.split(), str(path), *(each.format(path=path, output=output) for each in COMMANDS[command])]
    codes = []
    for number in (1, 2, 3, 5, 9, 17, 33):
        shutil.copy(large, path)
        result = cut(path, number, arguments)
        assert result.returncode in (0, 2), result
        assert "Traceback" not in result.stderr
        if path.stat().st_size > SIZE:
            # It ended without reading that often.
            break
        if result.returncode:
            # Lines are broken where paths are long.
            assert "was cut short while it was read" in " ".join((result.stdout + result.stderr).split())
            assert not output.is_file()
        codes.append(result.returncode)
        shutil.rmtree(output, ignore_errors=True)
        output.unlink(missing_ok=True)
    assert 2 in codes
