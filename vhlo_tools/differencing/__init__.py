"""Comparison of two artifacts from their bytes alone: functions, ops, attributes and constants are aligned."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.differencing.artifacts import diff_artifacts
    from vhlo_tools.differencing.describing import Describer
    from vhlo_tools.differencing.difference import DIFFERENCE_KINDS, Difference, DifferenceKind, Differences
else:
    __getattr__, __dir__ = lazy_exports(__name__)
