"""Tables as Parquet files, written in row groups, so that memory does not grow with the number of rows."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from vhlo_tools.tables.arrow import PREFIX, arrow_fields, require_pyarrow
from vhlo_tools.tables.columns import CellKind, Column, ListOf, StructOf, Table

if TYPE_CHECKING:
    import pyarrow

_Row = TypeVar("_Row")

#: Rows that are converted at once, and the limits of a row group in rows and in bytes of memory.
_BATCH: Final = 1024
_MOST_ROWS: Final = 1 << 16
_MOST_BYTES: Final = 16 << 20


class _Sink(io.RawIOBase):
    """A file that is taken away in chunks as it is written."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._chunks.append(bytes(data))
        return len(self._chunks[-1])

    def taken(self) -> Iterator[bytes]:
        """Yield what was written since the last call."""
        chunks, self._chunks = self._chunks, []
        yield from chunks


def parquet_chunks(table: Table[_Row], rows: Iterable[_Row], said: Mapping[str, str] | None = None) -> Iterator[bytes]:
    """Yield a Parquet file while taking rows; ``said`` holds for all rows, and becomes metadata of the file."""
    require_pyarrow()
    import pyarrow

    metadata = {f"{PREFIX}{key}": value for key, value in {"table": table.name, **(said or {})}.items()}
    schema = pyarrow.schema(arrow_fields(table.columns), metadata=metadata)
    return _written(schema, ({each.name: _cell(each, row) for each in table.columns} for row in rows))


def _written(schema: pyarrow.Schema, rows: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    from pyarrow import RecordBatch, Table as Group
    from pyarrow.parquet import ParquetWriter

    sink = _Sink()
    with ParquetWriter(sink, schema, compression="zstd") as writer:
        group: list[RecordBatch] = []
        while some := list(islice(rows, _BATCH)):
            group.append(RecordBatch.from_pylist(some, schema))
            if len(group) * _BATCH >= _MOST_ROWS or sum(each.nbytes for each in group) >= _MOST_BYTES:
                writer.write_table(Group.from_batches(group))
                group = []
                yield from sink.taken()
        if group:
            writer.write_table(Group.from_batches(group))
    yield from sink.taken()


def _cell(column: Column[_Row], row: _Row) -> Any:
    return _plain(column.kind, column.value(row))


def _plain(kind: CellKind, value: Any) -> Any:
    match kind:
        case _ if value is None:
            return None
        case ListOf():
            return [_plain(kind.item, each) for each in value]
        case StructOf():
            return {each.name: _cell(each, value) for each in kind.columns}
        case "text":
            # The bytes of a file name may not be text: as escapes, as in the other formats.
            return str(value).encode("utf-8", "backslashreplace").decode()
    return value
