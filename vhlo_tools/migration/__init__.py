"""Migration of stores of programs file by file, and monitoring of the ends of their compatibility windows."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.migration.claim import Claim
    from vhlo_tools.migration.cluster import connected
    from vhlo_tools.migration.file_record import MigrationRecord, Status
    from vhlo_tools.migration.journal import Journal, journal_path
    from vhlo_tools.migration.migration import Migration
    from vhlo_tools.migration.request import MigrationSettings, Proof, StoredProgram, Tools
    from vhlo_tools.migration.result_tables import MIGRATION_TABLE, STATUS_TABLE, FileStatus, StatusName
    from vhlo_tools.migration.results_summary import ResultsSummary, summarize_results
    from vhlo_tools.migration.scheduling import work_through
    from vhlo_tools.migration.stamps import object_url
    from vhlo_tools.migration.store_watch import StoreFile, watch_store
    from vhlo_tools.migration.summary import MigrationSummary
    from vhlo_tools.migration.windows import AT_REST, WINDOWS, ReadingReleases, WindowName, horizon_end
    from vhlo_tools.migration.workers import AnyExecutor, Workers
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "claim": ("Claim",),
            "cluster": ("connected",),
            "file_record": ("MigrationRecord", "Status"),
            "journal": ("Journal", "journal_path"),
            "migration": ("Migration",),
            "request": ("MigrationSettings", "Proof", "StoredProgram", "Tools"),
            "result_tables": ("MIGRATION_TABLE", "STATUS_TABLE", "FileStatus", "StatusName"),
            "results_summary": ("ResultsSummary", "summarize_results"),
            "scheduling": ("work_through",),
            "stamps": ("object_url",),
            "store_watch": ("StoreFile", "watch_store"),
            "summary": ("MigrationSummary",),
            "windows": ("AT_REST", "ReadingReleases", "WINDOWS", "WindowName", "horizon_end"),
            "workers": ("AnyExecutor", "Workers"),
        },
    )
