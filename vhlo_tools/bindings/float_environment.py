"""How the processor treats floats in a thread: in XLA's threads numbers that are very close to zero are zero."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

__all__ = ["with_all_floats"]

#: More than ``fenv_t`` of any C library takes.
_SIZE: Final = 256


def _library() -> ctypes.CDLL | None:
    """Return the C library, which Python has loaded; ``None`` where its functions are not found by their names."""
    try:
        library = ctypes.CDLL(None)
        for function in (library.fegetenv, library.fesetenv):
            function.argtypes = [ctypes.c_void_p]
    except (OSError, TypeError, AttributeError):
        return None
    return library


def _current() -> Any:
    environment = ctypes.create_string_buffer(_SIZE)
    if _LIBRARY is not None:
        _LIBRARY.fegetenv(environment)
    return environment


_LIBRARY: Final = _library()
#: That of the thread which loads this module, and is none of XLA's.
_OF_PYTHON: Final = _current()


def with_all_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``, which a thread of XLA's calls, to compute as it does in one of Python's."""
    library = _LIBRARY
    if library is None:
        return function

    def called(*arguments: Any) -> Any:
        before = _current()
        library.fesetenv(_OF_PYTHON)
        try:
            return function(*arguments)
        finally:
            library.fesetenv(before)

    return called
