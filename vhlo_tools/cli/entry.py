"""The entry point of ``vhlo``: starts the commands of upstream's programs without the imports of other commands.

Nothing but what handles Ctrl-C is imported before it is handled.
"""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["main"]

_INTERRUPTED = 128 + signal.SIGINT


def main() -> int:
    """Run the command line and return its exit code; 130 after Ctrl-C, at any time."""
    # Whoever runs commands in the background has it ignored.
    handles = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if handles:
        # An exception within an import could be swallowed, or be reported with a traceback by what imports.
        signal.signal(signal.SIGINT, _leave)
    try:
        return _run(handles)
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        if handles:
            # While the interpreter ends.
            signal.signal(signal.SIGINT, _leave)


def _run(handles: bool) -> int:
    command, arguments = sys.argv[1:2], sys.argv[2:]
    if command in (["opt"], ["translate"]):
        from vhlo_tools.cli.upstream import main as run_program

        return run_program(f"vhlo {command[0]}", arguments)
    from vhlo_tools.cli.main import import_command
    from vhlo_tools.cli.main import main as run

    import_command(*command)
    if handles:
        # From here on, there may be something to clean up.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()


def _leave(*_: object) -> None:
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
