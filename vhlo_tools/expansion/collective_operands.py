"""Several operands of all_gather, all_reduce and all_to_all, introduced in 1.5.0, as one op for each operand.

Each result depends on the operand of the same number only, and each op has the groups, the channel and the reduction of
the original op; so results are equal bit by bit, wherever an engine reduces each operand in the same order. Ops of one
kind may share a channel: the specification numbers channels to tell groups across partitions from others (section
"Collective ops") and leaves open what else they mean, and JAX gives all collectives of a program one channel
(``COLLECTIVE_CHANNEL_ID`` in ``jax/_src/interpreters/mlir.py``). Every device reaches the ops in the same order.

Source: StableHLO specification, ``all_gather``, ``all_reduce`` and ``all_to_all``, inputs (I1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.rewriting import Build, Rewriter

#: Attributes that tell something about each result in order, and so fit no op with one of the results.
OF_ALL_RESULTS: Final = ("mhlo.sharding", "sdy.sharding")


def one_for_each(rewriter: Rewriter) -> Sequence[Any] | None:
    op = rewriter.op
    if len(op.operands) == 1:
        return None
    return [
        rewriter.make_like([operand], [result.type], without=OF_ALL_RESULTS)[0]
        for operand, result in zip(op.operands, op.results, strict=True)
    ]


EXACT: Final[Mapping[str, Build]] = {
    f"stablehlo.{name}": one_for_each for name in ("all_gather", "all_reduce", "all_to_all")
}
