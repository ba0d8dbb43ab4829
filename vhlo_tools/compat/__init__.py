"""Compatibility: targets, and the requirements of an artifact."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.compat.constraints import SILENT, Checked, violation_text
    from vhlo_tools.compat.nesting import nesting_findings
    from vhlo_tools.compat.plugins import PLUGIN_ENGINE, installed_plugins, plugin_library, plugin_version
    from vhlo_tools.compat.requirements import FeatureCount, OpFeature, Requirements, Unknown
    from vhlo_tools.compat.targets import (
        NO_EXPANSIONS,
        PLUGIN,
        AllowRelaxed,
        Expand,
        ExpansionPolicy,
        Library,
        Target,
        expansion_flag,
        expansion_policy,
        newest_released_by,
        resolve_target,
    )
    from vhlo_tools.compat.uses import Structures
else:
    __getattr__, __dir__ = lazy_exports(__name__)
