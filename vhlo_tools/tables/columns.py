"""Declared tables: columns with names, kinds of values, descriptions, and where each value comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

from vhlo_tools.records import dataclass

_Row = TypeVar("_Row", contravariant=True)

#: ``text`` is anything that has a text, such as a version; ``day`` a date; ``seconds`` a duration as a number.
PlainKind = Literal["text", "flag", "integer", "seconds", "day"]


@dataclass(frozen=True, slots=True)
class ListOf:
    """The kind of a list.

    Attributes:
        item: The kind of its items.
    """

    item: CellKind


@dataclass(frozen=True, slots=True)
class StructOf:
    """The kind of a value with columns of its own.

    Attributes:
        columns: The columns, which take their values from the value.
    """

    columns: tuple[Column[Any], ...]


CellKind = PlainKind | ListOf | StructOf


@dataclass(frozen=True, slots=True)
class Column(Generic[_Row]):
    """A column.

    Attributes:
        name: The name: lower case with underscores, for queries without quotes.
        kind: The kind of its values. Any of them may be missing.
        description: What it says, with its unit.
        value: Returns the value in a row, or ``None``.
    """

    name: str
    kind: CellKind
    description: str
    value: Callable[[_Row], Any]


@dataclass(frozen=True, slots=True)
class Table(Generic[_Row]):
    """A table.

    Attributes:
        name: The name, by which a reader knows what the columns are.
        columns: The columns, in order.
    """

    name: str
    columns: tuple[Column[_Row], ...]
