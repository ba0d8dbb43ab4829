"""Whether the modules that read and write bytecode are compiled: ``docs/developing.md`` says how they can be."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec


def is_compiled() -> bool:
    """Return whether programs are read and written by compiled modules, which do the same in less time."""
    found = find_spec("vhlo_tools.bytecode.ir_decoding")
    return found is not None and (found.origin or "").endswith(tuple(EXTENSION_SUFFIXES))
