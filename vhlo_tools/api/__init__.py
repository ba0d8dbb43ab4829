"""The public functions, which choose the engine and the layer for what they are given."""

from vhlo_tools.api.aliases import aliased_artifact, with_aliases, with_call_aliases
from vhlo_tools.api.checking import Checked, check, prepare_check, require
from vhlo_tools.api.comparison import diff
from vhlo_tools.api.frontends import export_model
from vhlo_tools.api.functions import (
    deserialize,
    linted,
    open_artifact,
    program_of,
    resolve_target,
    retarget,
    run,
    serialize,
    strip,
)
from vhlo_tools.api.weights import (
    LARGE,
    constants,
    externalize_constants,
    extract_constants,
    restore_constants,
)

__all__ = [
    "LARGE",
    "Checked",
    "aliased_artifact",
    "check",
    "constants",
    "deserialize",
    "diff",
    "export_model",
    "externalize_constants",
    "extract_constants",
    "linted",
    "open_artifact",
    "prepare_check",
    "program_of",
    "require",
    "resolve_target",
    "restore_constants",
    "retarget",
    "run",
    "serialize",
    "strip",
    "with_aliases",
    "with_call_aliases",
]
