"""Scatters whose inputs the interpreter overwrites.

Up to StableHLO 1.17, ``evalScatterOp`` in ``stablehlo/reference/Ops.cpp`` of openxla/stablehlo writes its results into
the memory of its inputs, which other ops may use.
"""

from __future__ import annotations

from typing import Final

from vhlo_tools.rewriting import Pattern, Rewriter
from vhlo_tools.version import Version

__all__ = ["SCATTER_PATTERNS", "writes_over_inputs"]

_FIXED: Final = Version("1.18.0")


def writes_over_inputs(library: Version) -> bool:
    """Return whether the interpreter of a version overwrites the inputs of scatters."""
    return library < _FIXED


def _scatter(rewriter: Rewriter) -> None:
    """Give a scatter copies of its inputs: the interpreter creates new tensors for a reversal along no dimension."""
    operands = rewriter.op.operands
    for index in range((len(operands) - 1) // 2):
        value = operands[index]
        operands[index] = rewriter.make("stablehlo.reverse", [value], value.type, dimensions=rewriter.integers([]))


#: The pattern for scatters.
SCATTER_PATTERNS: Final = (Pattern("stablehlo.scatter", _scatter, required=True),)
