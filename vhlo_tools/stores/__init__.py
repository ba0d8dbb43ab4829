"""Stores of programs: their files, and the ends of the compatibility windows of these."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.stores.comparison import VERIFICATION_TABLE, PairRecord, PairStatus, PairSummary
    from vhlo_tools.stores.members import IN_PLACE, ListedFile, files_of, listed_at, look_at
    from vhlo_tools.stores.pairs import Pair, Pairs
    from vhlo_tools.stores.places import RESULT_SUFFIX, base_of, below, is_store, relative_to, resolved, result_at
    from vhlo_tools.stores.stamps import Stamp, hash_at, object_url
    from vhlo_tools.stores.status import STATUS_TABLE, FileStatus, StatusName
    from vhlo_tools.stores.watch import StoreFile, watch_store
    from vhlo_tools.stores.windows import AT_REST, WINDOWS, ReadingReleases, WindowName, horizon_end
else:
    __getattr__, __dir__ = lazy_exports(__name__)
