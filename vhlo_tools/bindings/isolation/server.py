"""The fork server: a process that has imported the bindings, and nothing else, and makes child processes of itself.

It is started for one caller, forks whenever that asks, never makes an MLIR context, starts no threads, and ends with
all its children when the caller is gone. Python's own, ``multiprocessing.forkserver``, would run the main module of the
caller in every child, and is shared with whatever else the caller does with it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import resource
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Final

from vhlo_tools.bindings.isolation.shared import SharedMemory
from vhlo_tools.bindings.isolation.worker import serve
from vhlo_tools.bindings.providers import get_provider
from vhlo_tools.errors import ProviderError

__all__ = ["STATUS", "ForkRequest", "ask", "main"]

#: How the exit code of a child is sent: negative is the number of a signal, as of ``os.waitstatus_to_exitcode``.
STATUS: Final = struct.Struct("<i")

_LENGTH: Final = struct.Struct("<I")
_DESCRIPTORS: Final = 6
_SET_PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG of prctl(2)


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """What a new child needs beside its descriptors.

    Attributes:
        path: The caller's ``sys.path``.
        modules: What to import before forking, so that no child has to.
    """

    path: tuple[str, ...]
    modules: tuple[str, ...]


def ask(server: socket.socket, request: ForkRequest, descriptors: Iterable[int]) -> None:
    """Ask a fork server for a child; it gets copies of ``descriptors``.

    These are, in order: the socket for calls, the socket on which the server tells how the child ended and which ends
    the child when it is closed, the pipe for what the child prints, the memory that the child reads, the memory that it
    writes, and the file of its notes.

    Raises:
        OSError: If the server is gone.
    """
    body = pickle.dumps(request)
    socket.send_fds(server, [_LENGTH.pack(len(body))], list(descriptors))
    server.sendall(body)


def main(descriptor: int) -> None:
    """Serve the caller at the other end of the socket ``descriptor``, and end with it."""
    try:
        _Server(socket.socket(fileno=descriptor)).run()
    finally:
        sys.stderr.flush()
        # No exit handlers: those of the bindings are for processes that used them.
        os._exit(0)


@dataclass
class _Server:
    caller: socket.socket
    children: dict[int, socket.socket] = field(default_factory=dict)
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def run(self) -> None:
        # Ctrl-C in a terminal reaches all of its processes; the caller decides what it means.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        wake, woken = socket.socketpair()
        wake.setblocking(False)
        woken.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        import_bindings()
        self.selector.register(self.caller, selectors.EVENT_READ)
        self.selector.register(woken, selectors.EVENT_READ)
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is woken:
                    woken.recv(4096)
                    self.reap(os.WNOHANG)
                elif key.fileobj is not self.caller:
                    self.kill(key.data)
                elif not self.fork():
                    self.end()
                    return

    def fork(self) -> bool:
        """Make the child that is asked for; return False if the caller is gone."""
        try:
            head, descriptors, _, _ = socket.recv_fds(self.caller, _LENGTH.size, _DESCRIPTORS)
            if not head:
                return False
            request: ForkRequest = pickle.loads(_exactly(self.caller, _LENGTH.unpack(head)[0]))
        except OSError:
            return False
        sys.path[:] = request.path
        for module in request.modules:
            import_quietly(module)
        # What is here already, no child needs to look through for garbage.
        gc.freeze()
        parent = os.getpid()
        child = os.fork()
        if not child:
            self.become_child(descriptors, parent)
        control = socket.socket(fileno=descriptors[1])
        for each in (descriptors[0], *descriptors[2:]):
            os.close(each)
        self.children[child] = control
        self.selector.register(control, selectors.EVENT_READ, child)
        return True

    def become_child(self, descriptors: list[int], parent: int) -> None:
        """Answer calls, in the child, and never return."""
        try:
            _die_with_parent(parent)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
            connection, control, output, incoming, outgoing, notes = descriptors
            self.selector.close()
            self.caller.close()
            for other in self.children.values():
                other.close()
            os.close(control)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
            serve(
                socket.socket(fileno=connection),
                SharedMemory(incoming, writable=False),
                SharedMemory(outgoing, writable=True),
                notes,
            )
        except OSError:
            pass  # the caller is gone, or has given this child up
        finally:
            os._exit(0)

    def kill(self, child: int) -> None:
        """End a child whose caller has closed its socket."""
        if child in self.children:
            os.kill(child, signal.SIGKILL)
            self.selector.unregister(self.children[child])

    def reap(self, options: int) -> None:
        """Tell callers of children that have ended."""
        while self.children:
            child, status = os.waitpid(-1, options)
            if not child:
                return
            control = self.children.pop(child)
            with suppress(KeyError):
                self.selector.unregister(control)
            with suppress(OSError):
                control.sendall(STATUS.pack(os.waitstatus_to_exitcode(status)))
            control.close()

    def end(self) -> None:
        """End all children."""
        for child in self.children:
            os.kill(child, signal.SIGKILL)
        self.reap(0)


def import_bindings() -> None:
    """Import what makes a context, as far as it is installed; what is missing is said by the call that needs it."""
    try:
        provider = get_provider()
    except ProviderError:
        return
    for module in ("ir", "_mlir_libs._stablehlo", *(registrar.module for registrar in provider.registrars)):
        import_quietly(f"{provider.prefix}.{module}")


def import_quietly(module: str) -> None:
    """Import a module if it can be imported, without the threads that numpy would start and a child would not have."""
    if module in sys.modules:
        return
    threads = os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with suppress(Exception):
        import_module(module)
    del os.environ["OPENBLAS_NUM_THREADS"]
    if threads is not None:
        os.environ["OPENBLAS_NUM_THREADS"] = threads


def _die_with_parent(parent: int) -> None:
    """End this process when the server ends, even if that is killed while this process is in a call that never ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += (part := connection.recv(size - len(data)))
        if not part:
            raise OSError("the caller is gone")
    return data
