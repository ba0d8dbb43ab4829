"""Records of a migration as a table."""

from __future__ import annotations

from typing import Final

from vhlo_tools.migration.file_record import MigrationRecord
from vhlo_tools.tables import FINDINGS, Column, Table

#: What ``vhlo migrate`` says of files.
MIGRATION_TABLE: Final[Table[MigrationRecord]] = Table(
    "migration",
    (
        Column("path", "text", "path of the file", lambda row: row.path),
        Column("ok", "flag", "whether it is, or can be, at the target", lambda row: row.ok),
        Column("status", "text", "what became of it", lambda row: row.status),
        Column("kind", "text", "kind of the file", lambda row: row.kind),
        Column("version", "text", "StableHLO version before", lambda row: row.version),
        Column("target", "text", "StableHLO version after", lambda row: row.target),
        Column("size", "integer", "size before, in bytes", lambda row: row.size),
        Column("digest", "text", "SHA-256 before", lambda row: row.digest),
        Column("output", "text", "path of the result, if it is another", lambda row: row.output),
        Column("new_size", "integer", "size after, in bytes", lambda row: row.new_size),
        Column("new_digest", "text", "SHA-256 after", lambda row: row.new_digest),
        Column("backup", "text", "path at which the old file is kept", lambda row: row.backup),
        Column("old_version", "text", "version under which a store keeps the old object", lambda row: row.old_version),
        Column("leads_to", "text", "path of the file itself, if a link leads to it", lambda row: row.leads_to),
        Column("verified", "text", "proof that both compute the same", lambda row: row.verified),
        Column("reason", "text", "why it was not migrated", lambda row: row.reason),
        Column("findings", FINDINGS, "findings about the program", lambda row: row.findings),
        Column("seconds", "seconds", "time of processing", lambda row: row.seconds),
    ),
)
