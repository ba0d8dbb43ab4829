"""Declared tables: columns with names, kinds of values, descriptions, and the origin of each value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

from vhlo_tools.records import dataclass

_Row = TypeVar("_Row", contravariant=True)

#: ``text`` is anything that has a text, such as a version; ``day`` a date; ``seconds`` a duration as a number.
PlainKind = Literal["text", "flag", "integer", "seconds", "day"]


@dataclass(frozen=True, slots=True)
class ListOf:
    """The kind of a list."""

    item: CellKind


@dataclass(frozen=True, slots=True)
class StructOf:
    """The kind of a value with columns of its own."""

    columns: tuple[Column[Any], ...]


CellKind = PlainKind | ListOf | StructOf


@dataclass(frozen=True, slots=True)
class Column(Generic[_Row]):
    name: str  # lower case with underscores, for queries without quotes
    kind: CellKind  # of the values, any of which may be missing
    description: str  # with the unit
    value: Callable[[_Row], Any]


@dataclass(frozen=True, slots=True)
class Table(Generic[_Row]):
    name: str  # by which a reader knows what the columns are
    columns: tuple[Column[_Row], ...]
