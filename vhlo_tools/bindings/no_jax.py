"""Prevent jaxlib from importing jax, which it uses only for jax's own types and works without.

Importing jax takes longer than most programs run.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any


class _NoJax:
    """An import finder that fails for jax in threads within :class:`WithoutJax`."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "jax" and threading.get_ident() in self.threads:
            raise ImportError("XLA's client needs no jax")


_NO_JAX = _NoJax()


class WithoutJax:
    """A context manager that prevents jaxlib from importing jax in this thread, unless jax is already imported.

    It is a class, and not a generator, for speed: each run of a program enters it several times.
    """

    __slots__ = ("_thread",)

    def __init__(self) -> None:
        self._thread: int | None = None

    def __enter__(self) -> None:
        if "jax" in sys.modules:
            return
        if _NO_JAX not in sys.meta_path:
            sys.meta_path.insert(0, _NO_JAX)
        thread = threading.get_ident()
        if thread not in _NO_JAX.threads:
            self._thread = thread
            _NO_JAX.threads.add(thread)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._thread is not None:
            _NO_JAX.threads.discard(self._thread)


def allowing_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``function``, for calls from jaxlib, with imports of jax allowed."""

    def allowed(*arguments: Any) -> Any:
        thread = threading.get_ident()
        held = thread in _NO_JAX.threads
        _NO_JAX.threads.discard(thread)
        try:
            return function(*arguments)
        finally:
            if held:
                _NO_JAX.threads.add(thread)

    return allowed
