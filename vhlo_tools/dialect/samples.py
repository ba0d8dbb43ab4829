"""Ops made out of a specification alone, to try its steps with."""

from __future__ import annotations

from vhlo_tools.dialect.defaults import Structure
from vhlo_tools.dialect.ops import OpVersion, Slot
from vhlo_tools.dialect.specification import Specification
from vhlo_tools.dialect.stepping import Operation

__all__ = ["OTHER_VALUE", "sample"]

#: No default of anything.
OTHER_VALUE: Structure = {"attribute": "string_v1", "value": "not the default"}

# Of four dimensions, so that the padding of a convolution has two spatial ones.
_TENSOR: Structure = {"type": "tensor_v1", "shape": [1, 2, 3, 4], "element": {"type": "f32_v1"}}


def sample(specs: Specification, version: OpVersion) -> Operation:
    """Return an op of ``version`` that every step lets through.

    Attributes that no step knows are strings, and all values have one type: what an op means is not specified.
    """
    op = specs.op(version.op)
    steps = op.steps if op else ()
    single = {name for step in steps for name in step.single}
    empty = {name for step in steps for name in step.empty}
    added = {name: specs.default(default) for step in steps for name, default in step.added.items()}

    def value(name: str) -> Structure:
        default = added.get(name)
        return (default.value if default else None) or {"attribute": "string_v1", "value": name}

    def count(slots: tuple[Slot, ...]) -> int:
        return sum(0 if slot.name in empty else 1 if slot.name in single or not slot.variadic else 2 for slot in slots)

    return Operation(
        version.name,
        {name: value(name) for name in version.attributes},
        (_TENSOR,) * count(version.operands),
        (_TENSOR,) * count(version.results),
        count(version.regions),
    )
