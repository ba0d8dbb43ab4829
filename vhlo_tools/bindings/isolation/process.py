"""Handles of the fork server and of a child process, for the caller."""

from __future__ import annotations

import math
import mmap
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from vhlo_tools.bindings.isolation.limits import NOTE_SIZE, Deadline, Limits, cpu_seconds, memory_usage, read_note
from vhlo_tools.bindings.isolation.messages import LENGTH, Answer, Request, SharedMemory, anonymous_file, frame, pack
from vhlo_tools.bindings.isolation.replies import (
    Asked,
    Ready,
    Reply,
    Returned,
    crash,
    decode_reply,
    failure,
    timeout,
    unpack_value,
)
from vhlo_tools.bindings.isolation.server import STATUS, ForkRequest, ask
from vhlo_tools.errors import EngineCrashError, EngineError, EngineStartError

# The module search path is the caller's, without the current folder.
_START: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; from vhlo_tools.bindings.isolation.server import main; "
    "main(int(sys.argv[1]))"
)

# Importing the bindings may have to read hundreds of megabytes from a slow disk.
_SECONDS_TO_START: Final = 120.0
_SECONDS_TO_END: Final = 5.0

# The number of bytes kept of a child's output: the last ones.
_OUTPUT_KEPT: Final = 1 << 14

_RECEIVED_AT_ONCE: Final = 1 << 18

# What the shared memory of a child may have beyond the limit of output: room between arrays, and arguments of calls.
_SLACK: Final = 256 << 20

# The largest message of a child: arrays and long texts are in shared memory.
_LARGEST_MESSAGE: Final = 64 << 20


class Server:
    """A fork server of this process; it ends with this process."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._log = anonymous_file()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _START, str(theirs.fileno()), *_path()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._log,
                    pass_fds=[theirs.fileno()],
                    # Keep signals of the caller's terminal away from the server.
                    start_new_session=True,
                )
        except OSError as error:
            self._socket.close()
            os.close(self._log)
            raise EngineStartError(f"no child process can be started with {sys.executable!r}: {error}") from error

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def log(self) -> str:
        size = os.fstat(self._log).st_size
        return os.pread(self._log, _OUTPUT_KEPT, max(0, size - _OUTPUT_KEPT)).decode(errors="replace").strip()

    def fork(
        self, descriptors: Sequence[int], modules: Sequence[str] = (), tools: Sequence[str] = (), *, free: bool = False
    ) -> None:
        # Modules that the caller has imported are likely to be used by its functions in the child too.
        imported = tuple(name for name in ("numpy", "ml_dtypes") if name in sys.modules)
        ask(self._socket, ForkRequest(_path(), (*imported, *modules), tuple(tools), free), descriptors)

    def end(self) -> None:
        self._socket.close()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._log)

    def forget(self) -> None:
        """For a forked copy of the process that owns the server."""
        self._socket.close()
        os.close(self._log)
        self._process.returncode = 0  # prevents Popen's warning about a process that was not waited for


class Worker:
    """A child process, for one call at a time; creating it does not wait until the process is ready."""

    def __init__(
        self, server: Server, modules: Sequence[str] = (), tools: Sequence[str] = (), *, free: bool = False
    ) -> None:
        self._server = server
        self._started = self._retired = self._calling = False
        self._output = bytearray()
        self._process: int | None = None
        # Other threads may ask whether it is alive at any time. During a call, what can be read is the call's.
        self._asking = threading.Lock()
        self._connection, connection = socket.socketpair()
        self._control, control = socket.socketpair()
        self._pipe, pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        self._notes = anonymous_file()
        self._outgoing = SharedMemory(anonymous_file(), writable=True)
        self._incoming = SharedMemory(anonymous_file(), writable=False)
        self._poll, self._ends = select.poll(), select.poll()
        self._poll.register(self._connection, select.POLLIN)
        self._poll.register(self._pipe, select.POLLIN)
        self._ends.register(self._control, select.POLLIN)
        try:
            os.ftruncate(self._notes, NOTE_SIZE)
            files = (self._outgoing.descriptor, self._incoming.descriptor, self._notes)
            server.fork([connection.fileno(), control.fileno(), pipe, *files], modules, tools, free=free)
        except BaseException:
            self.forget()
            raise
        finally:
            connection.close()
            control.close()
            os.close(pipe)

    @property
    def alive(self) -> bool:
        """Whether the child can serve another call; it can as long as one is in progress."""
        if self._connection.fileno() < 0:
            return False
        with self._asking:
            if self._calling:
                return True
            if self._process is None and self._ends.poll(0):
                self._process = self._status()
            # Before the first call it sends that it is ready; any other readable data now means that it has ended.
            return not self._ends.poll(0)

    @property
    def reusable(self) -> bool:
        return not self._retired and self.alive

    @property
    def shared(self) -> int:
        return self._outgoing.size + self._incoming.size

    def call(
        self, function: str, arguments: tuple[object, ...], limits: Limits, functions: Sequence[Callable[..., Any]] = ()
    ) -> Any:
        """Call ``package.module:function`` in the child, which is terminated if no valid reply arrives.

        The child may call ``functions`` by number; each runs in the thread of the caller, and its time does not count.
        """
        self._retired = True
        with self._asking:
            self._calling = True
        try:
            try:
                request = frame(Request(function, pack(arguments, self._outgoing), limits.output))
            except OSError as error:
                said = f"the memory that is shared with a child process cannot be written: {error.strerror or error}"
                raise EngineError(said) from error
            self._await_start()
            self._apply(limits)
            reply, result = self._exchange(function, request, limits, functions)
        except BaseException:
            # Also for KeyboardInterrupt: the result is no longer needed.
            self.end()
            raise
        finally:
            self._calling = False
        self._retired = reply.retire
        if isinstance(reply.outcome, Returned):
            return result
        raise result

    def end(self) -> int | None:
        """Return the exit code, negative for a signal; ``None`` if it is unknown."""
        if self._connection.fileno() < 0:
            return None
        code = None
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
            if self._process is None:
                self._process = self._status()
            code = self._status()
        self._read_output()
        self.forget()
        return code

    def forget(self) -> None:
        """Close the descriptors without waiting; the child ends when the last copy of them is closed."""
        if self._connection.fileno() < 0:
            return
        for each in (self._connection, self._control, self._outgoing, self._incoming):
            each.close()
        os.close(self._pipe)
        os.close(self._notes)

    def _await_start(self) -> None:
        if self._started:
            return
        try:
            message = self._message(Deadline(Limits(seconds=_SECONDS_TO_START), self._cpu_seconds))
            self._started = message is not None and isinstance(decode_reply(message)[0].outcome, Ready)
            self._ends.register(self._connection, select.POLLIN)
        except TimeoutError:
            raise EngineStartError(f"no child process was ready within {_SECONDS_TO_START} s") from None
        if not self._started:
            code = self.end()
            said = self._said() or self._server.log or f"its exit code is {code}"
            raise EngineStartError(f"no child process can be started with {sys.executable!r}: {said}")

    def _cpu_seconds(self) -> float | None:
        return None if self._process is None else cpu_seconds(self._process)

    def _status(self) -> int | None:
        """What the server sends: the process id, and then the exit code; ``None`` if the server is gone."""
        self._control.settimeout(_SECONDS_TO_END)
        with suppress(OSError):
            if len(said := self._control.recv(STATUS.size)) == STATUS.size:
                return int(STATUS.unpack(said)[0])
        return None

    def _apply(self, limits: Limits) -> None:
        """Limit the memory of the child from this process: a child that sets its own limits could also remove them."""
        if self._process is None:
            self._process = self._status()
        if self._process is None or (usage := memory_usage(self._process)) is None:
            return
        # Imported here because it is not on every system; those that say what a process uses have it.
        import resource

        data = None if limits.memory is None else usage[5] * mmap.PAGESIZE + limits.memory
        files = None if limits.output is None else limits.output + _SLACK
        for kind, limit in ((resource.RLIMIT_DATA, data), (resource.RLIMIT_FSIZE, files)):
            # If it has ended meanwhile, the exchange that follows reports it.
            with suppress(OSError):
                _, hard = resource.prlimit(self._process, kind)
                if limit is None or (hard != resource.RLIM_INFINITY and hard < limit):
                    limit = hard
                resource.prlimit(self._process, kind, (limit, hard))

    def _exchange(
        self, function: str, message: bytes, limits: Limits, functions: Sequence[Callable[..., Any]]
    ) -> tuple[Reply, Any]:
        deadline = Deadline(limits, self._cpu_seconds)
        self._output.clear()
        while True:
            try:
                self._connection.settimeout(None if (left := deadline.left) is None else max(left, 0.001))
                # If the child is gone, reading returns an end of file.
                with suppress(BrokenPipeError, ConnectionResetError):
                    self._connection.sendall(message)
                if (body := self._message(deadline)) is None:
                    raise self._crash(limits)
                reply, value = self._opened(function, body, limits)
            except TimeoutError:
                raise timeout(read_note(self._notes), limits, deadline.used) from None
            except (MemoryError, EngineCrashError):
                raise
            except Exception as error:
                # The child corrupted its own memory without crashing, or is no longer ours.
                raise self._crash(limits, f"sent a reply that cannot be read ({error})") from error
            if not isinstance(reply.outcome, Asked):
                return reply, value
            if not 0 <= reply.outcome.function < len(functions):
                raise self._crash(limits, "called a function that does not exist")
            began = time.monotonic()
            try:
                answer = Answer(pack(functions[reply.outcome.function](*value), self._outgoing, after=True))
            except Exception as error:
                # The function has kept its error.
                answer = Answer(None, str(error))
            message = frame(answer)
            deadline.postpone(time.monotonic() - began)

    def _opened(self, function: str, body: bytearray, limits: Limits) -> tuple[Reply, Any]:
        """Copy the contents of a reply to memory of this process."""
        reply, inline = decode_reply(body)
        match reply.outcome:
            case Ready():
                raise ValueError("it came before")
            case Returned():
                return reply, unpack_value(reply.outcome.value, self._incoming, inline, limits.output)
            case Asked():
                arguments = unpack_value(reply.outcome.arguments, self._incoming, inline, limits.output)
                if not isinstance(arguments, tuple):
                    raise ValueError("its arguments are no tuple")
                return reply, arguments
        return reply, failure(function, reply.outcome, read_note(self._notes), limits)

    def _crash(self, limits: Limits, how: str | None = None) -> EngineCrashError:
        op, code = read_note(self._notes), self.end()
        return crash(code, op, self._said(), limits, how)

    def _message(self, deadline: Deadline) -> bytearray | None:
        data, size = bytearray(), LENGTH.size
        while len(data) < size:
            if (left := deadline.left) is not None and left <= 0:
                raise TimeoutError
            for descriptor, _ in self._poll.poll(None if left is None else math.ceil(left * 1000)):
                if descriptor == self._pipe:
                    self._read_output()
                    continue
                try:
                    part = self._connection.recv(min(size - len(data), _RECEIVED_AT_ONCE))
                except ConnectionResetError:
                    part = b""
                if not part:
                    return None
                data += part
            if size == len(data) == LENGTH.size:
                (length,) = LENGTH.unpack(data)
                if length > _LARGEST_MESSAGE:
                    raise ValueError(f"it announces {length} bytes")
                size += length
        return data[LENGTH.size :]

    def _read_output(self) -> None:
        """Only the end of the output is kept."""
        with suppress(BlockingIOError):
            while part := os.read(self._pipe, _OUTPUT_KEPT):
                self._output += part
                del self._output[:-_OUTPUT_KEPT]
            with suppress(KeyError):
                self._poll.unregister(self._pipe)

    def _said(self) -> str:
        return self._output.decode(errors="replace").strip()


def _path() -> tuple[str, ...]:
    """Return ``sys.path`` with absolute paths, because the server may run in another folder."""
    with suppress(FileNotFoundError):  # if the current folder was deleted
        return tuple(os.path.abspath(each) for each in sys.path if isinstance(each, str))  # noqa: PTH100
    return tuple(each for each in sys.path if isinstance(each, str) and os.path.isabs(each))  # noqa: PTH117
