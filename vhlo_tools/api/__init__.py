"""The public functions, which choose the engine and the layer for what they are given."""

from vhlo_tools.api.aliases import aliased_artifact, with_aliases, with_call_aliases
from vhlo_tools.api.checking import Checked, check, prepare_check, require
from vhlo_tools.api.comparison import diff
from vhlo_tools.api.execution import ENGINE_CHOICES, EngineChoice, load_executable, run
from vhlo_tools.api.frontends import export_model
from vhlo_tools.api.functions import (
    deserialize,
    linted,
    open_artifact,
    program_of,
    resolve_target,
    retarget,
    serialize,
    strip,
)
from vhlo_tools.api.golden import check_golden, record_golden
from vhlo_tools.api.migration import migrate, opened_migration, plan_migration, store_status
from vhlo_tools.api.parallel import load_parallel_executable, run_parallel
from vhlo_tools.api.verification import draw_inputs, verify
from vhlo_tools.api.weights import (
    LARGE,
    constants,
    externalize_constants,
    extract_constants,
    restore_constants,
)

__all__ = [
    "ENGINE_CHOICES",
    "LARGE",
    "Checked",
    "EngineChoice",
    "aliased_artifact",
    "check",
    "check_golden",
    "constants",
    "deserialize",
    "diff",
    "draw_inputs",
    "export_model",
    "externalize_constants",
    "extract_constants",
    "linted",
    "load_executable",
    "load_parallel_executable",
    "migrate",
    "open_artifact",
    "opened_migration",
    "plan_migration",
    "prepare_check",
    "program_of",
    "record_golden",
    "require",
    "resolve_target",
    "restore_constants",
    "retarget",
    "run",
    "run_parallel",
    "serialize",
    "store_status",
    "strip",
    "verify",
    "with_aliases",
    "with_call_aliases",
]
