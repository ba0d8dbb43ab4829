"""Main loop of a child process: serve requests until the connection closes."""

from __future__ import annotations

import mmap
import socket
import sys
import threading
import traceback
from importlib import import_module
from typing import Any, Final

from vhlo_tools.bindings.isolation import replies
from vhlo_tools.bindings.isolation.limits import attach, is_retiring, is_settling, memory_usage, note
from vhlo_tools.bindings.isolation.messages import LENGTH, Answer, Request, SharedMemory, receive, unpack
from vhlo_tools.bindings.isolation.replies import OutputTooLarge

# A child is replaced when its memory has grown by this many bytes, or after this many calls.
_GROWTH: Final = 512 << 20
_CALLS: Final = 1000


class CallerFailed(Exception):  # noqa: N818 - the error itself stays with the caller
    ...


class _Child:
    def __init__(self, connection: socket.socket, incoming: SharedMemory, outgoing: SharedMemory) -> None:
        self._connection, self._incoming, self._outgoing = connection, incoming, outgoing
        self._asking = threading.Lock()

    def send(self, outcome: object, inline: bytes = b"", *, retire: bool = False) -> None:
        body = replies.encode_reply(outcome, inline, retire=retire)
        self._connection.sendall(LENGTH.pack(len(body)) + body)

    def serve(self) -> None:
        self.send(replies.Ready())
        at_first, calls = _resident(), 0
        while (request := receive(self._connection)) is not None:
            note("")
            outcome, inline = self._outcome(request)
            calls += 1
            if is_settling():
                at_first = _resident()
            retire = is_retiring() or calls >= _CALLS or _resident() - at_first > _GROWTH
            sys.stdout.flush()
            self.send(outcome, inline, retire=retire)
            # Otherwise they would be kept alive until the next call.
            del request, outcome, inline

    def ask(self, function: int, arguments: tuple[Any, ...]) -> list[Any]:
        with self._asking:
            packed, inline = replies.pack_value(arguments, self._outgoing)
            self.send(("asked", function, packed), inline)
            answer = receive(self._connection)
            if not isinstance(answer, Answer) or answer.value is None:
                raise CallerFailed(answer.said if isinstance(answer, Answer) else "the caller has gone")
            # Another thread's answer overwrites them.
            return [each if each is None else each.copy() for each in unpack(answer.value, self._incoming)]

    def _outcome(self, request: Request) -> tuple[object, bytes]:
        try:
            module, _, function = request.function.partition(":")
            value = getattr(import_module(module), function)(*unpack(request.arguments, self._incoming))
            packed, inline = replies.pack_value(value, self._outgoing, request.output)
            return ("returned", packed), inline
        except OutputTooLarge as error:
            return replies.TooLarge(error.size), b""
        except MemoryError:
            return replies.OutOfMemory(), b""
        except BaseException as error:
            failed = replies.Failed(type(error).__qualname__, str(error), traceback.format_exc())
            return replies.encode_error(error) or failed, b""


_child: _Child | None = None


def serve(connection: socket.socket, incoming: SharedMemory, outgoing: SharedMemory, notes: int) -> None:
    global _child
    attach(notes)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    _child = _Child(connection, incoming, outgoing)
    _child.serve()


def ask(function: int, *arguments: Any) -> list[Any]:
    """Call one of the functions that the caller passed to the call in progress, from any thread."""
    assert _child is not None
    return _child.ask(function, arguments)


def _resident() -> int:
    usage = memory_usage("self")
    return (usage[1] - usage[2]) * mmap.PAGESIZE if usage else 0
