"""The Cholesky decomposition, column by column in a loop.

Only the triangle that the op specifies is read. As in XLA on a CPU, the other triangle of the result is zero, and if a
matrix is not positive definite, its whole result is NaN. Source: ``xla/hlo/transforms/expanders/cholesky_expander.cc``
in openxla/xla.
"""

from __future__ import annotations

from typing import Any

from vhlo_tools.rewriting import (
    Rewriter,
    Tensor,
    iota,
    loop,
    select,
    tensors,
)


def cholesky(rewriter: Rewriter) -> list[Any]:
    (matrices,) = tensors(rewriter)
    if 0 in matrices.shape:
        return [matrices.value]
    is_lower = "lower" in rewriter.op.attributes and rewriter.op.attributes["lower"].value
    lower = _lower(matrices if is_lower else _adjoint(matrices))
    return [(lower if is_lower else _adjoint(lower)).value]


def _adjoint(matrices: Tensor) -> Tensor:
    *batch, row, column = range(len(matrices.shape))
    return matrices.transpose(*batch, column, row).conjugate()


def _lower(matrices: Tensor) -> Tensor:
    rewriter, shape = matrices.rewriter, matrices.shape
    *batch, size, _ = shape
    of_index = rewriter.integer(64)
    rows, columns = (iota(rewriter, shape, of_index, len(batch) + each) for each in (0, 1))
    zero = Tensor(rewriter, rewriter.constant(rewriter.tensor((), of_index), 0))
    outer = [*range(len(batch) + 1)]

    def step(index: Tensor, rest: Tensor) -> Tensor:
        """Turns a column of ``rest`` into one of the factor, and subtracts its contribution from later columns."""
        at = [*[zero] * len(batch), index]
        column = rest.take([*at[:-1], zero, index], [*batch, size, 1])
        pivot = rest.take([*at, index], [*batch, 1, 1]).part("real").apply("sqrt").convert(matrices.element)
        # Above the diagonal the column contains elements that must not be read.
        below = iota(rewriter, column.shape, of_index, len(batch)).compare("GE", index.broadcast(column.shape))
        column = select(below, column / pivot.broadcast(column.shape, range(len(shape))), 0)
        across = column.reshape(*batch, size)
        share = across.broadcast(shape, outer) * across.conjugate().broadcast(shape, [*outer[:-1], len(outer)])
        after = columns.compare("GT", index.broadcast(shape))
        return select(after, rest - share, rest).put(column, [*at[:-1], zero, index])

    factor = select(rows.compare("GE", columns), loop(rewriter, size, matrices, step), 0)
    failed = factor.part("real").compare("NE", factor.part("real")).reduce("or", [len(shape) - 2, len(shape) - 1])
    nothing = Tensor(rewriter, rewriter.constant(matrices.type, 0)) / 0
    return select(failed.broadcast(shape, range(len(batch))), nothing, factor)
