"""The CI gate: settings in a file, levels of features, a baseline of known findings, and evaluation of programs."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.gate.baseline import Baseline
    from vhlo_tools.gate.evaluation import Gate
    from vhlo_tools.gate.examination import find_settings, load_settings, read_settings
    from vhlo_tools.gate.findings_cache import FindingsCache
    from vhlo_tools.gate.keys import KeyPlace, bytes_of, read_levels, read_patterns, settings_schema
    from vhlo_tools.gate.listing import Listing
    from vhlo_tools.gate.rendering import FORMATS, Renderer, render, render_statistics
    from vhlo_tools.gate.report_model import (
        Answer,
        Identity,
        Question,
        Scope,
        Summary,
        Verdict,
        fingerprints,
        identity_of,
        is_refused,
        page_of,
        path_from,
    )
    from vhlo_tools.gate.revision import Change, Changes, Revision, changes_since
    from vhlo_tools.gate.settings import COMMAND_LINE, KINDS, LEVELS, Levels, LevelSetting, Override, Settings, key_of
    from vhlo_tools.gate.store_check import check_store
    from vhlo_tools.gate.text_report import finding_lines, verdict_lines, wrapped
else:
    __getattr__, __dir__ = lazy_exports(__name__)
