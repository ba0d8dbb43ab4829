"""Retargeting: upgrade and downgrade artifacts on their bytes, without MLIR."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.retargeting.engine import retarget_file
    from vhlo_tools.retargeting.locations import with_plain_locations
else:
    __getattr__, __dir__ = lazy_exports(__name__)
