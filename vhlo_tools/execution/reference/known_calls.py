"""Built-in handlers of custom calls, used where the program has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import is_lapack
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.custom_calls import RULES, form_of_call, reason_against
from vhlo_tools.execution.handlers import CustomCall, Handler
from vhlo_tools.execution.reference.assertions import expect_almost_eq, expect_close, expect_eq, is_eq
from vhlo_tools.execution.reference.expanded_calls import EXPANDED_BY_XLA, expanded_by_xla
from vhlo_tools.execution.reference.lapack import lapack


def _same(_: CustomCall, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The call only specifies the placement or sharding of its operand."""
    return array


def _nothing(_: CustomCall, *arrays: np.ndarray[Any, Any]) -> None:
    """The call only keeps its operands from being removed as unused."""


#: Targets of the calls of GSPMD, and of Shardy in the form for HLO, that specify shardings: where XLA's partitioner
#: runs, it handles these calls itself.
OF_PARTITIONER: Final = frozenset(
    {
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "Sharding",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.GlobalToLocalShape",
        "xla.sdy.LocalToGlobalShape",
        "xla.sdy.ShardingGroup",
    }
)

#: The handler of each target. Sources: for annotations ``xla/hlo/ir/hlo_sharding.h``,
#: ``xla/service/layout_assignment.cc`` and ``xla/service/memory_annotations.h`` in openxla/xla; see also
#: :mod:`vhlo_tools.execution.reference.assertions`.
KNOWN_CALLS: Final[Mapping[str, Handler]] = {
    "LayoutConstraint": _same,
    "MoveToDevice": _same,
    "MoveToHost": _same,
    "SPMDFullToShardShape": _same,
    "SPMDShardToFullShape": _same,
    "Sharding": _same,
    "annotate_device_placement": _same,
    "check.eq": is_eq,
    "check.expect_almost_eq": expect_almost_eq,
    "check.expect_close": expect_close,
    "check.expect_eq": expect_eq,
    "dce_sink": _nothing,
    "xla.sdy.FuncResultSharding": _same,
}


def known_handler(target: str) -> Handler | None:
    """The handler raises :class:`EngineError` for a call of a wrong form (:mod:`vhlo_tools.execution.custom_calls`)."""
    if target not in RULES:
        return None
    compute = lapack if is_lapack(target) else expanded_by_xla if target in EXPANDED_BY_XLA else KNOWN_CALLS.get(target)
    if compute is None:
        return None

    def checked(call: CustomCall, *arrays: np.ndarray[Any, Any]) -> Any:
        if reason := reason_against(form_of_call(call, arrays)):
            raise EngineError(f"{call}: {reason}")
        return compute(call, *arrays)

    return checked
