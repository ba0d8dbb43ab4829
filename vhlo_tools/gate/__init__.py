"""The CI gate: settings in a file, levels of features, a baseline of known findings, and evaluation of programs."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.gate.baseline import Baseline
    from vhlo_tools.gate.changes import Change, changes_since
    from vhlo_tools.gate.evaluation import Gate
    from vhlo_tools.gate.findings_cache import FindingsCache
    from vhlo_tools.gate.keys import KeyPlace, read_levels, read_patterns, settings_schema
    from vhlo_tools.gate.levels import KINDS, LEVELS, Levels, LevelSetting
    from vhlo_tools.gate.listing import Listing
    from vhlo_tools.gate.reading import find_settings, load_settings, read_settings
    from vhlo_tools.gate.revision import Revision
    from vhlo_tools.gate.settings import COMMAND_LINE, Override, Settings, key_of
    from vhlo_tools.gate.store_check import check_store
else:
    __getattr__, __dir__ = lazy_exports(__name__)
