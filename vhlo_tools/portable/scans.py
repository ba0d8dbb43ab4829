"""Scans of CHLO as loops.

Before 1.18.0, StableHLO scans forwards whatever ``is_reverse`` says, ends the process over complex numbers, and makes
ops of dynamic shapes that XLA does not compile; no version takes a scan within a scan. What is made here has the ops of
``ConvertScanOp`` in ``stablehlo/transforms/ChloLegalizeToStablehlo.cpp`` of openxla/stablehlo 1.18.0, and an artifact
does not depend on the library. What a scan does: https://openxla.org/xla/operation_semantics#scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Operation, Provider
from vhlo_tools.portable.notes import Notes
from vhlo_tools.portable.rewriting import rewrite_ops
from vhlo_tools.portable.site import DIMENSION_BITS, Site, Unfit
from vhlo_tools.version import Version

__all__ = ["legalize_scans", "legalizes_scans"]

_SCAN: Final = "chlo.scan"
_MENDED: Final = Version("1.18.0")


def legalizes_scans(provider: Provider) -> bool:
    """Tell whether what the library makes of scans means what they mean."""
    return provider.library.current >= _MENDED


def legalize_scans(provider: Provider, module: ModuleOp) -> list[Operation]:
    """Replace scans by loops, in place.

    Args:
        provider: The bindings.
        module: A valid module.

    Returns:
        Those that cannot be replaced, of which the library may die.
    """
    left = _scans(provider, module)
    while left:
        count = len(left)
        del left
        rewrite_ops(provider, module, {_SCAN: _loop}, Notes(""))
        # Scans within a scan were built anew with it, and are replaced in the next turn.
        left = _scans(provider, module)
        if len(left) >= count:
            break
    return left


def _scans(provider: Provider, module: ModuleOp) -> list[Operation]:
    return [op for op in provider.walk(module) if str(op.name) == _SCAN]


def _is_within_another(op: Any) -> bool:
    while (op := op.parent) is not None:
        if str(op.name) == _SCAN:
            return True
    return False


def _loop(site: Site) -> Sequence[Any]:
    op = site.op
    if _is_within_another(op):
        raise Unfit("its turn comes after that of the outer one")
    dimension = int(op.attributes["dimension"].value)
    of_inputs, of_carries = op.attributes["operandSegmentSizes"]
    inputs, inits = list(op.operands)[:of_inputs], list(op.operands)[of_inputs:]
    outputs = [result.type for result in list(op.results)[: len(op.results) - of_carries]]
    extent = _extent(site, inputs, outputs, dimension)
    index = site.size(0)
    filled = [_zeros(site, kind, extent, dimension) for kind in outputs]
    initial = [index, *inits, *filled]
    kinds = [each.type for each in initial]
    truth = site.tensor((), site.integer(1))

    def goes_on(index: Any, *_: Any) -> Sequence[Any]:
        direction = site.attribute("#stablehlo<comparison_direction LT>")
        return [site.make("stablehlo.compare", [index, extent], truth, comparison_direction=direction)]

    def step(index: Any, *values: Any) -> Sequence[Any]:
        at = _position(site, index, extent)
        slices = [_slice(site, each, at, dimension) for each in inputs]
        made = site.body([*slices, *values[:of_carries]])
        held = values[of_carries:]
        parts = made[: len(outputs)]
        updated = [_update(site, whole, part, at, dimension) for whole, part in zip(held, parts, strict=True)]
        following = site.make("stablehlo.add", [index, site.size(1)], index.type)
        return [following, *made[len(outputs) :], *updated]

    _, *results = site.make_with_bodies("stablehlo.while", initial, kinds, [(kinds, goes_on), (kinds, step)])
    return [*results[of_carries:], *results[:of_carries]]


def _extent(site: Site, inputs: Sequence[Any], outputs: Sequence[Any], dimension: int) -> Any:
    """Return how many steps there are."""
    if not inputs:
        if "scan_dim_size" in site.op.attributes:
            return site.size(int(site.op.attributes["scan_dim_size"].value))
        # Without inputs there are outputs, as its verifier sees to.
        return site.size(_known(site, outputs[0])[dimension])
    of_32 = site.tensor((), site.integer(32))
    asked = site.make("stablehlo.get_dimension_size", inputs[:1], of_32, dimension=site.number(dimension))
    return site.convert(asked, site.integer(DIMENSION_BITS))


def _zeros(site: Site, kind: Any, extent: Any, dimension: int) -> Any:
    """Return a tensor to be written over."""
    if not site.is_number(kind) and not site.is_complex(kind):
        raise Unfit(f"outputs of type {kind}")
    zero = site.constant(site.tensor((), kind.element_type), 0)
    to = site.integers([])
    if None not in site.shape(kind):
        return site.make("stablehlo.broadcast_in_dim", [zero], kind, broadcast_dimensions=to)
    sizes = [site.size(size) for size in _known(site, kind, but=dimension)]
    sizes[dimension] = extent
    of_sizes = site.joined(sizes, extent.type.element_type)
    return site.make("stablehlo.dynamic_broadcast_in_dim", [zero, of_sizes], kind, broadcast_dimensions=to)


def _known(site: Site, kind: Any, but: int | None = None) -> list[int]:
    """Return the sizes of a tensor; that of the dimension ``but`` is 1.

    Raises:
        Unfit: If another one is known at run time only.
    """
    sizes = [1 if at == but else size for at, size in enumerate(site.shape(kind))]
    return list(site.static(site.tensor(sizes, kind.element_type)))


def _position(site: Site, index: Any, extent: Any) -> Any:
    """Return where a step reads and writes."""
    if "is_reverse" not in site.op.attributes or not site.op.attributes["is_reverse"].value:
        return index
    last = site.make("stablehlo.subtract", [extent, site.size(1)], index.type)
    return site.make("stablehlo.subtract", [last, index], index.type)


def _slice(site: Site, whole: Any, at: Any, dimension: int) -> Any:
    """Return what of an input a step gets."""
    sizes = _known(site, whole.type, but=dimension)
    kind = site.tensor(sizes, whole.type.element_type)
    starts = _starts(site, at, len(sizes), dimension)
    part = site.make("stablehlo.dynamic_slice", [whole, *starts], kind, slice_sizes=site.integers(sizes))
    return site.reshape(part, sizes[:dimension] + sizes[dimension + 1 :])


def _update(site: Site, whole: Any, part: Any, at: Any, dimension: int) -> Any:
    """Return an output with what a step made of it."""
    sizes = _known(site, whole.type, but=dimension)
    part = site.reshape(part, sizes)
    starts = _starts(site, at, len(sizes), dimension)
    return site.make("stablehlo.dynamic_update_slice", [whole, part, *starts], whole.type)


def _starts(site: Site, at: Any, rank: int, dimension: int) -> list[Any]:
    zero = site.size(0)
    return [at if each == dimension else zero for each in range(rank)]
