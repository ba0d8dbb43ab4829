"""The child process: it answers calls until nobody is there to make them."""

from __future__ import annotations

import pickle
import resource
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from vhlo_tools.bindings.isolation.messages import Answer, OutputTooLarge, Packed, Request, frame, pack, receive, unpack
from vhlo_tools.bindings.isolation.notes import attach, is_worn_out, note
from vhlo_tools.bindings.isolation.shared import SharedMemory
from vhlo_tools.bindings.provider import MLIRFailure
from vhlo_tools.bindings.xla import XlaFailure
from vhlo_tools.errors import VhloToolsError

__all__ = ["READY", "serve"]

#: What a child says first.
READY: Final = "ready"

# A child that holds so many bytes more than when it was new, or has answered so often, makes room for a new one.
_GROWTH: Final = 512 << 20
_CALLS: Final = 1000

# What crosses as it is; all other exceptions are of classes that the caller perhaps does not have.
_OWN_ERRORS: Final = (VhloToolsError, MLIRFailure, XlaFailure)


def serve(connection: socket.socket, incoming: SharedMemory, outgoing: SharedMemory, notes: int) -> None:
    """Answer calls until the other side of ``connection`` is gone.

    Args:
        connection: Where requests come from.
        incoming: The memory with what they take.
        outgoing: The memory for what they return.
        notes: The file for what is being done.
    """
    attach(notes)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    connection.sendall(frame(READY))
    at_first, calls = _resident(), 0
    while (request := receive(connection)) is not None:
        note("")
        answer = _answer(request, incoming, outgoing)
        calls += 1
        retire = is_worn_out() or calls >= _CALLS or _resident() - at_first > _GROWTH
        sys.stdout.flush()
        connection.sendall(frame(Answer(answer.kind, answer.value, retire)))
        # Or they would be held until the next call.
        del request, answer


def _answer(request: Request, incoming: SharedMemory, outgoing: SharedMemory) -> Answer:
    try:
        with _memory_limit(request.memory):
            return Answer("returned", _called(request, incoming, outgoing))
    except OutputTooLarge as error:
        return Answer("too large", error.size)
    except MemoryError:
        return Answer("out of memory")
    except BaseException as error:
        if isinstance(error, _OWN_ERRORS) and _crosses(error):
            return Answer("raised", error)
        return Answer("failed", (type(error).__qualname__, str(error), traceback.format_exc()))


def _crosses(error: BaseException) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:
        return False


def _called(request: Request, incoming: SharedMemory, outgoing: SharedMemory) -> Packed:
    function = _function(request.function)
    return pack(function(*unpack(request.arguments, incoming, own=False)), outgoing, request.output)


def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


@contextmanager
def _memory_limit(memory: int | None) -> Iterator[None]:
    """Let this process hold so many bytes more of data than now."""
    usage = _usage()
    if memory is None or usage is None:
        yield
        return
    before, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = usage[5] * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, hard))


def _resident() -> int:
    """Return how many bytes this process holds for itself, as far as the operating system says."""
    usage = _usage()
    return (usage[1] - usage[2]) * resource.getpagesize() if usage else 0


def _usage() -> list[int] | None:
    """Return the pages this process holds, as proc(5) has them in ``statm``; ``None`` where there is no such file."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - in every call, and twice as fast
            return [int(each) for each in file.read().split()]
    except OSError:
        return None
