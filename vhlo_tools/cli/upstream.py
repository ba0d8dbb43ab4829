"""Upstream's programs as commands, which parse their arguments themselves and start with minimal imports.

A shim runs this module: ``python -m vhlo_tools.cli.upstream stablehlo-opt ARGUMENTS``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

from vhlo_tools.upstream import guarded

#: The commands that replace upstream's programs, by the names of these.
COMMANDS: Final = {"stablehlo-opt": "opt", "stablehlo-translate": "translate"}


def main(program: str, arguments: Sequence[str]) -> int:
    """Run upstream's ``program``, ``vhlo opt`` or ``vhlo translate`` in a child process; return its exit code."""
    command = COMMANDS.get(program) or program.rpartition(" ")[2]
    # The parent process may have closed some of them.
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))

    def run() -> int:
        # Imported only in the process that uses them.
        from vhlo_tools.upstream import Streams

        if command == "opt":
            from vhlo_tools.upstream import run_opt as run_command
        else:
            from vhlo_tools.upstream import run_translate as run_command
        return run_command(arguments, Streams.of_process(), program=program)

    return guarded(program, run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
