"""Matching of the donors of a program with outputs.

XLA matches them at compilation, larger outputs first. Source:
``xla/hlo/transforms/simplifiers/optimize_input_output_buffer_alias.cc`` in openxla/xla.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vhlo_tools.aliasing.alias_entries import Alias
from vhlo_tools.aliasing.shapes import Array, leaves, subshape

if TYPE_CHECKING:
    from vhlo_tools.aliasing.config import AliasConfig
    from vhlo_tools.aliasing.shapes import ShapeIndex


def compiled_aliases(config: AliasConfig) -> tuple[Alias, ...]:
    """Return the aliases of the compiled program: its own, and a may-alias for each matched donor.

    A donor matches a remaining output of the same size in bytes. Donors of dynamic size are not matched, and if any
    remaining output has a dynamic size, no donor is.
    """
    held = (
        (each, subshape(config.signature.parameters[each.parameter_number], each.parameter_index))
        for each in config.donors
    )
    donors = [(shape.bytes, each) for each, shape in held if isinstance(shape, Array) and shape.bytes is not None]
    outputs: list[tuple[int, ShapeIndex]] = []
    for index, shape in leaves(config.signature.result):
        if isinstance(shape, Array) and config.alias_of_output(index) is None:
            if shape.bytes is None:
                return config.aliases
            outputs.append((shape.bytes, index))
    matched = []
    donors.sort(key=lambda each: -each[0])
    outputs.sort(key=lambda each: -each[0])
    while donors and outputs:
        (given, donor), (taken, index) = donors[0], outputs[0]
        if given == taken:
            matched.append(Alias(index, donor.parameter_number, donor.parameter_index))
        if given >= taken:
            donors.pop(0)
        if given <= taken:
            outputs.pop(0)
    return tuple(sorted((*config.aliases, *matched)))
