"""The process that runs upstream's programs has no network and starts no other process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vhlo_tools.bindings.isolation import sandbox

pytestmark = pytest.mark.skipif(not sandbox.AVAILABLE, reason="this system has no filter of system calls")

ATTEMPTS = {
    "socket": "socket.socket()",
    "program": "subprocess.run([sys.executable, '-V'], check=True)",
    "fork": "os.fork()",
    "signal": "os.kill(os.getppid(), 0)",
}


def guarded(code: str) -> int:
    """Return the exit code of a program of upstream that runs ``code``, in a process without other threads."""
    script = f"""
import os, socket, subprocess, sys, time
from contextlib import suppress
from pathlib import Path
from vhlo_tools.upstream.guard import guarded, reading

def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def run():
    try:
        {code}
    except PermissionError:
        return 7
    return 0

sys.exit(guarded("test", run))
"""
    return subprocess.run([sys.executable, "-c", script], check=False).returncode


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_what_a_program_of_upstream_cannot_do(attempt: str) -> None:
    assert guarded(ATTEMPTS[attempt]) == 7


def test_it_writes_files(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    assert guarded(f"Path({str(folder)!r}).mkdir(); Path({str(folder / 'file')!r}).write_text('text')") == 0
    assert (folder / "file").read_text() == "text"


def test_reading_has_a_limit_and_what_follows_it_has_none() -> None:
    assert guarded("with reading(0): busy(60)") == 1
    assert guarded("with reading(0): busy(0.5)\n        busy(3)") == 0
    assert guarded("with suppress(ValueError), reading(0): int('x')\n        busy(3)") == 0


@pytest.mark.parametrize("arguments", [["translate", "--deserialize"], ["opt", "--canonicalize"]])
def test_reading_that_never_ends_is_ended(arguments: list[str]) -> None:
    data = Path(__file__).parents[1].joinpath("programs", "hostile", "reading_never_ends.mlirbc").read_bytes()
    command = [sys.executable, "-m", "vhlo_tools.cli.main", *arguments]
    done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=60)
    assert done.returncode == 1
    assert b"<stdin>" in done.stderr
    # Libraries before some crash on it.
    assert b"hangs when reading the file" in done.stderr or b"the library crashed with SIGSEGV" in done.stderr
