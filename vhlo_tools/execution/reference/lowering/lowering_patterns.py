"""Patterns for ops that the interpreter lacks or crashes on, which rewrite them into ops that it supports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Provider
from vhlo_tools.execution.reference.lowering.accumulation import convolution
from vhlo_tools.execution.reference.lowering.annotations import annotated, declared
from vhlo_tools.execution.reference.lowering.decomposition import cholesky
from vhlo_tools.execution.reference.lowering.division import divide, remainder
from vhlo_tools.execution.reference.lowering.indices import signed_from
from vhlo_tools.execution.reference.lowering.normalization import (
    batch_norm_grad,
    batch_norm_inference,
    batch_norm_training,
)
from vhlo_tools.execution.reference.lowering.ordering import compare
from vhlo_tools.execution.reference.lowering.products import (
    broadcast,
    dot,
    dot_general,
    einsum,
    torch_index_select,
    unary_einsum,
)
from vhlo_tools.execution.reference.lowering.random_bits import rng_bit_generator
from vhlo_tools.execution.reference.lowering.scattering import scatter
from vhlo_tools.execution.reference.lowering.slicing import real_dynamic_slice
from vhlo_tools.execution.reference.lowering.solving import triangular_solve
from vhlo_tools.execution.reference.lowering.transform import fft
from vhlo_tools.execution.refusals import refusal
from vhlo_tools.rewriting import Pattern, Rewriter, UnmatchedOpError, apply_patterns, patterns_of


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
        "sdy.propagation_barrier": annotated,
        "sdy.reshard": annotated,
        "sdy.sharding_constraint": annotated,
        "sdy.sharding_group": declared,
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
        "stablehlo.fft": fft,
        "stablehlo.gather": signed_from(1, 2),
        "stablehlo.get_tuple_element": _get_tuple_element,
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
