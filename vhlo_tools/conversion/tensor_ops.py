"""Patterns for the dialects ``tensor`` and ``shape``.

Sizes of dimensions become 64-bit integers. Source: the ops are specified in
``mlir/include/mlir/Dialect/Tensor/IR/TensorOps.td`` and ``mlir/include/mlir/Dialect/Shape/IR/ShapeOps.td`` of
llvm/llvm-project.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Provider
from vhlo_tools.conversion.patterns import Build
from vhlo_tools.conversion.rewriter import DIMENSION_BITS, MatchFailure, Notes, Rewriter

_WITNESSES: Final = ("shape.assuming_all", "shape.const_witness")
_CONSTRAINTS: Final = ("shape.cstr_broadcastable", "shape.cstr_eq")


def unnest(provider: Provider, module: ModuleOp, notes: Notes) -> None:
    """The assumption that sizes match need not be checked: otherwise the behaviour of the program is undefined."""
    with module.context:
        # Innermost ops first, and the uses of a value before its definition.
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
                notes.add(op, "the ops in shape.assuming were moved out of it, and its constraint is not checked")
                op.operation.erase()
            elif name in (*_WITNESSES, *_CONSTRAINTS) and not any(list(result.uses) for result in op.results):
                if name in _CONSTRAINTS:
                    notes.add(op, f"{name} was removed, and the constraint is not checked")
                op.operation.erase()


# Elements and sizes


def _entry(rewriter: Rewriter, value: Any, starts: Sequence[Any]) -> Any:
    return rewriter.reshape(rewriter.dynamic_slice(value, starts, [1] * len(starts)), ()) if starts else value


def _extent(rewriter: Rewriter, sizes: Any, index: int) -> Any:
    return rewriter.reshape(rewriter.slice(sizes, [index], [index + 1]), ())


def _product(rewriter: Rewriter, numbers: Sequence[Any]) -> Any:
    if not numbers:
        return rewriter.size(1)
    return reduce(lambda one, other: rewriter.make("stablehlo.multiply", [one, other], one.type), numbers)


def _tensor_of(rewriter: Rewriter, index: int = 0) -> Any:
    value = rewriter.operand(index)
    if not rewriter.is_tensor(rewriter.op.operands[index].type):
        raise MatchFailure("a type that is not a tensor")
    return value


# The dialect `tensor`


def _dim(rewriter: Rewriter) -> Sequence[Any]:
    return [rewriter.dimension(_tensor_of(rewriter), rewriter.known(rewriter.op.operands[1]))]


def _rank(rewriter: Rewriter) -> Sequence[Any]:
    return [rewriter.size(len(rewriter.shape(_tensor_of(rewriter).type)))]


def _from_elements(rewriter: Rewriter) -> Sequence[Any]:
    result = rewriter.result_type()
    if not rewriter.op.operands:
        return [_undefined(rewriter, result)]
    return [rewriter.reshape(rewriter.joined(rewriter.operands(), result.element_type), rewriter.static(result))]


def _extract(rewriter: Rewriter) -> Sequence[Any]:
    value, *starts = rewriter.operands()
    return [_entry(rewriter, value, starts)]


def _insert(rewriter: Rewriter) -> Sequence[Any]:
    number, value, *starts = rewriter.operands()
    if not starts:
        return [number]
    part = rewriter.reshape(number, [1] * len(starts))
    return [rewriter.make("stablehlo.dynamic_update_slice", [value, part, *starts], value.type)]


def _cast(rewriter: Rewriter) -> Sequence[Any]:
    return [rewriter.make("stablehlo.convert", [_tensor_of(rewriter)], rewriter.result_type())]


def _bitcast(rewriter: Rewriter) -> Sequence[Any]:
    return [rewriter.make("stablehlo.bitcast_convert", [_tensor_of(rewriter)], rewriter.result_type())]


def _groups(rewriter: Rewriter) -> list[list[int]]:
    return [[int(each.value) for each in group] for group in rewriter.op.attributes["reassociation"]]


def _collapse(rewriter: Rewriter) -> Sequence[Any]:
    value, result = _tensor_of(rewriter), rewriter.result_type()
    sizes = [_product(rewriter, [rewriter.dimension(value, index) for index in group]) for group in _groups(rewriter)]
    return [rewriter.reshaped(value, result, sizes)]


def _expand(rewriter: Rewriter) -> Sequence[Any]:
    value, result = _tensor_of(rewriter), rewriter.result_type()
    dynamic = iter(rewriter.operands()[1:])
    sizes = [next(dynamic) if size is None else rewriter.size(size) for size in rewriter.shape(result)]
    return [rewriter.reshaped(value, result, sizes)]


def _reshape(rewriter: Rewriter) -> Sequence[Any]:
    value, sizes = rewriter.operands()
    result = rewriter.result_type()
    if all(size is not None for size in rewriter.shape(result)):
        return [rewriter.reshape(value, rewriter.static(result))]
    return [rewriter.make("stablehlo.dynamic_reshape", [value, sizes], result)]


def _undefined(rewriter: Rewriter, type_: Any) -> Any:
    """The elements are never read."""
    rewriter.static(type_)
    if rewriter.is_complex(type_):
        part = _undefined(rewriter, rewriter.tensor(rewriter.shape(type_), type_.element_type.element_type))
        return rewriter.make("stablehlo.complex", [part, part], type_)
    if not rewriter.is_number(type_):
        raise MatchFailure("elements that are not numbers")
    zero = "0" if rewriter.is_integer(type_) else "0.0"
    return rewriter.make("stablehlo.constant", [], type_, value=rewriter.attribute(f"dense<{zero}> : {type_}"))


def _empty(rewriter: Rewriter) -> Sequence[Any]:
    return [_undefined(rewriter, rewriter.result_type())]


def _splat(rewriter: Rewriter) -> Sequence[Any]:
    result = rewriter.result_type()
    rewriter.static(result)
    none = rewriter.integers([])
    return [rewriter.make("stablehlo.broadcast_in_dim", [rewriter.operand(0)], result, broadcast_dimensions=none)]


def _concatenate(rewriter: Rewriter) -> Sequence[Any]:
    along = rewriter.number(rewriter.op.attributes["dim"].value)
    return [rewriter.make("stablehlo.concatenate", rewriter.operands(), rewriter.result_type(), dimension=along)]


def _bounds(rewriter: Rewriter, values: int) -> tuple[list[int | None], list[int], list[int], list[Any]]:
    """``values`` operands precede the offsets, which are returned as scalars if one is dynamic."""
    offsets, sizes, strides = (rewriter.numbers(f"static_{name}") for name in ("offsets", "sizes", "strides"))
    known_sizes, known_strides = ([each for each in held if each is not None] for held in (sizes, strides))
    if (len(known_sizes), len(known_strides)) != (len(sizes), len(strides)):
        raise MatchFailure("a slice of a size that is only known at run time")
    if None not in offsets:
        return offsets, known_sizes, known_strides, []
    if any(stride != 1 for stride in known_strides):
        raise MatchFailure("a slice with strides, and offsets that are only known at run time")
    dynamic = iter(rewriter.operands()[values:])
    starts = [next(dynamic) if each is None else rewriter.size(each) for each in offsets]
    return offsets, known_sizes, known_strides, starts


def _extract_slice(rewriter: Rewriter) -> Sequence[Any]:
    value, result = _tensor_of(rewriter), rewriter.result_type()
    offsets, sizes, strides, starts = _bounds(rewriter, 1)
    if starts:
        part = rewriter.dynamic_slice(value, starts, sizes)
    else:
        known = [each for each in offsets if each is not None]
        ends = zip(known, sizes, strides, strict=True)
        limits = [at + (size - 1) * step + 1 if size else at for at, size, step in ends]
        part = rewriter.slice(value, known, limits, strides)
    return [rewriter.reshape(part, rewriter.static(result))]


def _insert_slice(rewriter: Rewriter) -> Sequence[Any]:
    part, value = rewriter.operands()[:2]
    offsets, sizes, strides, starts = _bounds(rewriter, 2)
    if any(stride != 1 for stride in strides):
        raise MatchFailure("an update with strides")
    numbers = starts or [rewriter.size(each) for each in offsets if each is not None]
    if not numbers:
        return [part]
    operands = [value, rewriter.reshape(part, sizes), *numbers]
    return [rewriter.make("stablehlo.dynamic_update_slice", operands, value.type)]


def _pad(rewriter: Rewriter) -> Sequence[Any]:
    value, result = _tensor_of(rewriter), rewriter.result_type()
    if len(rewriter.op.operands) > 1:
        raise MatchFailure("padding of a size that is only known at run time")
    *body, end = rewriter.op.regions[0].blocks[0].operations
    if body:
        raise MatchFailure("padding with a computed value")
    padding = rewriter.converted(end.operation.operands[0])
    low, high = (rewriter.numbers(f"static_{side}") for side in ("low", "high"))
    edges: dict[str, Sequence[int | None]] = {
        "edge_padding_low": low,
        "edge_padding_high": high,
        "interior_padding": [0] * len(low),
    }
    held = {name: rewriter.integers([size or 0 for size in each]) for name, each in edges.items()}
    return [rewriter.make("stablehlo.pad", [value, padding], result, **held)]


# The dialect `shape`, of which only shapes that are tensors can be converted


def _shape_of(rewriter: Rewriter) -> Sequence[Any]:
    value = _tensor_of(rewriter)
    shape = rewriter.shape(value.type)
    if None not in shape:
        return [rewriter.sizes(rewriter.static(value.type))]
    sizes = [rewriter.dimension(value, index) for index in range(len(shape))]
    return [rewriter.joined(sizes, rewriter.integer(DIMENSION_BITS))]


def _const_shape(rewriter: Rewriter) -> Sequence[Any]:
    rewriter.result_type()
    return [rewriter.sizes([int(each) for each in rewriter.op.attributes["shape"]])]


def _broadcast(rewriter: Rewriter) -> Sequence[Any]:
    shapes, result = rewriter.operands(), rewriter.result_type()
    (rank,) = rewriter.static(result)
    aligned = []
    for shape in shapes:
        missing = rank - rewriter.static(shape.type)[0]
        leading = [rewriter.sizes([1] * missing)] if missing else []
        aligned.append(rewriter.concatenate([*leading, shape], result))
    ones = rewriter.sizes([1] * rank)

    def both(one: Any, other: Any) -> Any:
        return rewriter.make("stablehlo.select", [rewriter.compare("EQ", one, ones), other, one], result)

    return [reduce(both, aligned)]


def _num_elements(rewriter: Rewriter) -> Sequence[Any]:
    sizes = _tensor_of(rewriter)
    (rank,) = rewriter.static(sizes.type)
    return [_product(rewriter, [_extent(rewriter, sizes, index) for index in range(rank)])]


def _get_extent(rewriter: Rewriter) -> Sequence[Any]:
    return [_extent(rewriter, _tensor_of(rewriter), rewriter.known(rewriter.op.operands[1]))]


def _concat(rewriter: Rewriter) -> Sequence[Any]:
    along = rewriter.number(0)
    return [rewriter.make("stablehlo.concatenate", rewriter.operands(), rewriter.result_type(), dimension=along)]


def _shape_rank(rewriter: Rewriter) -> Sequence[Any]:
    return [rewriter.size(math.prod(rewriter.static(_tensor_of(rewriter).type)))]


def _same(rewriter: Rewriter) -> Sequence[Any]:
    rewriter.result_type()
    return [_tensor_of(rewriter)]


#: The patterns for ops of `tensor`.
TENSORS: Final[dict[str, Build]] = {
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
#: The patterns for ops of `shape`.
SHAPES: Final[dict[str, Build]] = {
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
