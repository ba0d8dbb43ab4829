"""Programs behind URLs: places, objects read in ranges, listings, and writes that lose nothing.

Nothing outside of this room knows a store's library, and none is imported before a URL is used.
"""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.remote.connections import forget_connections
    from vhlo_tools.remote.listing import glob_start, is_glob, matcher, objects_under
    from vhlo_tools.remote.objects import open_object, read_object, stamp_of
    from vhlo_tools.remote.places import Place, Url, is_path, is_url, local_path, place, plain_path
    from vhlo_tools.remote.store import Listed, Stamp
    from vhlo_tools.remote.traffic import Traffic, counted
    from vhlo_tools.remote.writing import delete_object, metadata_of, write_object
else:
    __getattr__, __dir__ = lazy_exports(__name__)
