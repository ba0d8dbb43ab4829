"""Who can read what: targets, and what an artifact requires."""

from vhlo_tools.compat.places import attributes_of
from vhlo_tools.compat.requirements import FeatureCount, Requirements
from vhlo_tools.compat.targets import Library, Target, newest_released_by, resolve_target

__all__ = [
    "FeatureCount",
    "Library",
    "Requirements",
    "Target",
    "attributes_of",
    "newest_released_by",
    "resolve_target",
]
