"""Parquet files of declared tables, read in batches, so that memory does not grow with the number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from vhlo_tools.errors import ResultsError
from vhlo_tools.records import dataclass
from vhlo_tools.tables.arrow import PREFIX, arrow_fields, require_pyarrow
from vhlo_tools.tables.columns import Table

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetFile

#: Rows that are read at once, and bytes of a column that are read at once.
_BATCH: Final = 4096
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
                for batch in file.iter_batches(batch_size=_BATCH, columns=list(columns), use_threads=False):
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
                handle,
                buffer_size=_BUFFER,
                thrift_string_size_limit=_LONGEST,
                thrift_container_size_limit=_LONGEST,
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
