"""Triangular systems of equations in batches, which the interpreter ends the process over.

It takes the diagonal of a batch for that of a matrix (``triangularSolveOp`` in ``stablehlo/reference/Ops.cpp`` of
openxla/stablehlo), so it is given one matrix after the other.
"""

from __future__ import annotations

from math import prod
from typing import Any

from vhlo_tools.interpreter.lowering.tensor import Tensor, loop, tensors
from vhlo_tools.portable.site import Site

__all__ = ["triangular_solve"]


def triangular_solve(site: Site) -> list[Any] | None:
    """Solve the systems of a batch one by one."""
    matrices, sides = tensors(site)
    *batch, _, _ = sides.shape
    if not batch or 0 in sides.shape:
        return None
    count = prod(batch)
    every_matrix = matrices.reshape(count, *matrices.shape[-2:])
    every_side = sides.reshape(count, *sides.shape[-2:])
    zero = Tensor(site, site.constant(site.tensor((), site.integer(64)), 0))
    attributes = {each: site.op.attributes[each] for each in ("left_side", "lower", "unit_diagonal", "transpose_a")}

    def step(index: Tensor, solved: Tensor) -> Tensor:
        at = [index, zero, zero]
        matrix = every_matrix.take(at, [1, *every_matrix.shape[1:]]).reshape(*every_matrix.shape[1:])
        side = every_side.take(at, [1, *every_side.shape[1:]]).reshape(*every_side.shape[1:])
        solution = site.make("stablehlo.triangular_solve", [matrix.value, side.value], side.kind, **attributes)
        return solved.put(Tensor(site, solution).reshape(1, *side.shape), at)

    return [loop(site, count, every_side, step).reshape(*sides.shape).value]
