"""Stores of programs: their files, and the ends of the compatibility windows of these."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.stores.members import IN_PLACE, files_of, look_at
    from vhlo_tools.stores.stamps import Stamp, hash_at, object_url
    from vhlo_tools.stores.status import STATUS_TABLE, FileStatus, StatusName
    from vhlo_tools.stores.watch import StoreFile, watch_store
    from vhlo_tools.stores.windows import AT_REST, WINDOWS, ReadingReleases, WindowName, horizon_end
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "members": (
                "IN_PLACE",
                "files_of",
                "look_at",
            ),
            "stamps": (
                "Stamp",
                "hash_at",
                "object_url",
            ),
            "status": (
                "STATUS_TABLE",
                "FileStatus",
                "StatusName",
            ),
            "watch": (
                "StoreFile",
                "watch_store",
            ),
            "windows": (
                "AT_REST",
                "WINDOWS",
                "ReadingReleases",
                "WindowName",
                "horizon_end",
            ),
        },
    )
