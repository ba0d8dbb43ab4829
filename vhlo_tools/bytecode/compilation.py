"""Detect whether the bytecode modules are compiled (``docs/developing.md``)."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec


def is_compiled() -> bool:
    found = find_spec("vhlo_tools.bytecode.ir_decoding")
    return found is not None and (found.origin or "").endswith(tuple(EXTENSION_SUFFIXES))
