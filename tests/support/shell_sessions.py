"""Interactive shells in a terminal of their own, to which one types."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

#: What moves the cursor, colours text, or names the window.
_CONTROL = re.compile(r"\x1b(?:\[[0-9;?>=]*[ -/]*[@-~]|\][^\x07]*\x07|[=>()][0-9A-B]?)|[\x00\x07\x0e\x0f]")
_SECONDS = 60.0
#: Makes a terminal that is open as stdin that of a process, which becomes the shell.
_IN_TERMINAL = "import os, sys; os.login_tty(0); os.execvp(sys.argv[1], sys.argv[1:])"


class ShellSession:
    """A shell that runs in a terminal.

    Args:
        command: The shell and its arguments.
        environment: Its environment.
        folder: Its folder.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: str) -> None:
        self._terminal, inside = os.openpty()
        started = [sys.executable, "-I", "-c", _IN_TERMINAL, *command]
        self._process = subprocess.Popen(started, stdin=inside, env=dict(environment), cwd=folder)
        os.close(inside)
        self._seen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)

    def type(self, text: str, until: str) -> str:
        """Type, wait until the terminal shows something, and return all that it has shown since.

        Raises:
            AssertionError: If it does not within a minute.
        """
        os.write(self._terminal, text.encode())
        deadline = time.monotonic() + _SECONDS
        while not (found := re.search(until, self._seen)):
            assert time.monotonic() < deadline, f"{until!r} is not in {self._seen!r}"
            if select.select([self._terminal], [], [], 0.1)[0]:
                try:
                    self._seen += os.read(self._terminal, 1 << 16).decode("utf-8", "replace")
                except OSError:  # the shell has ended
                    raise AssertionError(f"{until!r} is not in {self._seen!r}") from None
                self._seen = _CONTROL.sub("", self._seen)
        shown, self._seen = self._seen, self._seen[found.end() :]
        return shown
