"""The process that runs upstream's programs has no network and starts no other process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from vhlo_tools.bindings.isolation.sandbox import AVAILABLE
from vhlo_tools.upstream.guard import guarded

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="this system has no filter of system calls")


@pytest.mark.parametrize(
    "attempt",
    [
        socket.socket,
        lambda: subprocess.run([sys.executable, "-V"], check=True),
        os.fork,
        lambda: os.kill(os.getppid(), 0),
    ],
    ids=["socket", "program", "fork", "signal"],
)
def test_what_a_program_of_upstream_cannot_do(attempt: Callable[[], object]) -> None:
    def run() -> int:
        try:
            attempt()
        except PermissionError:
            return 7
        return 0

    assert guarded("test", run) == 7


def test_it_writes_files(tmp_path: Path) -> None:
    def run() -> int:
        (tmp_path / "folder").mkdir()
        return (tmp_path / "folder" / "file").write_text("text")

    assert guarded("test", run) == 4
