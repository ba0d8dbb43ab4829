"""Legalization of CHLO scans to loops.

Before 1.18.0, StableHLO scans forwards even with ``is_reverse``, crashes the process on complex numbers, and creates
ops of dynamic shapes that XLA does not compile; no version supports a scan within a scan. The loops built here have the
ops of ``ConvertScanOp`` in ``stablehlo/transforms/ChloLegalizeToStablehlo.cpp`` of openxla/stablehlo 1.18.0, so that an
artifact does not depend on the library. Semantics of a scan: https://openxla.org/xla/operation_semantics#scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Operation, Provider
from vhlo_tools.rewriting import DIMENSION_BITS, MatchFailure, Pattern, Rewriter, apply_patterns
from vhlo_tools.version import Version

_SCAN: Final = "chlo.scan"
_MENDED: Final = Version("1.18.0")


def legalizes_scans(provider: Provider) -> bool:
    return provider.library.current >= _MENDED


def legalize_scans(provider: Provider, module: ModuleOp) -> list[Operation]:
    """Returns the scans that cannot be replaced, on which the library may crash."""
    apply_patterns(provider, module, [Pattern(_SCAN, _loop)])
    return [op for op in provider.walk(module) if str(op.name) == _SCAN]


def _loop(rewriter: Rewriter) -> Sequence[Any]:
    op = rewriter.op
    dimension = int(op.attributes["dimension"].value)
    of_inputs, of_carries = op.attributes["operandSegmentSizes"]
    inputs, inits = list(op.operands)[:of_inputs], list(op.operands)[of_inputs:]
    outputs = [result.type for result in list(op.results)[: len(op.results) - of_carries]]
    extent = _extent(rewriter, inputs, outputs, dimension)
    index = rewriter.size(0)
    filled = [_zeros(rewriter, type_, extent, dimension) for type_ in outputs]
    initial = [index, *inits, *filled]
    types = [each.type for each in initial]
    truth = rewriter.tensor((), rewriter.integer(1))

    def goes_on(index: Any, *_: Any) -> Sequence[Any]:
        direction = rewriter.attribute("#stablehlo<comparison_direction LT>")
        return [rewriter.make("stablehlo.compare", [index, extent], truth, comparison_direction=direction)]

    def step(index: Any, *values: Any) -> Sequence[Any]:
        at = _position(rewriter, index, extent)
        slices = [_slice(rewriter, each, at, dimension) for each in inputs]
        made = rewriter.body([*slices, *values[:of_carries]])
        held = values[of_carries:]
        parts = made[: len(outputs)]
        updated = [_update(rewriter, whole, part, at, dimension) for whole, part in zip(held, parts, strict=True)]
        following = rewriter.make("stablehlo.add", [index, rewriter.size(1)], index.type)
        return [following, *made[len(outputs) :], *updated]

    _, *results = rewriter.make_with_bodies("stablehlo.while", initial, types, [(types, goes_on), (types, step)])
    return [*results[of_carries:], *results[:of_carries]]


def _extent(rewriter: Rewriter, inputs: Sequence[Any], outputs: Sequence[Any], dimension: int) -> Any:
    """The number of steps."""
    if not inputs:
        if "scan_dim_size" in rewriter.op.attributes:
            return rewriter.size(int(rewriter.op.attributes["scan_dim_size"].value))
        # Without inputs there are outputs, as the verifier ensures.
        return rewriter.size(_known(rewriter, outputs[0])[dimension])
    of_32 = rewriter.tensor((), rewriter.integer(32))
    asked = rewriter.make("stablehlo.get_dimension_size", inputs[:1], of_32, dimension=rewriter.number(dimension))
    return rewriter.convert(asked, rewriter.integer(DIMENSION_BITS))


def _zeros(rewriter: Rewriter, type_: Any, extent: Any, dimension: int) -> Any:
    if not rewriter.is_number(type_) and not rewriter.is_complex(type_):
        raise MatchFailure(f"outputs of type {type_}")
    zero = rewriter.constant(rewriter.tensor((), type_.element_type), 0)
    to = rewriter.integers([])
    if None not in rewriter.shape(type_):
        return rewriter.make("stablehlo.broadcast_in_dim", [zero], type_, broadcast_dimensions=to)
    sizes = [rewriter.size(size) for size in _known(rewriter, type_, but=dimension)]
    sizes[dimension] = extent
    of_sizes = rewriter.joined(sizes, extent.type.element_type)
    return rewriter.make("stablehlo.dynamic_broadcast_in_dim", [zero, of_sizes], type_, broadcast_dimensions=to)


def _known(rewriter: Rewriter, type_: Any, but: int | None = None) -> list[int]:
    """The size of the dimension ``but``, which may be dynamic, is returned as 1."""
    sizes = [1 if at == but else size for at, size in enumerate(rewriter.shape(type_))]
    return list(rewriter.static(rewriter.tensor(sizes, type_.element_type)))


def _position(rewriter: Rewriter, index: Any, extent: Any) -> Any:
    if "is_reverse" not in rewriter.op.attributes or not rewriter.op.attributes["is_reverse"].value:
        return index
    last = rewriter.make("stablehlo.subtract", [extent, rewriter.size(1)], index.type)
    return rewriter.make("stablehlo.subtract", [last, index], index.type)


def _slice(rewriter: Rewriter, whole: Any, at: Any, dimension: int) -> Any:
    sizes = _known(rewriter, whole.type, but=dimension)
    type_ = rewriter.tensor(sizes, whole.type.element_type)
    starts = _starts(rewriter, at, len(sizes), dimension)
    part = rewriter.make("stablehlo.dynamic_slice", [whole, *starts], type_, slice_sizes=rewriter.integers(sizes))
    return rewriter.reshape(part, sizes[:dimension] + sizes[dimension + 1 :])


def _update(rewriter: Rewriter, whole: Any, part: Any, at: Any, dimension: int) -> Any:
    sizes = _known(rewriter, whole.type, but=dimension)
    part = rewriter.reshape(part, sizes)
    starts = _starts(rewriter, at, len(sizes), dimension)
    return rewriter.make("stablehlo.dynamic_update_slice", [whole, part, *starts], whole.type)


def _starts(rewriter: Rewriter, at: Any, rank: int, dimension: int) -> list[Any]:
    zero = rewriter.size(0)
    return [at if each == dimension else zero for each in range(rank)]
