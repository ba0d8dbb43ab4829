"""Artifacts moved up and down between versions on their bytes, without MLIR."""

from vhlo_tools.retargeting.engine import retarget_file

__all__ = ["retarget_file"]
