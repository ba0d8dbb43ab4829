"""Rules for the dialects ``tensor`` and ``shape``.

Sizes of dimensions become integers of 64 bits. Source: what their ops mean is in
``mlir/include/mlir/Dialect/Tensor/IR/TensorOps.td`` and ``mlir/include/mlir/Dialect/Shape/IR/ShapeOps.td`` of
llvm/llvm-project.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Provider
from vhlo_tools.portable.notes import Notes
from vhlo_tools.portable.rewriting import Rule
from vhlo_tools.portable.site import DIMENSION_BITS, Site, Unfit

__all__ = ["SHAPES", "TENSORS", "unnest"]

_WITNESSES: Final = ("shape.assuming_all", "shape.const_witness")
_CONSTRAINTS: Final = ("shape.cstr_broadcastable", "shape.cstr_eq")


def unnest(provider: Provider, module: ModuleOp, notes: Notes) -> None:
    """Take the ops within every ``shape.assuming`` of ``module`` out of it, and constants out of every ``tensor.pad``.

    What is assumed, that sizes fit each other, need not be checked: if they do not, the program has no meaning.
    """
    with module.context:
        # The innermost first, and the uses of a value before the value.
        for op in reversed(provider.walk(module)):
            name = str(op.name)
            if name == "tensor.pad":
                for each in list(op.regions[0].blocks[0].operations):
                    if str(each.operation.name) == "arith.constant":
                        each.operation.move_before(op.operation)
            elif name == "shape.assuming":
                *body, end = op.regions[0].blocks[0].operations
                for each in body:
                    each.operation.move_before(op.operation)
                for result, value in zip(op.results, end.operation.operands, strict=True):
                    result.replace_all_uses_with(value)
                notes.add(op, "what shape.assuming holds stands outside of it, and the constraint is not checked")
                op.operation.erase()
            elif name in (*_WITNESSES, *_CONSTRAINTS) and not any(list(result.uses) for result in op.results):
                if name in _CONSTRAINTS:
                    notes.add(op, f"{name} is gone, and the constraint is not checked")
                op.operation.erase()


# Parts of tensors


def _entry(site: Site, value: Any, starts: Sequence[Any]) -> Any:
    """Return one element of a tensor as a number."""
    if not starts:
        return value
    ones = [1] * len(starts)
    kind = site.tensor(ones, value.type.element_type)
    part = site.make("stablehlo.dynamic_slice", [value, *starts], kind, slice_sizes=site.integers(ones))
    return site.reshape(part, ())


def _extent(site: Site, sizes: Any, index: int) -> Any:
    """Return one of the sizes in a tensor of them as a number."""
    kind = site.tensor((1,), sizes.type.element_type)
    bounds = {"start_indices": [index], "limit_indices": [index + 1], "strides": [1]}
    part = site.make("stablehlo.slice", [sizes], kind, **{name: site.integers(value) for name, value in bounds.items()})
    return site.reshape(part, ())


def _extents(site: Site, sizes: Any) -> list[Any]:
    """Return all sizes in a tensor of them as numbers."""
    (rank,) = site.static(sizes.type)
    return [_extent(site, sizes, index) for index in range(rank)]


def _product(site: Site, numbers: Sequence[Any]) -> Any:
    if not numbers:
        return site.size(1)
    return reduce(lambda one, other: site.make("stablehlo.multiply", [one, other], one.type), numbers)


def _tensor_of(site: Site, index: int = 0) -> Any:
    value = site.operand(index)
    if not site.is_tensor(site.op.operands[index].type):
        raise Unfit("no tensor")
    return value


# The dialect `tensor`


def _dim(site: Site) -> Sequence[Any]:
    return [site.dimension(_tensor_of(site), site.known(site.op.operands[1]))]


def _rank(site: Site) -> Sequence[Any]:
    return [site.size(len(site.shape(_tensor_of(site).type)))]


def _from_elements(site: Site) -> Sequence[Any]:
    result = site.result_type()
    if not site.op.operands:
        return [_undefined(site, result)]
    return [site.reshape(site.joined(site.operands(), result.element_type), site.static(result))]


def _extract(site: Site) -> Sequence[Any]:
    value, *starts = site.operands()
    return [_entry(site, value, starts)]


def _insert(site: Site) -> Sequence[Any]:
    number, value, *starts = site.operands()
    if not starts:
        return [number]
    part = site.reshape(number, [1] * len(starts))
    return [site.make("stablehlo.dynamic_update_slice", [value, part, *starts], value.type)]


def _cast(site: Site) -> Sequence[Any]:
    return [site.make("stablehlo.convert", [_tensor_of(site)], site.result_type())]


def _bitcast(site: Site) -> Sequence[Any]:
    return [site.make("stablehlo.bitcast_convert", [_tensor_of(site)], site.result_type())]


def _groups(site: Site) -> list[list[int]]:
    return [[int(each.value) for each in group] for group in site.op.attributes["reassociation"]]


def _collapse(site: Site) -> Sequence[Any]:
    value, result = _tensor_of(site), site.result_type()
    sizes = [_product(site, [site.dimension(value, index) for index in group]) for group in _groups(site)]
    return [site.reshaped(value, result, sizes)]


def _expand(site: Site) -> Sequence[Any]:
    value, result = _tensor_of(site), site.result_type()
    dynamic = iter(site.operands()[1:])
    sizes = [next(dynamic) if size is None else site.size(size) for size in site.shape(result)]
    return [site.reshaped(value, result, sizes)]


def _reshape(site: Site) -> Sequence[Any]:
    value, sizes = site.operands()
    result = site.result_type()
    if all(size is not None for size in site.shape(result)):
        return [site.reshape(value, site.static(result))]
    return [site.make("stablehlo.dynamic_reshape", [value, sizes], result)]


def _undefined(site: Site, kind: Any) -> Any:
    """Return a tensor whose elements nobody reads."""
    site.static(kind)
    if site.is_complex(kind):
        part = _undefined(site, site.tensor(site.shape(kind), kind.element_type.element_type))
        return site.make("stablehlo.complex", [part, part], kind)
    if not site.is_number(kind):
        raise Unfit("elements that are no numbers")
    zero = "0" if site.is_integer(kind) else "0.0"
    return site.make("stablehlo.constant", [], kind, value=site.attribute(f"dense<{zero}> : {kind}"))


def _empty(site: Site) -> Sequence[Any]:
    return [_undefined(site, site.result_type())]


def _splat(site: Site) -> Sequence[Any]:
    result = site.result_type()
    site.static(result)
    return [site.make("stablehlo.broadcast_in_dim", [site.operand(0)], result, broadcast_dimensions=site.integers([]))]


def _concatenate(site: Site) -> Sequence[Any]:
    along = site.number(site.op.attributes["dim"].value)
    return [site.make("stablehlo.concatenate", site.operands(), site.result_type(), dimension=along)]


def _bounds(site: Site, values: int) -> tuple[list[int | None], list[int], list[int], list[Any]]:
    """Return offsets, sizes and strides of a slice, and the offsets as numbers where one is not known.

    Args:
        site: The site of the op.
        values: How many operands stand before the offsets.
    """
    offsets, sizes, strides = (site.numbers(f"static_{name}") for name in ("offsets", "sizes", "strides"))
    known_sizes, known_strides = ([each for each in held if each is not None] for held in (sizes, strides))
    if (len(known_sizes), len(known_strides)) != (len(sizes), len(strides)):
        raise Unfit("a slice of a size that is known at run time only")
    if None not in offsets:
        return offsets, known_sizes, known_strides, []
    if any(stride != 1 for stride in known_strides):
        raise Unfit("a slice with strides, and offsets that are known at run time only")
    dynamic = iter(site.operands()[values:])
    starts = [next(dynamic) if each is None else site.size(each) for each in offsets]
    return offsets, known_sizes, known_strides, starts


def _extract_slice(site: Site) -> Sequence[Any]:
    value, result = _tensor_of(site), site.result_type()
    offsets, sizes, strides, starts = _bounds(site, 1)
    kind = site.tensor(sizes, value.type.element_type)
    if starts:
        part = site.make("stablehlo.dynamic_slice", [value, *starts], kind, slice_sizes=site.integers(sizes))
    else:
        known = [each for each in offsets if each is not None]
        limits = [
            at + (size - 1) * step + 1 if size else at for at, size, step in zip(known, sizes, strides, strict=True)
        ]
        part = site.make(
            "stablehlo.slice",
            [value],
            kind,
            start_indices=site.integers(known),
            limit_indices=site.integers(limits),
            strides=site.integers(strides),
        )
    return [site.reshape(part, site.static(result))]


def _insert_slice(site: Site) -> Sequence[Any]:
    part, value = site.operands()[:2]
    offsets, sizes, strides, starts = _bounds(site, 2)
    if any(stride != 1 for stride in strides):
        raise Unfit("an update with strides")
    numbers = starts or [site.size(each) for each in offsets if each is not None]
    return [
        site.make("stablehlo.dynamic_update_slice", [value, site.reshape(part, sizes), *numbers], value.type)
        if numbers
        else part
    ]


def _pad(site: Site) -> Sequence[Any]:
    value, result = _tensor_of(site), site.result_type()
    if len(site.op.operands) > 1:
        raise Unfit("padding of a size that is known at run time only")
    *body, end = site.op.regions[0].blocks[0].operations
    if body:
        raise Unfit("padding that is computed")
    padding = site.carried(end.operation.operands[0])
    low, high = (site.numbers(f"static_{side}") for side in ("low", "high"))
    edges: dict[str, Sequence[int | None]] = {
        "edge_padding_low": low,
        "edge_padding_high": high,
        "interior_padding": [0] * len(low),
    }
    held = {name: site.integers([size or 0 for size in each]) for name, each in edges.items()}
    return [site.make("stablehlo.pad", [value, padding], result, **held)]


# The dialect `shape`, of which only shapes that are tensors can be carried


def _shape_of(site: Site) -> Sequence[Any]:
    value = _tensor_of(site)
    shape = site.shape(value.type)
    if None not in shape:
        return [site.sizes(site.static(value.type))]
    return [site.joined([site.dimension(value, index) for index in range(len(shape))], site.integer(DIMENSION_BITS))]


def _const_shape(site: Site) -> Sequence[Any]:
    site.result_type()
    return [site.sizes([int(each) for each in site.op.attributes["shape"]])]


def _broadcast(site: Site) -> Sequence[Any]:
    shapes, result = site.operands(), site.result_type()
    (rank,) = site.static(result)
    aligned = []
    for shape in shapes:
        missing = rank - site.static(shape.type)[0]
        ones = [site.sizes([1] * missing)] if missing else []
        aligned.append(
            site.make("stablehlo.concatenate", [*ones, shape], result, dimension=site.number(0)) if ones else shape
        )
    ones = site.sizes([1] * rank)

    def both(one: Any, other: Any) -> Any:
        direction = site.attribute("#stablehlo<comparison_direction EQ>")
        booleans = site.tensor((rank,), site.integer(1))
        is_one = site.make("stablehlo.compare", [one, ones], booleans, comparison_direction=direction)
        return site.make("stablehlo.select", [is_one, other, one], result)

    return [reduce(both, aligned)]


def _num_elements(site: Site) -> Sequence[Any]:
    return [_product(site, _extents(site, _tensor_of(site)))]


def _get_extent(site: Site) -> Sequence[Any]:
    return [_extent(site, _tensor_of(site), site.known(site.op.operands[1]))]


def _concat(site: Site) -> Sequence[Any]:
    return [site.make("stablehlo.concatenate", site.operands(), site.result_type(), dimension=site.number(0))]


def _shape_rank(site: Site) -> Sequence[Any]:
    return [site.size(math.prod(site.static(_tensor_of(site).type)))]


def _same(site: Site) -> Sequence[Any]:
    site.result_type()
    return [_tensor_of(site)]


#: How ops of `tensor` are replaced.
TENSORS: Final[dict[str, Rule]] = {
    "tensor.bitcast": _bitcast,
    "tensor.cast": _cast,
    "tensor.collapse_shape": _collapse,
    "tensor.concat": _concatenate,
    "tensor.dim": _dim,
    "tensor.empty": _empty,
    "tensor.expand_shape": _expand,
    "tensor.extract": _extract,
    "tensor.extract_slice": _extract_slice,
    "tensor.from_elements": _from_elements,
    "tensor.insert": _insert,
    "tensor.insert_slice": _insert_slice,
    "tensor.pad": _pad,
    "tensor.rank": _rank,
    "tensor.reshape": _reshape,
    "tensor.splat": _splat,
}
#: How ops of `shape` are replaced.
SHAPES: Final[dict[str, Rule]] = {
    "shape.broadcast": _broadcast,
    "shape.concat": _concat,
    "shape.const_shape": _const_shape,
    "shape.dim": _dim,
    "shape.get_extent": _get_extent,
    "shape.num_elements": _num_elements,
    "shape.rank": _shape_rank,
    "shape.shape_of": _shape_of,
    "shape.to_extent_tensor": _same,
}
