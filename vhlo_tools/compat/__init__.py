"""Compatibility: targets, and the requirements of an artifact."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.compat.allowed_expansions import (
        NO_EXPANSIONS,
        AllowRelaxed,
        Expand,
        ExpansionPolicy,
        expansion_flag,
        expansion_policy,
    )
    from vhlo_tools.compat.requirements import FeatureCount, OpFeature, Requirements, Unknown
    from vhlo_tools.compat.structures import Structures
    from vhlo_tools.compat.target_grammar import Library, Target, newest_released_by, resolve_target
else:
    __getattr__, __dir__ = lazy_exports(__name__)
