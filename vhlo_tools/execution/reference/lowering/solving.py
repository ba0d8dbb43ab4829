"""Triangular systems of equations on which the interpreter crashes: in batches, and of adjoint matrices.

It confuses the diagonal of a batch with that of a matrix (``triangularSolveOp`` in ``stablehlo/reference/Ops.cpp`` of
openxla/stablehlo), so each op gets a single matrix. An adjoint matrix is the transposed matrix of the conjugates.
"""

from __future__ import annotations

from math import prod
from typing import Any

from vhlo_tools.rewriting import Rewriter, Tensor, loop, tensors


def triangular_solve(rewriter: Rewriter) -> list[Any] | None:
    matrices, sides = tensors(rewriter)
    *batch, _, _ = sides.shape
    attributes = {each: rewriter.op.attributes[each] for each in ("left_side", "lower", "unit_diagonal", "transpose_a")}
    is_adjoint = "ADJOINT" in str(attributes["transpose_a"])
    if is_adjoint:
        matrices = matrices.conjugate()
        attributes["transpose_a"] = rewriter.attribute("#stablehlo<transpose TRANSPOSE>")
    if not batch or 0 in sides.shape:
        if not is_adjoint:
            return None
        return [rewriter.make("stablehlo.triangular_solve", [matrices.value, sides.value], sides.type, **attributes)]
    count = prod(batch)
    every_matrix = matrices.reshape(count, *matrices.shape[-2:])
    every_side = sides.reshape(count, *sides.shape[-2:])
    zero = Tensor(rewriter, rewriter.constant(rewriter.tensor((), rewriter.integer(64)), 0))

    def step(index: Tensor, solved: Tensor) -> Tensor:
        at = [index, zero, zero]
        matrix = every_matrix.take(at, [1, *every_matrix.shape[1:]]).reshape(*every_matrix.shape[1:])
        side = every_side.take(at, [1, *every_side.shape[1:]]).reshape(*every_side.shape[1:])
        solution = rewriter.make("stablehlo.triangular_solve", [matrix.value, side.value], side.type, **attributes)
        return solved.put(Tensor(rewriter, solution).reshape(1, *side.shape), at)

    return [loop(rewriter, count, every_side, step).reshape(*sides.shape).value]
