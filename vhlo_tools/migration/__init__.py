"""Stores of programs: moved to another version file by file, and watched for the end of their compatibility windows."""

from vhlo_tools.migration.discovery import SET_ASIDE
from vhlo_tools.migration.journal import Journal, journal_path
from vhlo_tools.migration.migration import Migration
from vhlo_tools.migration.record import MigrationRecord, Status
from vhlo_tools.migration.settings import Proof, Settings, Tools
from vhlo_tools.migration.store import StoreFile, watch_store
from vhlo_tools.migration.summary import MigrationSummary
from vhlo_tools.migration.windows import WINDOWS, Reader, WindowName, horizon_end
from vhlo_tools.migration.workers import Workers

__all__ = [
    "SET_ASIDE",
    "WINDOWS",
    "Journal",
    "Migration",
    "MigrationRecord",
    "MigrationSummary",
    "Proof",
    "Reader",
    "Settings",
    "Status",
    "StoreFile",
    "Tools",
    "WindowName",
    "Workers",
    "horizon_end",
    "journal_path",
    "watch_store",
]
