"""Errors that name the op which the interpreter cannot run, and where it stands."""

from __future__ import annotations

from vhlo_tools.bindings import Operation, source_of
from vhlo_tools.errors import EngineError
from vhlo_tools.program import place_of

__all__ = ["refusal"]


def refusal(op: Operation, name: str, reason: str) -> EngineError:
    """Return the error that ``op`` of the program ``name`` cannot be run."""
    place = place_of(source_of(op.location), name)
    return EngineError(f"{place or name}: the reference interpreter cannot run {op.name}: {reason}")
