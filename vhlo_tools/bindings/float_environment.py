"""Run host callbacks with denormals enabled: XLA's threads flush denormals to zero."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

#: An upper bound of the size of ``fenv_t`` in any C library.
_SIZE: Final = 256


def _library() -> ctypes.CDLL | None:
    """Return ``None`` if the functions of the C library cannot be found."""
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
#: The environment of the thread that imports this module, which is not a thread of XLA.
_OF_PYTHON: Final = _current()


def with_all_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``function``, for calls from XLA's threads, with the floating-point environment of Python's threads."""
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
