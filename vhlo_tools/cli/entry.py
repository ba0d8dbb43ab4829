"""Entry point of ``vhlo``: starts the commands of upstream's programs without the imports of other commands.

Nothing is imported before Ctrl-C is handled, except what handles it.
"""

from __future__ import annotations

import _thread
import gc
import os
import signal
import sys
import time

_INTERRUPTED = 128 + signal.SIGINT

# The number of new containers at which Python looks for garbage. Its own, 700, is reached a hundred times while modules
# are imported, none of which is garbage; this one by commands that do much.
_COLLECTED = 100_000

# An item for each Ctrl-C.
_came: list[bool] = []


def main() -> int:
    """Return the exit code; 130 after Ctrl-C, at any time."""
    # Whoever runs commands in the background has it ignored.
    handles = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if handles:
        # An exception within an import could be swallowed, or be reported with a traceback by what imports.
        signal.signal(signal.SIGINT, _leave)
    gc.set_threshold(_COLLECTED, *gc.get_threshold()[1:])
    try:
        code = _run(handles)
    except BaseException:
        # Also what others made of KeyboardInterrupt: an error within a class is another one up to Python 3.11.
        if not _came:
            raise
        return _INTERRUPTED
    else:
        return _INTERRUPTED if _came else code
    finally:
        if handles:
            # While the interpreter ends.
            signal.signal(signal.SIGINT, _leave)
        if "numpy" not in sys.modules:
            # All that is left ends with the process: the interpreter need not look for garbage in it, which takes as
            # long as a short command. Where libraries in C++ have been used, it is to end their objects in order.
            gc.freeze()


def _run(handles: bool) -> int:
    command, arguments = sys.argv[1:2], sys.argv[2:]
    if command in (["opt"], ["translate"]):
        from vhlo_tools.cli.upstream import main as run_program

        return run_program(f"vhlo {command[0]}", arguments)
    from vhlo_tools.cli.main import import_command, main as run

    import_command(*command)
    if handles:
        # From here on, there may be something to clean up.
        sys.unraisablehook = _report
        signal.signal(signal.SIGINT, _interrupt)
    return run()


def _interrupt(*_: object) -> None:
    _came.append(True)
    _thread.start_new_thread(_insist, (_thread.get_ident(),))
    raise KeyboardInterrupt


def _insist(thread: int) -> None:
    """Interrupt a thread again if the exception was lost on its way.

    Python drops what finalizers and callbacks raise, and extensions clear errors that they did not expect.
    """
    while True:
        time.sleep(0.05)
        # A tuple up to Python 3.11.
        current = sys._current_exceptions().get(thread)
        error = current[1] if isinstance(current, tuple) else current
        while error is not None and not isinstance(error, KeyboardInterrupt):
            error = error.__cause__ or error.__context__
        if error is None:
            if hasattr(signal, "pthread_kill"):
                # Also what the thread waits for ends.
                signal.pthread_kill(thread, signal.SIGINT)
            else:
                signal.raise_signal(signal.SIGINT)
            return


def _report(unraisable: sys.UnraisableHookArgs) -> None:
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


def _leave(*_: object) -> None:
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
