"""The public functions, which choose the engine and the layer for what they are given."""

from vhlo_tools.api.checking import Checked, check, prepare_check, require
from vhlo_tools.api.comparison import diff
from vhlo_tools.api.functions import (
    deserialize,
    open_artifact,
    program_of,
    resolve_target,
    retarget,
    run,
    serialize,
    strip,
)

__all__ = [
    "Checked",
    "check",
    "deserialize",
    "diff",
    "open_artifact",
    "prepare_check",
    "program_of",
    "require",
    "resolve_target",
    "retarget",
    "run",
    "serialize",
    "strip",
]
