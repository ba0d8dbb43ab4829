"""Fork server: a process that has imported only the bindings, and forks child processes.

It is started for one caller, forks on request, never creates an MLIR context, starts no threads, and ends with all its
children when the caller closes the connection. Python's ``multiprocessing.forkserver`` would run the main module of the
caller in every child, and is shared with other uses by the caller.
"""

from __future__ import annotations

import errno
import gc
import os
import pickle
import resource
import selectors
import shutil
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import Final

from vhlo_tools.bindings.isolation.messages import SharedMemory, exactly
from vhlo_tools.bindings.isolation.sandbox import confine, confine_reading, restrict
from vhlo_tools.bindings.isolation.worker import serve
from vhlo_tools.bindings.providers import get_provider
from vhlo_tools.errors import ProviderError
from vhlo_tools.records import dataclass
from vhlo_tools.system import die_with_parent

#: The encoding of a child's exit code: negative for a signal, as returned by ``os.waitstatus_to_exitcode``.
STATUS: Final = struct.Struct("<i")

_LENGTH: Final = struct.Struct("<I")
_DESCRIPTORS: Final = 6
#: What a child writes that has not even the memory for an answer (`replies.py` knows it).
_NO_MEMORY: Final = b"MemoryError\n"


@dataclass(frozen=True, slots=True)
class ForkRequest:
    path: tuple[str, ...]  # the caller's ``sys.path``
    modules: tuple[str, ...]  # imported before forking, so that children need not
    #: Programs, or folders of programs, that the child may start. With any, it may also write files in a folder of its
    #: own, which its temporary files go to, and which is deleted with it.
    tools: tuple[str, ...] = ()
    is_free: bool = False  # whether it may do what the caller may, such as to talk to a device


def ask(server: socket.socket, request: ForkRequest, descriptors: Iterable[int]) -> None:
    """Request a child from a fork server; the child gets copies of ``descriptors``.

    These are, in order: the socket for calls, the control socket (the server reports the child's number and exit code
    on it; closing it terminates the child), the pipe for output, the memory that the child reads, the memory that it
    writes, and the file of its notes.
    """
    body = pickle.dumps(request)
    socket.send_fds(server, [_LENGTH.pack(len(body))], list(descriptors))
    server.sendall(body)


def main(descriptor: int) -> None:
    try:
        _Server(socket.socket(fileno=descriptor)).run()
    finally:
        sys.stderr.flush()
        # Exit handlers are skipped: those of the bindings are for processes that have used the bindings.
        os._exit(0)


class _Server:
    def __init__(self, caller: socket.socket) -> None:
        self._caller = caller
        self._children: dict[int, socket.socket] = {}
        self._folders: dict[int, str] = {}
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        # Ctrl-C in a terminal reaches all of its processes; the caller handles it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        wake, woken = socket.socketpair()
        wake.setblocking(False)
        woken.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        import_bindings()
        self._selector.register(self._caller, selectors.EVENT_READ)
        self._selector.register(woken, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is woken:
                    woken.recv(4096)
                    self._reap(os.WNOHANG)
                elif key.fileobj is not self._caller:
                    # The caller has closed the socket of a child.
                    if key.data in self._children:
                        os.kill(key.data, signal.SIGKILL)
                        self._selector.unregister(key.fileobj)
                elif not self._fork():
                    for child in self._children:
                        os.kill(child, signal.SIGKILL)
                    self._reap(0)
                    return

    def _fork(self) -> bool:
        """Return False if the caller is gone."""
        try:
            head, descriptors, _, _ = socket.recv_fds(self._caller, _LENGTH.size, _DESCRIPTORS)
            body = exactly(self._caller, _LENGTH.unpack(head)[0]) if head else None
        except OSError:
            return False
        if body is None:
            return False
        request: ForkRequest = pickle.loads(body)
        sys.path[:] = request.path
        for module in request.modules:
            import_quietly(module)
        # Children need not search the objects that exist by now for garbage.
        gc.freeze()
        folder = tempfile.mkdtemp(prefix="vhlo_tools-") if request.tools else None
        parent = os.getpid()
        child = os.fork()
        if not child:
            self._become_child(descriptors, parent, folder, request)
        if folder is not None:
            self._folders[child] = folder
        control = socket.socket(fileno=descriptors[1])
        with suppress(OSError):
            control.sendall(STATUS.pack(child))
        for each in (descriptors[0], *descriptors[2:]):
            os.close(each)
        self._children[child] = control
        self._selector.register(control, selectors.EVENT_READ, child)
        return True

    def _become_child(self, descriptors: list[int], parent: int, folder: str | None, request: ForkRequest) -> None:
        """Serve requests in the child, and never return."""
        try:
            die_with_parent(parent)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
            connection, control, output, incoming, outgoing, notes = descriptors
            self._selector.close()
            for other in (self._caller, *self._children.values()):
                other.close()
            os.close(control)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
            if folder is not None:
                os.environ["TMPDIR"] = folder
                confine(folder, request.tools)
            elif not request.is_free:
                confine_reading()
            if not request.is_free:
                restrict(tools=folder is not None)
            memories = SharedMemory(incoming, writable=False), SharedMemory(outgoing, writable=True)
            serve(socket.socket(fileno=connection), *memories, notes)
        except OSError as error:
            # Of others, the caller is gone, or has dropped this child.
            if error.errno == errno.ENOMEM:
                os.write(2, _NO_MEMORY)
        except MemoryError:
            # There was not enough left even for the answer.
            os.write(2, _NO_MEMORY)
        finally:
            os._exit(0)

    def _reap(self, options: int) -> None:
        while self._children:
            child, status = os.waitpid(-1, options)
            if not child:
                return
            control = self._children.pop(child)
            if (folder := self._folders.pop(child, None)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
            with suppress(KeyError):
                self._selector.unregister(control)
            with suppress(OSError):
                control.sendall(STATUS.pack(os.waitstatus_to_exitcode(status)))
            control.close()


def import_bindings() -> None:
    """Import the modules that creating a context needs; a missing one is left to the call that needs it."""
    with suppress(ProviderError):
        provider = get_provider()
        for module in ("ir", "_mlir_libs._stablehlo", *(registrar.module for registrar in provider.registrars)):
            import_quietly(f"{provider.prefix}.{module}")


def import_quietly(module: str) -> None:
    """Import a module if possible, without the threads of numpy's OpenBLAS, which a forked child would lack."""
    if module in sys.modules:
        return
    threads = os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with suppress(Exception):
        import_module(module)
    del os.environ["OPENBLAS_NUM_THREADS"]
    if threads is not None:
        os.environ["OPENBLAS_NUM_THREADS"] = threads
