"""Ops that the interpreter lacks, or dies of, rewritten into ops that it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Provider
from vhlo_tools.interpreter.lowering.accumulation import convolution
from vhlo_tools.interpreter.lowering.annotations import annotated, declared
from vhlo_tools.interpreter.lowering.decomposition import cholesky
from vhlo_tools.interpreter.lowering.division import divide, remainder
from vhlo_tools.interpreter.lowering.indices import signed_from
from vhlo_tools.interpreter.lowering.normalization import batch_norm_grad, batch_norm_inference, batch_norm_training
from vhlo_tools.interpreter.lowering.ordering import compare
from vhlo_tools.interpreter.lowering.products import (
    broadcast,
    dot,
    dot_general,
    einsum,
    torch_index_select,
    unary_einsum,
)
from vhlo_tools.interpreter.lowering.random_bits import rng_bit_generator
from vhlo_tools.interpreter.lowering.slicing import real_dynamic_slice
from vhlo_tools.interpreter.lowering.solving import triangular_solve
from vhlo_tools.interpreter.lowering.transform import fft
from vhlo_tools.interpreter.refusals import refusal
from vhlo_tools.portable.site import Site, Unfit

__all__ = ["RULES", "Rule", "apply_rules"]

#: Builds what stands for the results of the op of a site, in order; ``None`` leaves the op as it is. Raises
#: :class:`Unfit` where the op has no meaning that is known.
Rule = Callable[[Site], Sequence[Any] | None]


def _create_token(site: Site) -> list[Any]:
    """A token of nothing is one after nothing, which the interpreter has."""
    return site.make_several("stablehlo.after_all", [], [site.op.results[0].type])


def _get_tuple_element(site: Site) -> list[Any] | None:
    """Calls that pass tuples are gone by now, and no op of control flow does, so what made it stands before it."""
    made = site.op.operands[0].owner
    if str(made.name) != "stablehlo.tuple":
        return None
    return [made.operands[int(site.op.attributes["index"].value)]]


def _scatter(site: Site) -> Sequence[Any] | None:
    """Before the indices there are as many operands as after them."""
    middle = len(site.op.operands) // 2
    return signed_from(middle, middle + 1)(site)


#: How ops are replaced, in regions too.
RULES: Final[Mapping[str, Rule]] = {
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
    "stablehlo.scatter": _scatter,
    "stablehlo.torch_index_select": torch_index_select,
    "stablehlo.triangular_solve": triangular_solve,
    "stablehlo.unary_einsum": unary_einsum,
}


def apply_rules(
    provider: Provider, module: ModuleOp, rules: Mapping[str, Rule], name: str, *, valid: bool = True
) -> None:
    """Replace the ops of ``module`` that ``rules`` are for, in place.

    Args:
        provider: The bindings.
        module: The program.
        rules: For the names of ops, how they are replaced.
        name: What to call the program in messages.
        valid: Whether what comes of it is to be verified.

    Raises:
        EngineError: Naming an op that cannot be replaced.
        MLIRFailure: If what was built is not valid.
    """
    replaced = False
    with module.context:
        for op in provider.walk(module):
            rule = rules.get(str(op.name))
            if rule is None:
                continue
            try:
                values = rule(Site(provider, op, {}))
            except Unfit as unfit:
                raise refusal(op, name, str(unfit)) from unfit
            if values is None:
                continue
            for result, value in zip(op.results, values, strict=True):
                result.replace_all_uses_with(value)
            op.operation.erase()
            replaced = True
    if replaced and valid:
        provider.verify(module)
