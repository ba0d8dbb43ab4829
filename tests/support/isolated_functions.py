"""What tests call in child processes: some of it ends them."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

import vhlo_tools as vt
from vhlo_tools.bindings import MLIRFailure, get_provider
from vhlo_tools.bindings.isolation import note, retire_after_call, worker
from vhlo_tools.bindings.isolation.limits import settle_after_call
from vhlo_tools.execution.stepping.steps import evaluate_here
from vhlo_tools.findings import Diagnostic, Finding, SourceLocation

DIAGNOSTIC = Diagnostic("error", "no", 'loc("a":1:2)', SourceLocation("a", 1, 2), (Diagnostic("note", "why", ""),))
FINDING = Finding("tan", "error", "op", "it has tan", op="stablehlo.tan", location=SourceLocation("model.py", 3, 4))
ERRORS: list[Exception] = [
    vt.VhloToolsError("a"),
    vt.InvalidVersionError("a"),
    vt.LayoutError("a"),
    vt.UnknownTargetError("a"),
    vt.InvalidSpecificationError("a"),
    vt.ProviderError("a"),
    vt.ReleaseEnvironmentError("a"),
    vt.ResultsError("a"),
    vt.RevisionError("a"),
    vt.SettingsError("a"),
    vt.ManifestError("a"),
    vt.ManifestError("a", ["size: expected 1, found 2"]),
    vt.SignatureError("a"),
    vt.MigrationError("a"),
    vt.WorkerError("a"),
    vt.MissingExtraError("a"),
    vt.InvalidUrlError("a"),
    vt.StoreError("a"),
    vt.ObjectChangedError("a"),
    vt.InvalidProgramError("a", [DIAGNOSTIC]),
    vt.MalformedArtifactError("a", offset=7, section="ir", diagnostics=[DIAGNOSTIC]),
    vt.AliasError("a", [FINDING]),
    vt.AliasError("a"),
    vt.BufferDeletedError("a"),
    vt.VerificationError("a"),
    vt.GoldenError("a"),
    vt.UnsupportedFeatureError("a", [FINDING]),
    vt.DowngradeError("a", [FINDING, FINDING]),
    vt.EngineError("a", [DIAGNOSTIC]),
    vt.EngineStartError("a"),
    vt.EngineCrashError("a", signal="SIGABRT", op="stablehlo.add", output="LLVM ERROR"),
    vt.EngineCrashError("a", exit_code=3),
    vt.EngineTimeoutError("a", seconds=1.5, op="stablehlo.while", cpu_seconds=1.4),
    vt.InvalidInputError("a", [DIAGNOSTIC]),
    MLIRFailure([DIAGNOSTIC]),
]


class StubbornError(vt.VhloToolsError):
    """An error that has no pickle that can be read."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} {other}")


def evaluate(prefix: str, digest: str, bytecode: Any, arrays: list[np.ndarray]) -> list[np.ndarray]:
    return evaluate_here(get_provider(prefix), digest, bytes(bytecode), arrays)


def same(*values: Any) -> Any:
    return values


def are_writable(arrays: list[np.ndarray]) -> list[bool]:
    return [array.flags.writeable for array in arrays]


def process() -> int:
    return os.getpid()


def process_after(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def fail(index: int) -> None:
    raise ERRORS[index]


def fail_stubbornly() -> None:
    raise StubbornError(1, 2)


def fail_in_python() -> None:
    note("stablehlo.add")
    raise KeyError("weights")


def leave() -> None:
    sys.exit(3)


def abort() -> None:
    note("stablehlo.divide at model.py:3:4")
    os.write(2, b"x" * 300_000 + b"\nLLVM ERROR: unreachable\n")
    os.abort()


def corrupt_heap() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    block = libc.malloc(ctypes.c_size_t(5000))
    libc.free(block)
    libc.free(block)


def read_null() -> None:
    ctypes.string_at(0)


def end_by(number: int) -> None:
    os.kill(os.getpid(), number)


def exit_at_once() -> None:
    os._exit(7)


def hang() -> None:
    note("stablehlo.while")
    while True:
        pass


def talk() -> str:
    print("to stdout")
    print("to stderr", file=sys.stderr)
    os.write(1, b"raw\n" * 100_000)
    return "said"


def garble() -> None:
    """Answer with what is no answer."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
        if os.path.exists(f"/proc/self/fd/{descriptor}") and stat.S_ISSOCK(os.fstat(descriptor).st_mode):  # noqa: PTH110
            os.write(descriptor, b"\x08\0\0\0\0\0\0\0garbage!")
    time.sleep(60)


def send(body: bytes) -> None:
    """Send a reply of one's own, as a child that was taken over could."""
    child = worker._child
    assert child is not None
    child._connection.sendall(len(body).to_bytes(8, "little") + body)
    time.sleep(60)


def announce(size: int) -> None:
    """Announce a reply of a size, and send none."""
    assert worker._child is not None
    worker._child._connection.sendall(size.to_bytes(8, "little"))
    time.sleep(60)


def fill_shared_memory(size: int) -> None:
    """Let the memory for results grow."""
    assert worker._child is not None
    os.posix_fallocate(worker._child._outgoing.descriptor, 0, size)


def raise_limits() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def try_to(do: str, path: str, process: int) -> str:
    libc = ctypes.CDLL(None, use_errno=True)

    def system_call(number: int, *arguments: Any) -> int:
        if (result := libc.syscall(number, *arguments)) < 0:
            raise OSError(ctypes.get_errno(), "")
        return int(result)

    tried: dict[str, Any] = {
        "read a file": lambda: open(path),  # noqa: PTH123, SIM115
        "list a folder": lambda: os.listdir(os.path.dirname(path)),  # noqa: PTH120, PTH208
        "read the environment of a process": lambda: open(f"/proc/{process}/environ"),  # noqa: PTH123, SIM115
        "create a file": lambda: open(path, "x"),  # noqa: PTH123, SIM115
        "write a file": lambda: open(path, "r+"),  # noqa: PTH123, SIM115
        "truncate a file": lambda: os.open(path, os.O_RDONLY | os.O_TRUNC),
        "create a file without a name": lambda: os.open("/tmp", os.O_TMPFILE | os.O_RDWR),
        "make a folder": lambda: os.mkdir(path + "s"),  # noqa: PTH102
        "delete a file": lambda: os.unlink(path),  # noqa: PTH108
        "rename a file": lambda: os.rename(path, path + "s"),  # noqa: PTH104
        "link a file": lambda: os.symlink(path, path + "s"),  # noqa: PTH211
        "change rights": lambda: os.chmod(path, 0o777),  # noqa: PTH101
        "open a file by another call": lambda: system_call(437, -100, path.encode(), b"\0" * 24, 24),
        "make a socket": lambda: socket.socket(),
        "make a socket of this machine": lambda: socket.socket(socket.AF_UNIX),
        "start a process": lambda: subprocess.run(["true"], check=False),
        "fork": os.fork,
        "be another program": lambda: os.execv("/bin/true", ["true"]),
        "signal a process": lambda: os.kill(process, signal.SIGTERM),
        "signal a process through a file": lambda: fcntl.fcntl(0, fcntl.F_SETOWN, process),
        "seal memory of the caller": lambda: fcntl.fcntl(0, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE),
        "trace a process": lambda: system_call(101, 16, process, 0, 0),
        "write the memory of a process": lambda: system_call(311, process, 0, 0, 0, 0, 0),
        "write its own file of memory": lambda: open("/proc/self/mem", "r+b"),  # noqa: PTH123, SIM115
        "share memory": lambda: mmap.mmap(-1, 4096),
        "make a file in memory": lambda: os.memfd_create("x"),
        "queue work for the kernel": lambda: system_call(425, 1, 0),
        "raise its limits": raise_limits,
        "take back the filter": lambda: system_call(157, 22, 2, 0),
    }
    try:
        tried[do]()
    except (OSError, ValueError) as error:
        return type(error).__name__
    return "done"


def make_temporary_file() -> str:
    """Write a temporary file, and return where."""
    # The folder is looked up once, in the server that this process is a copy of.
    with tempfile.NamedTemporaryFile("w", dir=os.environ["TMPDIR"]) as file:
        file.write("text")
        file.flush()
        return file.name


def start(program: str) -> str:
    """Start a program, and return what comes of it."""
    try:
        subprocess.run([program, "-c", ":"], check=False)
    except OSError as error:
        return type(error).__name__
    return "done"


def take_memory(size: int) -> int:
    return len(bytearray(size))


def abort_without_memory() -> None:
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def zeros(size: int) -> np.ndarray:
    return np.zeros(size, np.uint8)


def hold(size: int) -> int:
    """Keep memory beyond the call."""
    held.append(np.ones(size, np.uint8))
    return os.getpid()


def hold_from_now(size: int) -> int:
    """Keep memory that does not count as growth."""
    settle_after_call()
    return hold(size)


held: list[np.ndarray] = []


def tire() -> int:
    retire_after_call()
    return os.getpid()


def answer_to_interrupts() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def new_contexts() -> int:
    """Return how many contexts there are when one is made: none came with the process."""
    provider = get_provider()
    context = provider.new_context()
    count = int(provider.ir.Context._get_live_count())
    del context
    return count
