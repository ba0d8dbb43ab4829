"""The gate as teams keep it: settings in a file, levels of features, what is known, and programs judged by them."""

from vhlo_tools.gate.baseline import Baseline
from vhlo_tools.gate.judging import Gate
from vhlo_tools.gate.levels import LEVELS, Levels, LevelSetting
from vhlo_tools.gate.reading import find_settings, load_settings, read_settings
from vhlo_tools.gate.settings import COMMAND_LINE, Override, Settings

__all__ = [
    "COMMAND_LINE",
    "LEVELS",
    "Baseline",
    "Gate",
    "LevelSetting",
    "Levels",
    "Override",
    "Settings",
    "find_settings",
    "load_settings",
    "read_settings",
]
