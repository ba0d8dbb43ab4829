"""Results about many files as tables: columns that are declared once, and written as Parquet for other programs."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.tables.columns import CellKind, Column, ListOf, StructOf, Table
    from vhlo_tools.tables.finding_columns import FINDINGS
    from vhlo_tools.tables.parquet import parquet_chunks
    from vhlo_tools.tables.parquet_reading import StoredTable
else:
    __getattr__, __dir__ = lazy_exports(__name__)
