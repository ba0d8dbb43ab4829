"""Attributes as plain Python values, whatever they were read from: bytes of an artifact, or a module of MLIR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Other", "Plain", "Unit", "describe", "integer"]


@dataclass(frozen=True, slots=True)
class Unit:
    """The attribute that says no more than that it is there."""


@dataclass(frozen=True, slots=True)
class Other:
    """An attribute of a kind that no spelling of aliases has.

    Attributes:
        text: What it looks like, for messages.
    """

    text: str


#: An attribute. A tuple is an array or a tensor of 64-bit integers, of one dimension; a list holds attributes. Integers
#: are of any width, and what MLIR takes for a negative number of that width is negative.
Plain: TypeAlias = "bool | int | str | tuple[int, ...] | Unit | Other | list[Plain] | dict[str, Plain]"

_SHOWN = 60


def integer(value: Plain | None) -> int | None:
    """Return what XLA takes for an integer; ``None`` if it is none.

    A boolean is an integer of one bit to MLIR, which is signed: ``true`` is -1.
    """
    if isinstance(value, bool):
        return -int(value)
    return value if isinstance(value, int) else None


def describe(value: Plain) -> str:
    """Return an attribute as MLIR spells it, more or less."""
    text = _text(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _text(value: Plain) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            return f'"{value}"'
        case tuple():
            return f"array<i64: {', '.join(map(str, value))}>" if value else "array<i64>"
        case list():
            return f"[{', '.join(map(describe, value))}]"
        case dict():
            return f"{{{', '.join(f'{key} = {describe(each)}' for key, each in value.items())}}}"
        case Unit():
            return "unit"
        case Other():
            return value.text
