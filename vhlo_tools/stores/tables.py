"""Results about many files as tables: columns declared once, written and read as Parquet."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Self, TypeVar

from vhlo_tools.errors import MissingExtraError, ResultsError, installing
from vhlo_tools.findings import Finding
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetFile

# Declared tables: columns with names, kinds of values, descriptions, and the origin of each value

_RowContra = TypeVar("_RowContra", contravariant=True)

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
class Column(Generic[_RowContra]):
    name: str  # lower case with underscores, for queries without quotes
    kind: CellKind  # of the values, any of which may be missing
    description: str  # with the unit
    value: Callable[[_RowContra], Any]


@dataclass(frozen=True, slots=True)
class Table(Generic[_RowContra]):
    name: str  # by which a reader knows what the columns are
    columns: tuple[Column[_RowContra], ...]


# Columns of findings, which the results about a program have in a list

_COLUMNS: Final[tuple[Column[Finding], ...]] = (
    Column("feature", "text", "id of the feature", lambda found: found.feature),
    Column("level", "text", "error, warning or note", lambda found: found.level),
    Column("kind", "text", "kind of the feature", lambda found: found.kind),
    Column("message", "text", "what was found", lambda found: found.message),
    Column("op", "text", "op with the finding", lambda found: found.op),
    Column("location", "text", "place in the user's source: file:line:column", lambda found: found.location),
    Column("introduced", "text", "StableHLO version that introduced the feature", lambda found: found.introduced),
    Column("target", "text", "StableHLO version that was asked for", lambda found: found.target),
    Column("remedy", "text", "what to do", lambda found: found.remedy),
    Column("count", "integer", "how often it occurs", lambda found: found.count),
    Column("path", "text", "path of the first op in the program", lambda found: found.path),
    Column("function", "text", "function with that op", lambda found: found.function),
    Column("unknown", "flag", "whether the data of vhlo_tools lack it", lambda found: found.unknown),
)

#: The kind of a column of findings.
FINDINGS: Final = ListOf(StructOf(_COLUMNS))


# Declared tables in the types of Arrow, which pyarrow reads and writes as Parquet

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
            f"{installing('distributed')} installs it"
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


# Tables as Parquet files, written in row groups, so that memory does not grow with the number of rows

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


# Parquet files of declared tables, read in batches, so that memory does not grow with the number of rows

#: Rows that are read at once, and bytes of a column that are read at once.
_READ_BATCH: Final = 4096
_BUFFER: Final = 1 << 20

#: No page header, nor footer, of a file that was written here comes near; a damaged one could ask for any memory.
_LONGEST: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table in one Parquet file, or in all files of a folder."""

    table: Table[Any]
    files: tuple[Path, ...]
    said: Mapping[str, str]  # other metadata of the files; values that differ are joined by commas
    rows: int  # number of rows

    @classmethod
    def of(cls, path: Path, tables: Sequence[Table[Any]]) -> Self:
        """Find out which of ``tables`` is at a path: a file, or a folder, searched with its subfolders.

        As usual for data sets, names that begin with a dot or an underscore do not count.
        """
        require_pyarrow()
        files = tuple(_files_in(path)) if path.is_dir() else (path,)
        if not files:
            raise ResultsError(f"{path} has no *.parquet file: expected a folder that `-o FILE` has written results to")
        first: Table[Any] | None = None
        rows = 0
        said: dict[str, dict[str, None]] = {}
        for each in files:
            with _opened(each) as file:
                table, other = _described(each, file, tables)
                rows += file.metadata.num_rows
            if first is None:
                first = table
            if table is not first:
                raise ResultsError(
                    f"{each} is of the table {table.name}, and {files[0]} of {first.name}: expected files of one table"
                )
            for name, value in other.items():
                said.setdefault(name, {})[value] = None
        assert first is not None
        return cls(first, files, {name: ", ".join(sorted(values)) for name, values in said.items()}, rows)

    def batches(self, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        for each in self.files:
            with _opened(each) as file:
                for batch in file.iter_batches(batch_size=_READ_BATCH, columns=list(columns), use_threads=False):
                    batch.validate(full=True)
                    yield batch


def _files_in(folder: Path) -> Iterator[Path]:
    for each in sorted(folder.rglob("*.parquet")):
        hidden = any(part.startswith((".", "_")) for part in each.relative_to(folder).parts)
        if not hidden and each.is_file():
            yield each


@contextmanager
def _opened(path: Path) -> Iterator[ParquetFile]:
    """Open a file; errors of pyarrow name it."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    # Opened here, so that an error of the system is told from one of the content, for which pyarrow has OSError too.
    with path.open("rb") as handle:
        try:
            yield ParquetFile(
                handle, buffer_size=_BUFFER, thrift_string_size_limit=_LONGEST, thrift_container_size_limit=_LONGEST
            )
        except (ArrowException, OSError, ValueError) as error:
            if isinstance(error, ResultsError):
                raise
            first = str(error).partition("\n")[0]
            raise ResultsError(
                f"{path} is not a Parquet file, or is damaged ({first}): expected results of `vhlo migrate`, `store "
                f"status` or `verify` with --output-format parquet"
            ) from error


def _described(path: Path, file: ParquetFile, tables: Sequence[Table[Any]]) -> tuple[Table[Any], dict[str, str]]:
    """Return the table of a file, and its other metadata."""
    schema = file.schema_arrow
    said = {
        key.decode("utf-8", "replace").removeprefix(PREFIX): value.decode("utf-8", "replace")
        for key, value in (schema.metadata or {}).items()
        if key.startswith(PREFIX.encode())
    }
    name = said.pop("table", None)
    table = next((each for each in tables if each.name == name), None)
    if table is None:
        named = "names no table" if name is None else f"names the table {name!r}"
        known = " or ".join(each.name for each in tables)
        raise ResultsError(f"{path}: its metadata {PREFIX}table {named}: expected {known}")
    for field in arrow_fields(table.columns):
        found = schema.field(field.name).type if schema.get_field_index(field.name) >= 0 else None
        if found != field.type:
            kind = "is missing" if found is None else f"has the type {found}"
            raise ResultsError(
                f"{path}: the column {field.name} of the table {table.name} {kind}: expected {field.type}; was it "
                f"written by another release?"
            )
    return table, said
