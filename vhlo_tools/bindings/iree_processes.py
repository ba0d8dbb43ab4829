"""IREE in child processes: a crash, a hang or memory exhaustion there does not affect the caller.

Compilers are kept warm, and may start IREE's linker, which is a program of its own; compiled programs run in the
children of :mod:`vhlo_tools.bindings.isolation`, which may do nothing but compute.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import threading
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.bindings import isolation
from vhlo_tools.bindings.iree_server import COMPILER, MISSING, RUNTIME, ArrayType
from vhlo_tools.errors import EngineCrashError, MissingExtraError
from vhlo_tools.spec import known_releases
from vhlo_tools.system import after_fork
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.bindings.isolation.process import Worker

#: The distribution of the compiler.
IREE_PACKAGE: Final = "iree-base-compiler"

_SERVER: Final = "vhlo_tools.bindings.iree_server"

#: The modules that a compiling child needs, imported once by the process that forks children.
_MODULES: Final = (COMPILER, _SERVER)

#: The idle compilers that are kept.
_KEPT: Final = 2

#: Programs up to this size are sent with each run; larger ones are sent only where they are missing.
_SMALL: Final = 1 << 16


def require_iree() -> None:
    """Raise ``MissingExtraError`` unless IREE is installed; nothing is imported."""
    missing = [each for each in (COMPILER.rpartition(".")[0], RUNTIME) if not _is_installed(each)]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise MissingExtraError(
            f"the engine iree needs {' and '.join(missing)}, which {are} not installed: pip install 'vhlo-tools[iree]'"
        )


def iree_version() -> Version:
    """Return the newest StableHLO version that the installed compiler reads, as far as releases are known.

    A release that is newer than all known ones reads at least what the newest known one does.
    """
    known = [each for each in known_releases() if each.package == IREE_PACKAGE]
    try:
        installed = version(IREE_PACKAGE)
    except PackageNotFoundError:  # built from source
        return known[-1].stablehlo
    read = (each.stablehlo for each in reversed(known) if _numbers(each.release) <= _numbers(installed))
    return next(read, known[0].stablehlo)


def compile_with_iree(name: str, artifact: bytes, limits: isolation.Limits) -> bytes:
    """``artifact`` is a portable artifact of :func:`iree_version` or older; ``name`` is for messages."""
    return _compilers.compile(name, artifact, limits)


class IsolatedIreeProgram:
    def __init__(self, name: str, compiled: bytes, results: Sequence[ArrayType]) -> None:
        self._name, self._compiled, self._results = name, compiled, list(results)
        self._key = hashlib.sha256(compiled).digest()

    def call(self, inputs: Sequence[Any], limits: isolation.Limits) -> list[Any]:
        small = len(self._compiled) <= _SMALL
        results = self._called(self._compiled if small else None, inputs, limits)
        if results == MISSING:
            results = self._called(self._compiled, inputs, limits)
        self._check(results)
        returned: list[Any] = results
        return returned

    def _called(self, compiled: bytes | None, inputs: Sequence[Any], limits: isolation.Limits) -> Any:
        whole = None if compiled is None else memoryview(compiled)
        return isolation.call(
            f"{_SERVER}:run_here", self._key, whole, self._name, list(inputs), self._results, limits=limits
        )

    def _check(self, results: Any) -> None:
        """Check that results have the declared types: a child may send anything."""
        import numpy as np

        fits = isinstance(results, list) and len(results) == len(self._results)
        for array, (dtype, shape) in zip(results if fits else (), self._results, strict=False):
            fits = fits and isinstance(array, np.ndarray) and array.dtype == dtype and array.ndim == len(shape)
            fits = fits and all(size in (None, found) for size, found in zip(shape, array.shape, strict=True))
        if not fits:
            raise EngineCrashError("the child process of IREE returned something else than results of its types")


class _Compilers:
    """The children that compile, each for one call at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()

    def compile(self, name: str, artifact: bytes, limits: isolation.Limits) -> bytes:
        worker = self._taken()
        try:
            compiled = worker.call(f"{_SERVER}:compile_here", (name, memoryview(artifact)), limits)
            if not isinstance(compiled, bytes):
                raise EngineCrashError("the child process of IREE's compiler returned something else than a program")
            return compiled
        finally:
            self._give_back(worker)

    def forget(self) -> None:
        """For the end of this process, or a forked copy of it."""
        for each in (*self._idle, *self._busy):
            each.forget()

    def _taken(self) -> Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.reusable:
                    break
                worker.end()
            else:
                worker = isolation.start(_MODULES, tools=_tools())
            self._busy.add(worker)
            return worker

    def _give_back(self, worker: Worker) -> None:
        with self._lock:
            self._busy.discard(worker)
            if worker.reusable and len(self._idle) < _KEPT:
                self._idle.append(worker)
                return
        worker.end()


@cache
def _tools() -> tuple[str, ...]:
    """Return the programs that the compiler starts: its linker, by the shell, and the loader of both."""
    spec = find_spec("iree.compiler._mlir_libs")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    loaders = [each for each in ("/lib64/ld-linux-x86-64.so.2", "/bin/sh") if Path(each).exists()]
    return (*folders, *(os.path.realpath(each) for each in loaders))


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of the package that contains it
        return False


def _numbers(release: str) -> tuple[int, ...]:
    """Return the numbers of a release, for comparison, without a suffix as in ``3.14.0rc1``."""
    numbers = []
    for part in release.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


_compilers = _Compilers()


def _after_fork() -> None:
    """Start with no children in a fork of this process, because they belong to the original."""
    global _compilers
    _compilers.forget()
    _compilers = _Compilers()


atexit.register(lambda: _compilers.forget())
after_fork(_after_fork)
