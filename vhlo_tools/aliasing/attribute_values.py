"""Attributes as plain Python values, independent of their origin: bytes of an artifact, or an MLIR module."""

from __future__ import annotations

from typing import TypeAlias

from vhlo_tools.records import dataclass


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit attribute, whose only information is its presence."""


@dataclass(frozen=True, slots=True)
class Other:
    """An attribute of a kind that is not used for aliases."""

    text: str


#: An attribute. A tuple is an array, or a tensor of rank 1, of 64-bit integers; a list contains attributes. Integers
#: have any width, and are negative if MLIR reads them as negative numbers of that width.
Plain: TypeAlias = "bool | int | str | tuple[int, ...] | Unit | Other | list[Plain] | dict[str, Plain]"

_SHOWN = 60


def integer(value: Plain | None) -> int | None:
    """Return what XLA reads as an integer. To MLIR, a boolean is a signed integer of one bit: ``true`` is -1."""
    if isinstance(value, bool):
        return -int(value)
    return value if isinstance(value, int) else None


def describe(value: Plain) -> str:
    """Return an attribute approximately in MLIR syntax, shortened."""
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
