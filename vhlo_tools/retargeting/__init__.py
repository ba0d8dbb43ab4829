"""Artifacts moved up and down between versions on their bytes, without MLIR."""

from vhlo_tools.retargeting.engine import retarget_file
from vhlo_tools.retargeting.locations import with_plain_locations

__all__ = ["retarget_file", "with_plain_locations"]
