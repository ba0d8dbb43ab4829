"""Migration of stores of programs file by file, with a journal."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.migration.claim import Claim
    from vhlo_tools.migration.file_record import MigrationRecord, Status
    from vhlo_tools.migration.journal import Journal, journal_path
    from vhlo_tools.migration.migration import Migration
    from vhlo_tools.migration.request import MigrationSettings, Proof, StoredProgram, Tools
    from vhlo_tools.migration.result_tables import MIGRATION_TABLE
    from vhlo_tools.migration.results_summary import ResultsSummary, summarize_results
    from vhlo_tools.migration.summary import MigrationSummary
else:
    __getattr__, __dir__ = lazy_exports(__name__)
