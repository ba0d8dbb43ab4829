"""Declared tables in the types of Arrow, which pyarrow reads and writes as Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.errors import MissingExtraError
from vhlo_tools.tables.columns import CellKind, Column, ListOf, PlainKind, StructOf

if TYPE_CHECKING:
    import pyarrow

#: What begins the names of our entries in the metadata of a file.
PREFIX: Final = "vhlo_tools."

#: The constructors of pyarrow for the types of plain kinds.
_TYPES: Final[Mapping[PlainKind, str]] = {
    "text": "string",
    "flag": "bool_",
    "integer": "int64",
    "seconds": "float64",
    "day": "date32",
}


def require_pyarrow() -> None:
    """Raise ``MissingExtraError`` without pyarrow, which is optional."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"Parquet files are read and written by pyarrow, which cannot be imported ({error}): "
            f"pip install 'vhlo-tools[distributed]' installs it"
        ) from error


def arrow_fields(columns: Iterable[Column[Any]]) -> list[pyarrow.Field]:
    """Descriptions become metadata."""
    import pyarrow

    return [pyarrow.field(each.name, _type(each.kind), metadata={"description": each.description}) for each in columns]


def _type(kind: CellKind) -> pyarrow.DataType:
    import pyarrow

    match kind:
        case ListOf():
            return pyarrow.list_(_type(kind.item))
        case StructOf():
            return pyarrow.struct(arrow_fields(kind.columns))
    return getattr(pyarrow, _TYPES[kind])()
