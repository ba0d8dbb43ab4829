"""The command line: called in this process, in a copy of a warm one, or as a process of its own.

And the processes that commands give work to, which can be started once for many commands.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, cast
from unittest.mock import patch

from support.forked_python import COMMAND, CONVERTING, ForkedPython
from vhlo_tools.cli.main import main
from vhlo_tools.stores import Workers

#: What commands handle, and a process would leave behind with its end.
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STREAMS: Final = ("stdin", "stdout", "stderr")
_START: Final = Workers._started


def vhlo(
    *arguments: str,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    input: bytes | None = None,  # noqa: A002 - as in `subprocess.run`
    check: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command, and return its exit code and what it wrote: in this process, unless there are other options.

    Args:
        arguments: What follows `vhlo`.
        cwd: The folder that it runs in.
        env: All variables of its environment.
        input: What it reads from stdin, by default nothing.
        check: Whether an exit code other than 0 is an error.
        options: What only a process can do: those of :func:`subprocess.run`.
    """
    if options:
        return vhlo_process(*arguments, cwd=cwd, env=env, input=input, check=check, **options)

    def run(files: tuple[int, int, int]) -> int:
        if arguments[:1] in (("opt",), ("translate",)):
            # They fork, which is not for a process in which libraries have started threads.
            return warm_python().start(COMMAND, *arguments, files=files).wait()
        with standard_files(*files):
            return main(arguments)

    done = called(run, given=input or b"", folder=cwd, environment=env)
    done.args = ["vhlo", *arguments]
    if check:
        done.check_returncode()
    return done


def vhlo_process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command as a process, with options of :func:`subprocess.run`, for tests whose subject is the process."""
    return subprocess.run([sys.executable, "-m", "vhlo_tools.cli.main", *arguments], capture_output=True, **options)


@cache
def warm_python() -> ForkedPython:
    """Return a Python, one for this process, that has imported all that commands do, and forks for what it runs."""
    server = ForkedPython(CONVERTING)
    atexit.register(server.close)
    return server


def called(
    run: Callable[[tuple[int, int, int]], int],
    *,
    given: bytes = b"",
    folder: Path | str | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Call a function with the numbers of the files that are stdin, stdout and stderr of what it runs.

    Args:
        run: The function, which returns an exit code.
        given: What stdin holds.
        folder: The folder of this process meanwhile.
        environment: All variables of this process meanwhile.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in _STREAMS]
        files[0].write(given)
        files[0].seek(0)
        with process_state(folder, environment):
            code = run((files[0].fileno(), files[1].fileno(), files[2].fileno()))
        for each in files[1:]:
            each.seek(0)
        return subprocess.CompletedProcess([], code, files[1].read(), files[2].read())


@contextmanager
def process_state(folder: Path | str | None, environment: Mapping[str, str] | None) -> Iterator[None]:
    """Let this process have another folder and other variables, and restore them, with the handlers of signals."""
    before, variables = Path.cwd(), dict(os.environ)
    handlers = {each: signal.getsignal(each) for each in _SIGNALS}
    try:
        if folder is not None:
            os.chdir(folder)
        if environment is not None:
            os.environ.clear()
            os.environ.update(environment)
        yield
    finally:
        for each, handler in handlers.items():
            if signal.getsignal(each) is not handler:
                signal.signal(each, handler)
        if dict(os.environ) != variables:
            os.environ.clear()
            os.environ.update(variables)
        os.chdir(before)


@contextmanager
def standard_files(*files: int) -> Iterator[None]:
    """Let open files be stdin, stdout and stderr of this process, for Python and for all libraries.

    Args:
        files: Their numbers, in this order.
    """
    before = [(getattr(sys, name), getattr(sys, f"__{name}__")) for name in _STREAMS]
    for each, _ in before[1:]:
        each.flush()
    kept = [os.dup(number) for number in range(len(_STREAMS))]
    made = []
    try:
        for number, (name, (_, origin)) in enumerate(zip(_STREAMS, before, strict=True)):
            os.dup2(files[number], number)
            # As Python makes them when it starts.
            buffering = 1 if number == 2 or (number == 1 and os.isatty(1)) else -1
            mode = "w" if number else "r"
            stream = open(  # noqa: SIM115
                number, mode, buffering, encoding="utf-8", errors=origin.errors, closefd=False
            )
            made.append(stream)
            # By the latter libraries find the size of a terminal.
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        yield
    finally:
        try:
            for stream in made:
                stream.flush()
        finally:
            for number, (name, (now, origin)) in enumerate(zip(_STREAMS, before, strict=True)):
                setattr(sys, name, now)
                setattr(sys, f"__{name}__", origin)
                os.dup2(kept[number], number)
                os.close(kept[number])


@contextmanager
def kept_workers() -> Iterator[list[int]]:
    """Let commands have their work done by processes that stay: started once for this process, not once for each.

    For tests whose subject is not how they start and end. Each is given the folder and the variables of this process
    with each piece of work, as one that is started has them.

    Yields:
        The numbers of processes that have been asked for.
    """
    asked: list[int] = []

    def give(_: Workers, jobs: int) -> ProcessPoolExecutor:
        asked.append(jobs)
        # Duck-typed: the methods that `Workers` calls.
        return cast(ProcessPoolExecutor, _kept(jobs))

    with patch.object(Workers, "_started", give):
        yield asked


@cache
def _kept(jobs: int) -> _Kept:
    return _Kept(jobs)


class _Kept:
    def __init__(self, jobs: int) -> None:
        # As its processes end with this one, whatever ends it.
        self._workers = Workers(jobs=jobs)
        self._pool = _START(self._workers, jobs)

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Future[Any]:
        return self._pool.submit(_do, os.getcwd(), dict(os.environ), function, *arguments, **options)  # noqa: PTH109

    def shutdown(self, **_: Any) -> None: ...


def _do(folder: str, environment: dict[str, str], function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    os.chdir(folder)
    if dict(os.environ) != environment:
        os.environ.clear()
        os.environ.update(environment)
    return function(*arguments, **options)
