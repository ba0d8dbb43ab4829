"""jax kept out, where jaxlib would import it for the sake of jax's own types, and does without them if there is no jax.

To import jax takes longer than most programs run.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["allowing_jax", "without_jax"]


class _NoJax:
    """Finds no jax for threads that are within :func:`without_jax`."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise for jax, and leave everything else to others."""
        if name == "jax" and threading.get_ident() in self.threads:
            raise ImportError("XLA's client needs no jax")


_NO_JAX = _NoJax()


@contextmanager
def without_jax() -> Iterator[None]:
    """Keep jaxlib from importing jax in this thread, unless somebody has imported it."""
    if "jax" in sys.modules:
        yield
        return
    if _NO_JAX not in sys.meta_path:
        sys.meta_path.insert(0, _NO_JAX)
    thread = threading.get_ident()
    nested = thread in _NO_JAX.threads
    _NO_JAX.threads.add(thread)
    try:
        yield
    finally:
        if not nested:
            _NO_JAX.threads.discard(thread)


def allowing_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``, which jaxlib calls, so that it may import jax."""

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
