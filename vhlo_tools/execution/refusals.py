"""Errors that name the op that an engine cannot run, and its location."""

from __future__ import annotations

from vhlo_tools.bindings import Operation, source_of
from vhlo_tools.errors import EngineError
from vhlo_tools.program import place_of


def described(op: Operation, name: str) -> str:
    return f"{_place(op, name)}: {op.name}"


def refusal(op: Operation, name: str, reason: str, engine: str = "the reference interpreter") -> EngineError:
    return EngineError(f"{_place(op, name)}: {engine} cannot run {op.name}: {reason}")


def _place(op: Operation, name: str) -> str:
    return str(place_of(source_of(op.location), name) or name)
