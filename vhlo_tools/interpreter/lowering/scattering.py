"""Scatters whose inputs the interpreter would write over.

Up to StableHLO 1.17, ``evalScatterOp`` in ``stablehlo/reference/Ops.cpp`` of openxla/stablehlo writes its results into
the memory of its inputs, which others may use.
"""

from __future__ import annotations

from typing import Final

from vhlo_tools.interpreter.lowering.rules import Rule
from vhlo_tools.portable.site import Site
from vhlo_tools.version import Version

__all__ = ["RULES_OF_SCATTER", "writes_over_inputs"]

_MENDED: Final = Version("1.18.0")


def writes_over_inputs(library: Version) -> bool:
    """Tell whether the interpreter of a version writes over the inputs of scatters."""
    return library < _MENDED


def _scatter(site: Site) -> None:
    """Give a scatter inputs of its own: reversed along no dimension, the interpreter makes new tensors of them."""
    operands = site.op.operands
    for index in range((len(operands) - 1) // 2):
        value = operands[index]
        operands[index] = site.make("stablehlo.reverse", [value], value.type, dimensions=site.integers([]))


#: How ops are changed.
RULES_OF_SCATTER: Final[dict[str, Rule]] = {"stablehlo.scatter": _scatter}
