"""Workarounds for ops that XLA compiles incorrectly on a CPU, or crashes on: other forms with the same meaning.

Each was measured with jaxlib 0.10.2; 0.12.0.1 still needs all but that for ``dynamic_update_slice``. What reproduces
them is in ``docs/upstream-findings.md``.
"""

from __future__ import annotations

from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Provider, named_attributes
from vhlo_tools.execution.reference.lowering.indices import signed_from
from vhlo_tools.execution.reference.lowering.lowering_patterns import apply_required
from vhlo_tools.rewriting import Rewriter, Tensor, patterns_of, tensors

__all__ = ["WORKAROUNDS", "work_around"]


def work_around(provider: Provider, module: ModuleOp, name: str) -> None:
    """Rewrite ops that XLA compiles incorrectly, in place.

    Args:
        provider: The bindings.
        module: The program.
        name: The name of the program in messages.

    Raises:
        MLIRFailure: If the rewritten module is not valid.
    """
    apply_required(provider, module, WORKAROUNDS, name)


def _one_by_one(rewriter: Rewriter) -> list[Any] | None:
    """Exchange operands one by one, those of two bits as bytes.

    XLA treats an exchange of several operands as that of a tuple whose elements are the parts; and it gathers several
    arrays of narrow elements along the first dimension, regardless of the dimension that the program specifies.
    """
    operands = tensors(rewriter)
    if len(operands) == 1 and not _is_of_two_bits(operands[0]):
        return None
    name, held = str(rewriter.op.name), dict(named_attributes(rewriter.op.attributes))
    types = [result.type for result in rewriter.op.results]
    return [
        rewriter.convert(rewriter.make(name, [_widened(operand)], _wide(rewriter, type_), **held), type_.element_type)
        for operand, type_ in zip(operands, types, strict=True)
    ]


def _concatenate(rewriter: Rewriter) -> list[Any] | None:
    """Concatenate elements of two bits as bytes, because XLA crashes on them."""
    operands = tensors(rewriter)
    if not _is_of_two_bits(operands[0]):
        return None
    type_ = rewriter.op.results[0].type
    (value,) = rewriter.make_like([_widened(each) for each in operands], [_wide(rewriter, type_)])
    return [rewriter.convert(value, type_.element_type)]


def _rng_bit_generator(rewriter: Rewriter) -> list[Any] | None:
    """Generate bits as unsigned integers, because XLA returns these regardless of the type in the program."""
    state, drawn = (result.type for result in rewriter.op.results)
    bits = rewriter.integer(drawn.element_type.width, unsigned=True)
    if bits == drawn.element_type:
        return None
    unsigned = rewriter.tensor(rewriter.shape(drawn), bits)
    next_state, value = rewriter.make_like(list(rewriter.op.operands), [state, unsigned])
    return [next_state, rewriter.make("stablehlo.bitcast_convert", [value], drawn)]


def _is_of_two_bits(value: Tensor) -> bool:
    return value.rewriter.is_integer(value.type, 2)


def _wide(rewriter: Rewriter, type_: Any) -> Any:
    """Return a type, with bytes instead of elements of two bits."""
    if not rewriter.is_integer(type_, 2):
        return type_
    return rewriter.tensor(rewriter.shape(type_), rewriter.integer(8, unsigned=type_.element_type.is_unsigned))


def _widened(value: Tensor) -> Any:
    return value.convert(_wide(value.rewriter, value.type).element_type).value


WORKAROUNDS: Final = patterns_of(
    {
        "stablehlo.all_gather": _one_by_one,
        "stablehlo.all_to_all": _one_by_one,
        "stablehlo.concatenate": _concatenate,
        "stablehlo.dynamic_update_slice": signed_from(2),
        "stablehlo.rng_bit_generator": _rng_bit_generator,
    },
    required=True,
)
