"""Patterns that lower ops to those that the interpreter has."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Provider
from vhlo_tools.conversion import Pattern, Rewriter, UnmatchedOpError, apply_patterns, patterns_of
from vhlo_tools.execution.handlers import refusal
from vhlo_tools.execution.known_targets import PLACING
from vhlo_tools.execution.lowering.algorithms import cholesky, fft, rng_bit_generator, triangular_solve
from vhlo_tools.execution.lowering.arithmetic import (
    batch_norm_grad,
    batch_norm_inference,
    batch_norm_training,
    broadcast,
    compare,
    convolution,
    divide,
    dot,
    dot_general,
    einsum,
    exponential_minus_one,
    log_plus_one,
    remainder,
    torch_index_select,
    unary_einsum,
)
from vhlo_tools.execution.lowering.indexing import real_dynamic_slice, scatter, signed_from

# Ops that specify the placement or sharding of a value; on one device they return their operand
#
# Sources: ``shardy/dialect/sdy/ir/ops.td`` in openxla/shardy; for custom calls ``xla/service/sharding_propagation.cc``,
# ``xla/service/layout_assignment.cc``, ``xla/service/memory_annotations.h`` and
# ``xla/hlo/transforms/convert_memory_placement_to_internal_annotations.cc`` in openxla/xla.

#: An op that declares that values belong together has no results.
PLACEMENTS: Final[Mapping[str, Callable[[Rewriter], list[Any]]]] = {
    **dict.fromkeys(
        ("sdy.propagation_barrier", "sdy.reshard", "sdy.sharding_constraint"),
        lambda rewriter: [rewriter.op.operands[0]],
    ),
    "sdy.sharding_group": lambda _: [],
}


def placed_unless(handled: Container[str]) -> Callable[[Rewriter], list[Any] | None]:
    """Calls of targets in ``handled`` are kept, because a handler computes them."""

    def placed(rewriter: Rewriter) -> list[Any] | None:
        op = rewriter.op
        target = str(op.attributes["call_target_name"].value)
        is_same = len(op.operands) == len(op.results) == 1 and op.operands[0].type == op.results[0].type
        return [op.operands[0]] if is_same and target in PLACING and target not in handled else None

    return placed


# Patterns for ops that the interpreter lacks or crashes on, which rewrite them into ops that it supports


def _create_token(rewriter: Rewriter) -> list[Any]:
    """The interpreter supports ``after_all`` without operands."""
    return rewriter.make_several("stablehlo.after_all", [], [rewriter.op.results[0].type])


def _get_tuple_element(rewriter: Rewriter) -> list[Any] | None:
    """Calls that pass tuples are inlined by now."""
    made = rewriter.op.operands[0].owner
    if str(made.name) != "stablehlo.tuple":
        return None
    return [made.operands[int(rewriter.op.attributes["index"].value)]]


#: Patterns for ops, also in regions.
PATTERNS: Final = patterns_of(
    {
        **PLACEMENTS,
        "stablehlo.batch_norm_grad": batch_norm_grad,
        "stablehlo.batch_norm_inference": batch_norm_inference,
        "stablehlo.batch_norm_training": batch_norm_training,
        "stablehlo.broadcast": broadcast,
        "stablehlo.cholesky": cholesky,
        "stablehlo.compare": compare,
        "stablehlo.convolution": convolution,
        "stablehlo.create_token": _create_token,
        "stablehlo.divide": divide,
        "stablehlo.dot": dot,
        "stablehlo.dot_general": dot_general,
        "stablehlo.dynamic_conv": convolution,
        "stablehlo.dynamic_gather": signed_from(1, 2),
        "stablehlo.dynamic_slice": signed_from(1),
        "stablehlo.dynamic_update_slice": signed_from(2),
        "stablehlo.einsum": einsum,
        "stablehlo.exponential_minus_one": exponential_minus_one,
        "stablehlo.fft": fft,
        "stablehlo.gather": signed_from(1, 2),
        "stablehlo.get_tuple_element": _get_tuple_element,
        "stablehlo.log_plus_one": log_plus_one,
        "stablehlo.real_dynamic_slice": real_dynamic_slice,
        "stablehlo.remainder": remainder,
        "stablehlo.rng_bit_generator": rng_bit_generator,
        "stablehlo.scatter": scatter,
        "stablehlo.torch_index_select": torch_index_select,
        "stablehlo.triangular_solve": triangular_solve,
        "stablehlo.unary_einsum": unary_einsum,
    },
    required=True,
)


def apply_required(
    provider: Provider, module: ModuleOp, patterns: Iterable[Pattern], name: str, *, retyping: bool = False
) -> None:
    """With ``retyping``, replacements may have other types than the results; the caller then verifies the module."""
    try:
        apply_patterns(provider, module, patterns, retyping=retyping)
    except UnmatchedOpError as error:
        raise refusal(error.op, name, str(error)) from error
