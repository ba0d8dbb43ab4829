"""Commands that run in a terminal of some width, and what they show there."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

__all__ = ["plain", "shown_on_terminal"]

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def shown_on_terminal(
    arguments: Sequence[str], *, columns: int, folder: Path, code: int = 0, **variables: str
) -> list[str]:
    """Return the lines that ``vhlo ARGUMENTS`` shows on a terminal of so many columns, with their styles.

    Args:
        arguments: What follows `vhlo`.
        columns: The width of the terminal.
        folder: The folder that it runs in.
        code: The exit code that is expected.
        variables: Variables of its environment, beside those of this process.
    """
    terminal, inside = os.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    # These would say another width, or whether there are colours.
    without = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
    environment = {name: value for name, value in os.environ.items() if name not in without}
    environment |= {"TERM": "xterm-256color", **variables}
    command = [sys.executable, "-m", "vhlo_tools.cli.main", *arguments]
    process = subprocess.Popen(command, stdout=inside, stderr=inside, cwd=folder, env=environment)
    os.close(inside)
    said = bytearray()
    while data := _read(terminal):
        said += data
    os.close(terminal)
    assert process.wait() == code, said.decode()
    return said.decode().replace("\r\n", "\n").splitlines()


def plain(line: str) -> str:
    """Return a line without styles."""
    return _STYLE.sub("", line)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # what a terminal says that no process has open any more
        return b""
