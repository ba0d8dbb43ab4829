"""Custom calls whose meaning the toolkit knows, and what computes them where the program gives no handler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings.lapack import is_lapack
from vhlo_tools.interpreter.assertions import expect_almost_eq, expect_close, expect_eq, is_eq
from vhlo_tools.interpreter.handlers import CustomCall, Handler
from vhlo_tools.interpreter.lapack import lapack

__all__ = ["KNOWN_CALLS", "OF_PARTITIONER", "known_handler"]


def _same(_: CustomCall, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the operand of a call that says where a value is or how it is cut, and not what it is."""
    return array


#: Targets of calls by which GSPMD is told how values are cut up: where it does cut them, they are its own.
OF_PARTITIONER: Final = frozenset({"SPMDFullToShardShape", "SPMDShardToFullShape", "Sharding"})

#: What computes the calls of each target. Sources: for annotations ``xla/hlo/ir/hlo_sharding.h``,
#: ``xla/service/layout_assignment.cc`` and ``xla/service/memory_annotations.h`` in openxla/xla; see also
#: :mod:`vhlo_tools.interpreter.assertions`.
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
}


def known_handler(target: str) -> Handler | None:
    """Return what computes custom calls of ``target``; ``None`` if the toolkit does not know it."""
    return lapack if is_lapack(target) else KNOWN_CALLS.get(target)
