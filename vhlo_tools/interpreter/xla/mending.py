"""Ops that XLA compiles wrong on a CPU, or ends the process over, in a form with the same meaning that it has right.

Each was measured with jaxlib 0.10.2 and 0.12.0.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Provider, named_attributes
from vhlo_tools.interpreter.lowering.indices import signed_from
from vhlo_tools.interpreter.lowering.rules import Rule, apply_rules
from vhlo_tools.interpreter.lowering.tensor import Tensor, tensors
from vhlo_tools.portable.site import Site

__all__ = ["mend"]


def mend(provider: Provider, module: ModuleOp, name: str) -> None:
    """Rewrite what XLA has not right, in place.

    Args:
        provider: The bindings.
        module: The program.
        name: What to call it in messages.

    Raises:
        MLIRFailure: If what was built is not valid.
    """
    apply_rules(provider, module, _RULES, name)


def _one_by_one(site: Site) -> list[Any] | None:
    """Exchange operands one by one, those of two bits as bytes.

    XLA takes an exchange of several parts for one of a tuple, whose elements are the parts; and it gathers several
    arrays of narrow elements along the first dimension whatever the program says.
    """
    operands = tensors(site)
    if len(operands) == 1 and not _is_of_two_bits(operands[0]):
        return None
    name, held = str(site.op.name), dict(named_attributes(site.op.attributes))
    kinds = [result.type for result in site.op.results]
    return [
        site.convert(site.make(name, [_widened(operand)], _wide(site, kind), **held), kind.element_type)
        for operand, kind in zip(operands, kinds, strict=True)
    ]


def _concatenate(site: Site) -> list[Any] | None:
    """Concatenate elements of two bits as bytes: XLA ends the process."""
    operands = tensors(site)
    if not _is_of_two_bits(operands[0]):
        return None
    kind = site.op.results[0].type
    (value,) = site.make_again([_widened(each) for each in operands], [_wide(site, kind)])
    return [site.convert(value, kind.element_type)]


def _rng_bit_generator(site: Site) -> list[Any] | None:
    """Draw bits as integers without a sign: XLA gives these whatever type the program says."""
    state, drawn = (result.type for result in site.op.results)
    bits = site.integer(drawn.element_type.width, unsigned=True)
    if bits == drawn.element_type:
        return None
    unsigned = site.tensor(site.shape(drawn), bits)
    next_state, value = site.make_again(list(site.op.operands), [state, unsigned])
    return [next_state, site.make("stablehlo.bitcast_convert", [value], drawn)]


def _is_of_two_bits(value: Tensor) -> bool:
    return value.site.is_integer(value.kind, 2)


def _wide(site: Site, kind: Any) -> Any:
    """Return a type with bytes for elements of two bits."""
    if not site.is_integer(kind, 2):
        return kind
    return site.tensor(site.shape(kind), site.integer(8, unsigned=kind.element_type.is_unsigned))


def _widened(value: Tensor) -> Any:
    return value.convert(_wide(value.site, value.kind).element_type).value


_RULES: Final[Mapping[str, Rule]] = {
    "stablehlo.all_gather": _one_by_one,
    "stablehlo.all_to_all": _one_by_one,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.dynamic_slice": signed_from(1),
    "stablehlo.dynamic_update_slice": signed_from(2),
    "stablehlo.rng_bit_generator": _rng_bit_generator,
}
