"""Migration of stores of programs file by file, and monitoring of the ends of their compatibility windows."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.migration.file_record import MigrationRecord, Status
    from vhlo_tools.migration.journal import Journal, journal_path
    from vhlo_tools.migration.migration import Migration
    from vhlo_tools.migration.request import MigrationSettings, Proof, Tools
    from vhlo_tools.migration.scheduling import work_through
    from vhlo_tools.migration.store_watch import StoreFile, watch_store
    from vhlo_tools.migration.summary import MigrationSummary
    from vhlo_tools.migration.windows import WINDOWS, ReadingReleases, WindowName, horizon_end
    from vhlo_tools.migration.workers import Workers
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "file_record": ("MigrationRecord", "Status"),
            "journal": ("Journal", "journal_path"),
            "migration": ("Migration",),
            "request": ("MigrationSettings", "Proof", "Tools"),
            "scheduling": ("work_through",),
            "store_watch": ("StoreFile", "watch_store"),
            "summary": ("MigrationSummary",),
            "windows": ("ReadingReleases", "WINDOWS", "WindowName", "horizon_end"),
            "workers": ("Workers",),
        },
    )
