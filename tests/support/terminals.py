"""Commands that run in a terminal of some width, and what they show there."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from support.vhlo_process import process_state, standard_files
from vhlo_tools.cli.main import main

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """A terminal: what is written to it can be read at any time, however much it is.

    Args:
        columns: Its width.

    Attributes:
        inside: The number of the file that is the terminal for those who write to it.
    """

    def __init__(self, columns: int) -> None:
        self._outside, self.inside = os.openpty()
        fcntl.ioctl(self.inside, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self._said = bytearray()
        self._more = threading.Condition()
        # It holds a few kilobytes, and whoever writes more waits for a reader.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.shown()
        os.close(self.inside)

    def shown(self) -> str:
        """Return what has been written since the last call: all of it, in whatever time it arrives."""
        # A terminal has no end that can be read while a process that was started meanwhile holds it.
        mark = uuid.uuid4().hex.encode()
        os.write(self.inside, mark)
        with self._more:
            assert self._more.wait_for(lambda: mark in self._said, timeout=300), bytes(self._said)
            said, _, self._said = self._said.partition(mark)
        return said.decode().replace("\r\n", "\n")

    def _read(self) -> None:
        try:
            while data := os.read(self._outside, 1 << 16):
                with self._more:
                    self._said += data
                    self._more.notify_all()
        except OSError:  # what a terminal says that nobody has open any more
            pass
        finally:
            os.close(self._outside)


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
    with Terminal(columns) as terminal:
        with (
            process_state(folder, _environment(variables)),
            standard_files(0, terminal.inside, terminal.inside),
        ):
            found = main(arguments)
        shown = terminal.shown()
    assert found == code, shown
    return shown.splitlines()


def shown_by_process(
    arguments: Sequence[str], *, columns: int, folder: Path, code: int = 0, **variables: str
) -> list[str]:
    """Return what :func:`shown_on_terminal` does, of a process of its own."""
    command = [sys.executable, "-m", "vhlo_tools.cli.main", *arguments]
    with Terminal(columns) as terminal:
        done = subprocess.run(
            command, stdout=terminal.inside, stderr=terminal.inside, cwd=folder, env=_environment(variables)
        )
        shown = terminal.shown()
    assert done.returncode == code, shown
    return shown.splitlines()


def plain(line: str) -> str:
    return _STYLE.sub("", line)


def _environment(variables: dict[str, str]) -> dict[str, str]:
    # These would say another width, or whether there are colours.
    without = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
    environment = {name: value for name, value in os.environ.items() if name not in without}
    return environment | {"TERM": "xterm-256color", **variables}
