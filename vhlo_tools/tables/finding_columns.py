"""Columns of findings, which the results about a program have in a list."""

from __future__ import annotations

from typing import Final

from vhlo_tools.findings import Finding
from vhlo_tools.tables.columns import Column, ListOf, StructOf

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
