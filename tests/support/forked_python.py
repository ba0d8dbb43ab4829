"""A Python that starts, and imports, once, and forks for each piece of code that it runs.

To that code it is a fresh interpreter: what one piece imports, changes or leaves behind reaches no other, and each ends
as Python ends, with its exit handlers, an exit code, and a traceback where there is one. It costs a fork, not a start.
What is decided while Python starts is the same for all: its options, ``PYTHONPATH``, and the seed of hashes. What a
process does behind its exit handlers, to take apart what is left, is left out where something was imported first.

The server has only imported what it is told to, so that code also sees which modules are loaded. It is asked through a
socket, along which come the files that are to be stdin, stdout and stderr.
"""

from __future__ import annotations

import marshal
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

__all__ = ["COMMAND", "CONVERTING", "IMPORTS", "ForkedPython", "Running"]

#: Runs the command line as its entry point does, with the arguments.
COMMAND: Final = "import sys; from vhlo_tools.cli.entry import main; sys.exit(main())"
#: More than anything takes here, beside whatever else runs.
_SECONDS: Final = 300.0
_NUMBER: Final = 4

_SERVER: Final = r'''
import os, sys
BEFORE = set(sys.modules)
# Tests take from `os` what other systems lack.
import _socket, gc, marshal, posix

def take_request():
    """Return in each process that is to run code, with what is asked of it."""
    listening = _socket.socket(fileno=int(sys.argv[1]))
    # Whoever started it may be killed.
    listening.settimeout(1.0)
    started_by = os.getppid()
    while True:
        reap()
        try:
            descriptor = listening._accept()[0]
        except TimeoutError:
            if os.getppid() != started_by:
                os._exit(0)
            continue
        if not posix.fork():
            break
        os.close(descriptor)
    listening.close()
    connection = _socket.socket(fileno=descriptor)
    connection.settimeout(None)
    head, files, _, _ = connection.recvmsg(NUMBER, _socket.CMSG_SPACE(12))
    files = [int.from_bytes(files[0][2][at:at + 4], sys.byteorder) for at in (0, 4, 8)]
    size, data = int.from_bytes(head, "little"), b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            os._exit(1)
        data += part
    process = posix.fork()
    if process:
        for each in files:
            os.close(each)
        try:
            connection.sendall(process.to_bytes(NUMBER, "little"))
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            connection.sendall(code.to_bytes(NUMBER, "little", signed=True))
        finally:
            # Whoever asked may have gone.
            os._exit(0)
    connection.close()
    for to, each in enumerate(files):
        os.dup2(each, to)
    for each in files:
        if each > 2:
            os.close(each)
    return marshal.loads(data)

def reap():
    try:
        while os.waitpid(-1, posix.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass

def begin(code, arguments, folder, environment):
    """Make this process what an interpreter is that was started with this, and return the code and its namespace."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        was = getattr(sys, name)
        buffering = 1 if number == 2 or (number == 1 and os.isatty(1)) else -1
        new = open(number, mode, buffering, encoding=was.encoding, errors=was.errors, closefd=False)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    main = type(sys)("__main__")
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    for name in OURS:
        sys.modules.pop(name, None)
    return compile(code, "<string>", "exec"), vars(main)

def end(code):
    """End as Python does, except that what is left is not taken apart, which takes longer than most commands.

    Each object would be copied for it, since this process shares them with the server.
    """
    import atexit
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    atexit._run_exitfuncs()
    for each in (sys.stdout, sys.stderr):
        try:
            each.flush()
        except OSError:
            # Python says so, and has a code of its own for it.
            code = 120
    os._exit(code & 255)

NUMBER = 4
SETUP, QUICK_END = sys.argv[2], sys.argv[3] == "quick"
OURS = {"_socket", "gc", "marshal"} - BEFORE
if SETUP:
    OURS = ()
    # Threads of numpy would be lacking in what is forked.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    exec(SETUP, {"__name__": "__main__"})
    # None of it is garbage.
    gc.freeze()
if os.path.isdir("/proc/self/task") and len(os.listdir("/proc/self/task")) != 1:
    sys.exit("threads have been started, which a fork would lack: " + SETUP)
asked = begin(*take_request())
if not QUICK_END:
    exec(*asked)
    sys.exit()
code = 0
try:
    exec(*asked)
except SystemExit as error:
    code = error.code
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
except Exception:
    sys.excepthook(*sys.exc_info())
    code = 1
end(code or 0)
'''

# A program that shells start, in a few milliseconds: it hands its files and arguments to the server, and waits.
_CLIENT: Final = r"""
import _socket, marshal, os, sys
path, code, *arguments = sys.argv[1:]
asked = marshal.dumps((code, arguments, os.getcwd(), dict(os.environ)))
connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
connection.connect(path)
files = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
connection.sendmsg([len(asked).to_bytes(4, "little")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
connection.sendall(asked)
connection.recv(4, _socket.MSG_WAITALL)
code = int.from_bytes(connection.recv(4, _socket.MSG_WAITALL), "little", signed=True)
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
"""


class Running:
    """A process that runs code.

    Attributes:
        number: Its number.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.number = int.from_bytes(self._receive(), "little")

    def wait(self, seconds: float = _SECONDS) -> int:
        """Wait until it ends, and return its exit code, negative for a signal.

        Raises:
            TimeoutError: If it does not end; it is killed.
        """
        self._connection.settimeout(seconds)
        try:
            return int.from_bytes(self._receive(), "little", signed=True)
        except TimeoutError:
            os.kill(self.number, 9)
            raise
        finally:
            self._connection.close()

    def _receive(self) -> bytes:
        data = self._connection.recv(_NUMBER, socket.MSG_WAITALL)
        assert len(data) == _NUMBER, "the server has ended, or could not fork"
        return data


class ForkedPython:
    """A server that forks.

    Attributes:
        folder: A folder of its own, which goes with it.

    Args:
        setup: What it runs first: the imports that all have in common.
        options: The options of Python.
        environment: The variables that it starts with, and those of what it runs; by default those of this process at
            the time.
        folder: The folder that it starts in, which matters to what it imports.
        whole_end: Whether what is forked takes apart what is left, behind its exit handlers, which takes longer than
            most commands; by default where nothing was imported before.
    """

    def __init__(
        self,
        setup: str = "",
        *,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        whole_end: bool | None = None,
    ) -> None:
        self._environment = environment
        # The paths of sockets are short.
        self.folder = Path(tempfile.mkdtemp(prefix="forks-"))
        self._socket = str(self.folder / "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(self._socket)
            listening.listen(64)
            number = listening.fileno()
            end = "whole" if (not setup if whole_end is None else whole_end) else "quick"
            command = [sys.executable, *options, "-c", _SERVER, str(number), setup, end]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[number],
                env=None if environment is None else dict(environment),
                cwd=folder,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the server; what it has started goes on."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(
        self,
        code: str,
        *arguments: str,
        files: tuple[int, int, int],
        folder: Path | str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Running:
        """Start to run code.

        Args:
            code: The code.
            arguments: What it finds in ``sys.argv`` after the first.
            files: The files that are its stdin, stdout and stderr.
            folder: The folder that it runs in, by default that of this process.
            variables: Variables of its environment beside those of the server.
        """
        environment = {**(os.environ if self._environment is None else self._environment), **(variables or {})}
        asked = marshal.dumps((code, list(arguments), str(folder or Path.cwd()), environment))
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(_SECONDS)
        connection.connect(self._socket)
        socket.send_fds(connection, [len(asked).to_bytes(_NUMBER, "little")], files)
        connection.sendall(asked)
        return Running(connection)

    def run(
        self,
        code: str,
        *arguments: str,
        given: bytes = b"",
        folder: Path | str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run code to its end, and return what it said.

        Args:
            code: The code.
            arguments: What it finds in ``sys.argv`` after the first.
            given: What it reads from stdin.
            folder: The folder that it runs in, by default that of this process.
            variables: Variables of its environment beside those of the server.
        """
        with ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            files[0].write(given)
            files[0].seek(0)
            numbers = (files[0].fileno(), files[1].fileno(), files[2].fileno())
            code_of_end = self.start(code, *arguments, files=numbers, folder=folder, variables=variables).wait()
            for each in files[1:]:
                each.seek(0)
            out, error = (each.read().decode() for each in files[1:])
        return subprocess.CompletedProcess(["python", "-c", code, *arguments], code_of_end, out, error)

    def write_program(self, path: Path, code: str) -> None:
        """Write a program for shells that runs code here, with its arguments, files, folder and environment."""
        client = path.parent / f".{path.name}.py"
        client.write_text(_CLIENT)
        command = [sys.executable, "-I", "-S", str(client), self._socket, code]
        path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        path.chmod(0o755)


#: Imports all commands, and all that is public.
IMPORTS: Final = """
import vhlo_tools
from vhlo_tools.cli.main import cli, import_command
for name in vhlo_tools.__all__:
    getattr(vhlo_tools, name)
for name in cli.list_commands(None):
    import_command(name)
import email.feedparser, numpy.random, vhlo_tools.cli.entry, vhlo_tools.conversion.fidelity, vhlo_tools.gate.contents
"""
#: Imports the bindings too.
CONVERTING: Final = f"""
{IMPORTS}
import vhlo_tools.bindings.isolation.process
from vhlo_tools.bindings.isolation.server import import_bindings, import_quietly
import_bindings()
for name in ("dialects.func", "passmanager"):
    import_quietly("jaxlib.mlir." + name)
"""
