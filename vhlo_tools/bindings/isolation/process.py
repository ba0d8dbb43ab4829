"""The caller's side of the fork server, and of one child process."""

from __future__ import annotations

import math
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from vhlo_tools.bindings.isolation.failures import crash, failure, timeout
from vhlo_tools.bindings.isolation.limits import Limits
from vhlo_tools.bindings.isolation.messages import Answer, Request, frame, is_whole, pack, parse_frame, unpack
from vhlo_tools.bindings.isolation.notes import NOTE_SIZE, read_note
from vhlo_tools.bindings.isolation.server import STATUS, ForkRequest, ask
from vhlo_tools.bindings.isolation.shared import SharedMemory, anonymous_file
from vhlo_tools.errors import EngineCrashError, EngineStartError

__all__ = ["Server", "Worker"]

# The path is the caller's: nothing of the folder it is started in.
_START: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; from vhlo_tools.bindings.isolation.server import main; "
    "main(int(sys.argv[1]))"
)

# Importing the bindings may have to read hundreds of megabytes from a slow disk.
_SECONDS_TO_START: Final = 120.0
_SECONDS_TO_END: Final = 5.0

# Of what a child writes, so many bytes are kept: the last ones.
_OUTPUT_KEPT: Final = 1 << 14

_RECEIVED_AT_ONCE: Final = 1 << 18


class Server:
    """A fork server of this process; it ends with it.

    Raises:
        EngineStartError: If it cannot be started.
    """

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._log = anonymous_file()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _START, str(theirs.fileno()), *_path()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._log,
                    pass_fds=[theirs.fileno()],
                    # Signals of the caller's terminal are none of its business.
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            os.close(self._log)
            raise EngineStartError(f"no child process can be started with {sys.executable!r}: {error}") from error
        self._socket = ours

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    @property
    def log(self) -> str:
        """What it wrote on stderr."""
        size = os.fstat(self._log).st_size
        return os.pread(self._log, _OUTPUT_KEPT, max(0, size - _OUTPUT_KEPT)).decode(errors="replace").strip()

    def fork(self, descriptors: Sequence[int]) -> None:
        """Ask for a child with these descriptors.

        Raises:
            OSError: If the server is gone.
        """
        # What the caller has imported, its functions in the child will want too.
        modules = tuple(name for name in ("numpy", "ml_dtypes") if name in sys.modules)
        ask(self._socket, ForkRequest(_path(), modules), descriptors)

    def end(self) -> None:
        """End it and all its children."""
        self._socket.close()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._log)

    def forget(self) -> None:
        """Let go of it, in a fork of the process that it belongs to."""
        self._socket.close()
        os.close(self._log)
        self._process.returncode = 0  # or Python would complain that nobody waits for it


class Worker:
    """A child process, for one call at a time.

    Nobody waits here for it to be ready.

    Args:
        server: What makes it.

    Raises:
        OSError: If the server is gone, or the system has no descriptors or memory left.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._started = False
        self._retired = False
        self._output = bytearray()
        self._connection, connection = socket.socketpair()
        self._control, control = socket.socketpair()
        self._pipe, pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        self._notes = anonymous_file()
        self._outgoing = SharedMemory(anonymous_file(), writable=True)
        self._incoming = SharedMemory(anonymous_file(), writable=False)
        self._poll = select.poll()
        self._poll.register(self._connection, select.POLLIN)
        self._poll.register(self._pipe, select.POLLIN)
        self._ends = select.poll()
        self._ends.register(self._control, select.POLLIN)
        try:
            os.ftruncate(self._notes, NOTE_SIZE)
            files = (self._outgoing.descriptor, self._incoming.descriptor, self._notes)
            server.fork([connection.fileno(), control.fileno(), pipe, *files])
        except BaseException:
            self.forget()
            raise
        finally:
            connection.close()
            control.close()
            os.close(pipe)

    @property
    def reusable(self) -> bool:
        """Whether it lives and can answer another call."""
        # Before its first call it says that it is ready; whatever else there is to read now is that it ended.
        return not self._retired and not self._ends.poll(0)

    @property
    def shared(self) -> int:
        """How many bytes of shared memory it keeps."""
        return self._outgoing.size + self._incoming.size

    def call(self, function: str, arguments: tuple[object, ...], limits: Limits) -> Any:
        """Call a function there; after anything but a result, and an answer of the function itself, it is gone.

        Raises:
            EngineCrashError: If it dies.
            EngineTimeoutError: If it takes too long.
            EngineError: If it takes too much, or the function raises what is no error of the toolkit.
            BaseException: What the function raises, if that is an error of the toolkit.
        """
        self._retired = True
        request = frame(Request(function, pack(arguments, self._outgoing), limits.memory, limits.output))
        try:
            self._await_start()
            answer = self._exchange(request, limits)
            result = self._opened(answer, limits)
        except BaseException:
            # Ctrl-C too: what it is doing interests nobody any more.
            self.end()
            raise
        self._retired = answer.retire
        if answer.kind == "returned":
            return result
        raise failure(function, answer, read_note(self._notes), limits)

    def end(self) -> int | None:
        """End it, and return the exit code, negative for a signal; ``None`` if nobody knows."""
        if self._connection.fileno() < 0:
            return None
        status = b""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
            self._control.settimeout(_SECONDS_TO_END)
            status = self._control.recv(STATUS.size)
        self._read_output()
        self.forget()
        return STATUS.unpack(status)[0] if len(status) == STATUS.size else None

    def forget(self) -> None:
        """Let go of it, but do not end it: that is done by closing the last copy of the descriptors."""
        if self._connection.fileno() < 0:
            return
        self._connection.close()
        self._control.close()
        self._outgoing.close()
        self._incoming.close()
        os.close(self._pipe)
        os.close(self._notes)

    def _await_start(self) -> None:
        if self._started:
            return
        try:
            self._started = self._message(time.monotonic() + _SECONDS_TO_START) is not None
            self._ends.register(self._connection, select.POLLIN)
        except TimeoutError:
            raise EngineStartError(f"no child process was ready within {_SECONDS_TO_START} s") from None
        if not self._started:
            code = self.end()
            said = self._said() or self._server.log or f"its exit code is {code}"
            raise EngineStartError(f"no child process can be started with {sys.executable!r}: {said}")

    def _exchange(self, request: bytes, limits: Limits) -> Answer:
        """Return the answer to a request."""
        deadline = None if limits.seconds is None else time.monotonic() + limits.seconds
        self._output.clear()
        try:
            self._connection.settimeout(limits.seconds)
            # Of a child that is gone there is an end of file to read, which says it as well.
            with suppress(BrokenPipeError, ConnectionResetError):
                self._connection.sendall(request)
            message = self._message(deadline)
        except TimeoutError:
            raise timeout(read_note(self._notes), limits) from None
        if message is None:
            raise self._crash(limits)
        answer = self._unpickled(lambda: parse_frame(message), limits)
        assert isinstance(answer, Answer)
        return answer

    def _opened(self, answer: Answer, limits: Limits) -> Any:
        """Return what an answer holds, in memory of this process."""
        if answer.kind != "returned":
            return None
        return self._unpickled(lambda: unpack(answer.value, self._incoming, own=True), limits)

    def _unpickled(self, read: Callable[[], Any], limits: Limits) -> Any:
        try:
            return read()
        except MemoryError:
            raise
        except Exception as error:
            # It wrote over its own memory and lived.
            raise self._crash(limits, f"gave an answer that cannot be read ({error})") from error

    def _crash(self, limits: Limits, how: str | None = None) -> EngineCrashError:
        op, code = read_note(self._notes), self.end()
        return crash(code, op, self._said(), limits, how)

    def _message(self, deadline: float | None) -> bytearray | None:
        """Return the next message, as it is sent, or ``None`` if the child is gone.

        Raises:
            TimeoutError: If there is none by then.
        """
        data = bytearray()
        while not is_whole(data):
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError
            for descriptor, _ in self._poll.poll(None if left is None else math.ceil(left * 1000)):
                if descriptor == self._pipe:
                    self._read_output()
                    continue
                try:
                    part = self._connection.recv(_RECEIVED_AT_ONCE)
                except ConnectionResetError:
                    part = b""
                if not part:
                    return None
                data += part
        return data

    def _read_output(self) -> None:
        """Read what it has written, of which only the last is kept."""
        with suppress(BlockingIOError):
            while part := os.read(self._pipe, _OUTPUT_KEPT):
                self._output += part
                del self._output[:-_OUTPUT_KEPT]
            with suppress(KeyError):
                self._poll.unregister(self._pipe)

    def _said(self) -> str:
        return self._output.decode(errors="replace").strip()


def _path() -> tuple[str, ...]:
    """Return ``sys.path`` as it is understood here, which may be another folder than where the server was started."""
    with suppress(FileNotFoundError):  # of a folder that is gone
        return tuple(os.path.abspath(each) for each in sys.path if isinstance(each, str))  # noqa: PTH100
    return tuple(each for each in sys.path if isinstance(each, str) and os.path.isabs(each))  # noqa: PTH117
