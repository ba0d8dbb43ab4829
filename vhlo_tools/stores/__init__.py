"""Stores of programs: their files, and the ends of the compatibility windows of these."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.stores.claim import StoreLease
    from vhlo_tools.stores.comparison import VERIFICATION_TABLE, PairRecord, PairStatus, PairSummary
    from vhlo_tools.stores.journal import Journal, journal_path
    from vhlo_tools.stores.manifests import ManifestResult, ManifestStatus, manifests_at
    from vhlo_tools.stores.members import (
        IN_PLACE,
        RESULT_SUFFIX,
        ListedFile,
        Stamp,
        base_of,
        below,
        files_of,
        hash_at,
        identity_of,
        is_store,
        listed_at,
        look_at,
        object_url,
        read_identified,
        relative_to,
        resolved,
        result_at,
    )
    from vhlo_tools.stores.migration import Migration
    from vhlo_tools.stores.migration_records import MIGRATION_TABLE, MigrationRecord, MigrationSummary, Status
    from vhlo_tools.stores.migration_settings import EquivalenceResult, MigrationSettings, StoredProgram, Tools
    from vhlo_tools.stores.pairs import Pair, Pairs
    from vhlo_tools.stores.results_summary import ResultsSummary, summarize_results
    from vhlo_tools.stores.scheduling import in_batches, map_ordered, map_unordered, waiting_results
    from vhlo_tools.stores.tables import (
        FINDINGS,
        CellKind,
        Column,
        ListOf,
        StoredTable,
        StructOf,
        Table,
        parquet_chunks,
    )
    from vhlo_tools.stores.watch import STATUS_TABLE, FileStatus, StatusName, StoreFile, watch_store
    from vhlo_tools.stores.windows import AT_REST, WINDOWS, ReadingReleases, horizon_end
    from vhlo_tools.stores.workers import AnyExecutor, Workers, connected
else:
    __getattr__, __dir__ = lazy_exports(__name__)
