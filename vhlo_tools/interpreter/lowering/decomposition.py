"""The Cholesky decomposition, column by column in a loop.

Only the triangle that is asked for is read. As from XLA on a CPU, the other triangle of the result is zero, and where a
matrix is not positive definite, its whole result is NaN. Source: ``xla/hlo/transforms/expanders/cholesky_expander.cc``
in openxla/xla.
"""

from __future__ import annotations

from typing import Any

from vhlo_tools.interpreter.lowering.tensor import Tensor, iota, loop, select, tensors
from vhlo_tools.portable.site import Site

__all__ = ["cholesky"]


def cholesky(site: Site) -> list[Any]:
    """Return the triangular factor of each matrix."""
    (matrices,) = tensors(site)
    if 0 in matrices.shape:
        return [matrices.value]
    is_lower = "lower" in site.op.attributes and site.op.attributes["lower"].value
    lower = _lower(matrices if is_lower else _adjoint(matrices))
    return [(lower if is_lower else _adjoint(lower)).value]


def _adjoint(matrices: Tensor) -> Tensor:
    *batch, row, column = range(len(matrices.shape))
    return matrices.transpose(*batch, column, row).conjugate()


def _lower(matrices: Tensor) -> Tensor:
    site, shape = matrices.site, matrices.shape
    *batch, size, _ = shape
    of_index = site.integer(64)
    rows, columns = (iota(site, shape, of_index, len(batch) + each) for each in (0, 1))
    zero = Tensor(site, site.constant(site.tensor((), of_index), 0))
    outer = [*range(len(batch) + 1)]

    def step(index: Tensor, rest: Tensor) -> Tensor:
        """Turn a column of ``rest`` into one of the factor, and take its share from the columns after it."""
        at = [*[zero] * len(batch), index]
        column = rest.take([*at[:-1], zero, index], [*batch, size, 1])
        pivot = rest.take([*at, index], [*batch, 1, 1]).part("real").apply("sqrt").convert(matrices.element)
        # Above the diagonal it holds what was never asked for.
        below = iota(site, column.shape, of_index, len(batch)).compare("GE", index.broadcast(column.shape))
        column = select(below, column / pivot.broadcast(column.shape, range(len(shape))), 0)
        across = column.reshape(*batch, size)
        share = across.broadcast(shape, outer) * across.conjugate().broadcast(shape, [*outer[:-1], len(outer)])
        after = columns.compare("GT", index.broadcast(shape))
        return select(after, rest - share, rest).put(column, [*at[:-1], zero, index])

    factor = select(rows.compare("GE", columns), loop(site, size, matrices, step), 0)
    failed = factor.part("real").compare("NE", factor.part("real")).reduce("or", [len(shape) - 2, len(shape) - 1])
    nothing = Tensor(site, site.constant(matrices.kind, 0)) / 0
    return select(failed.broadcast(shape, range(len(batch))), nothing, factor)
