"""Rules for aliases of a custom call.

They are those of ``CustomCallOp::verify`` in openxla/stablehlo (``stablehlo/dialect/StablehloOps.cpp``), which permits
several aliases of one value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vhlo_tools.aliasing.config import AliasViolation
from vhlo_tools.aliasing.shapes import Array, Tuple, format_index, subshape

if TYPE_CHECKING:
    from vhlo_tools.aliasing.alias_entries import Alias
    from vhlo_tools.aliasing.program_aliases import CallAliases
    from vhlo_tools.aliasing.shapes import Shape

_REMEDY = "alias a result with an operand of the same type and shape"


def call_violations(call: CallAliases) -> list[AliasViolation]:
    """Return the first violation of each alias of a custom call."""
    broken = (_violation(call, alias) for alias in call.aliases)
    return [each for each in broken if each is not None]


def _violation(call: CallAliases, alias: Alias) -> AliasViolation | None:
    number, operands = alias.parameter_number, call.signature.parameters
    exists = 0 <= number < len(operands)
    output = subshape(call.signature.result, alias.output_index)
    held = subshape(operands[number], alias.parameter_index) if exists else None
    result, operand = format_index(alias.output_index), f"operand {number} at {format_index(alias.parameter_index)}"
    if output is None:
        message = f"there is no result {result}: the result is {call.signature.result}"
        return AliasViolation("output-index", alias, message, _REMEDY)
    if not exists:
        message = f"there is no operand {number}: the call has {len(operands)}"
        return AliasViolation("parameter-number", alias, message, _REMEDY)
    if held is None:
        message = f"there is no {operand}: its shape is {operands[number]}"
        return AliasViolation("parameter-index", alias, message, _REMEDY)
    if not _compatible(output, held):
        return AliasViolation("shape", alias, f"result {result} is {output}, but {operand} is {held}", _REMEDY)
    return None


def _compatible(one: Shape, other: Shape) -> bool:
    """Whether two shapes can be equal, treating dynamic sizes as unknown."""
    if isinstance(one, Array) and isinstance(other, Array):
        sizes = zip(one.sizes, other.sizes, strict=False)
        fit = all(a == b or a is None or b is None for a, b in sizes)
        return one.element == other.element and len(one.sizes) == len(other.sizes) and fit
    if isinstance(one, Tuple) and isinstance(other, Tuple):
        pairs = zip(one.elements, other.elements, strict=False)
        return len(one.elements) == len(other.elements) and all(_compatible(a, b) for a, b in pairs)
    return one == other
