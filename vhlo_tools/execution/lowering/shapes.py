"""Shapes: bounds, dynamic dimensions, and a ``main`` whose values the interpreter takes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import (
    Module,
    ModuleOp,
    Operation,
    Provider,
    XlaFailure,
    functions_of,
    inline_calls,
    refined_by_xla,
)
from vhlo_tools.conversion import DIMENSION_BITS, Build, MatchFailure, Rewriter, patterns_of, retype, spread
from vhlo_tools.execution.isolated import bytecode_of
from vhlo_tools.execution.lowering.patterns import apply_required
from vhlo_tools.execution.reference.calling_convention import converting_main, is_direct
from vhlo_tools.execution.values import ValueType

# Calls that the interpreter does not support: it passes only tensors to functions


def passes_only_tensors(op: Operation) -> bool:
    return all(str(value.type).startswith("tensor<") for value in (*op.operands, *op.results))


# Dimensions with a bound, which become plain dynamic dimensions, as their sizes are known once the inputs are
#
# With the shapes of the inputs, StableHLO's own refinement then resolves them. An op that has a result of bounded size
# and no dynamic form of its own becomes an op with sizes as operands. XLA keeps tensors of bounded size in memory of
# the bound, and gives such an op operands of the full size too, which are cut here. Source:
# ``xla/service/dynamic_dimension_inference.cc`` in openxla/xla.

_SIGN: Final = "#stablehlo.bounds<"
_SET: Final = "stablehlo.set_dimension_size"


#: Elementwise ops of several operands.
_OF_SEVERAL: Final = (
    *("add", "and", "atan2", "clamp", "compare", "complex", "divide", "maximum", "minimum", "multiply", "or", "power"),
    *("remainder", "select", "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor"),
)


def has_bounds(text: str) -> bool:
    return _SIGN in text or _SET in text


def release_bounds(provider: Provider, module: ModuleOp, name: str) -> None:
    apply_required(provider, module, BOUND_PATTERNS, name, retyping=True)
    tensor = provider.ir.RankedTensorType.get
    retype(
        provider,
        module,
        lambda type_: tensor(type_.shape, type_.element_type) if _SIGN in str(type_) else type_,
    )
    provider.verify(module)


def _of_bounded_result(build: Any) -> Build:
    return lambda rewriter: [build(rewriter, _plain(rewriter))] if _SIGN in str(rewriter.op.results[0].type) else None


def _plain(rewriter: Rewriter) -> Any:
    type_ = rewriter.op.results[0].type
    return rewriter.tensor(rewriter.shape(type_), type_.element_type)


def _set_dimension_size(rewriter: Rewriter) -> list[Any]:
    operand, size = rewriter.op.operands
    dimension = int(rewriter.op.attributes["dimension"].value)
    result = _plain(rewriter)
    known, wanted = rewriter.shape(operand.type)[dimension], rewriter.shape(result)[dimension]
    if known is not None and wanted == known:
        return [operand]
    shape = list(rewriter.shape(operand.type))
    shape[dimension] = wanted
    type_ = rewriter.tensor(shape, operand.type.element_type)
    size = rewriter.convert(size, rewriter.integer(DIMENSION_BITS))
    if known is not None:
        return [_first(rewriter, operand, {dimension: size}, type_)]
    # The size may be larger than what the operand has now: XLA then shows what its memory holds, which is undefined.
    missing = rewriter.make("stablehlo.subtract", [size, rewriter.dimension(operand, dimension)], size.type)
    rank = len(shape)
    high = rewriter.joined(
        [missing if index == dimension else rewriter.size(0) for index in range(rank)], rewriter.integer(DIMENSION_BITS)
    )
    nothing = rewriter.sizes([0] * rank)
    zero = rewriter.constant(rewriter.tensor((), operand.type.element_type), 0)
    return [rewriter.make("stablehlo.dynamic_pad", [operand, zero, nothing, high, nothing], type_)]


def _first(rewriter: Rewriter, value: Any, limits: Mapping[int, Any], type_: Any) -> Any:
    """The elements before ``limits``, which are scalars by dimension."""
    rank = len(rewriter.shape(value.type))
    ends = [limits.get(index) or rewriter.dimension(value, index) for index in range(rank)]
    of_sizes = rewriter.integer(DIMENSION_BITS)
    bounds = [rewriter.sizes([0] * rank), rewriter.joined(ends, of_sizes), rewriter.sizes([1] * rank)]
    return rewriter.make("stablehlo.real_dynamic_slice", [value, *bounds], type_)


def _slice(rewriter: Rewriter, type_: Any) -> Any:
    """A limit beyond the present size becomes the present size."""
    operand = rewriter.op.operands[0]
    of_sizes = rewriter.integer(DIMENSION_BITS)
    ends: dict[str, list[Any]] = {"start_indices": [], "limit_indices": []}
    for name, sizes in ends.items():
        for index, number in enumerate(rewriter.op.attributes[name]):
            end = rewriter.size(int(number))
            if rewriter.shape(operand.type)[index] is None:
                end = rewriter.make("stablehlo.minimum", [end, rewriter.dimension(operand, index)], end.type)
            sizes.append(end)
    strides = rewriter.sizes([int(each) for each in rewriter.op.attributes["strides"]])
    bounds = [*(rewriter.joined(sizes, of_sizes) for sizes in ends.values()), strides]
    return rewriter.make("stablehlo.real_dynamic_slice", [operand, *bounds], type_)


def _elementwise(rewriter: Rewriter, type_: Any) -> Any:
    """Operands of full size are cut to the size of the others."""
    operands = list(rewriter.op.operands)
    sized: dict[int, Any] = {}
    for operand in operands:
        for index, size in enumerate(rewriter.shape(operand.type)):
            if size is None and index not in sized:
                sized[index] = rewriter.dimension(operand, index)
    cut = [_cut(rewriter, operand, sized) for operand in operands]
    return rewriter.make_like(cut, [type_])[0]


def _cut(rewriter: Rewriter, operand: Any, sized: Mapping[int, Any]) -> Any:
    shape = list(rewriter.shape(operand.type))
    limits = {index: sized[index] for index, size in enumerate(shape) if size is not None and index in sized}
    if not limits:
        return operand
    shape = [None if index in limits else size for index, size in enumerate(shape)]
    return _first(rewriter, operand, limits, rewriter.tensor(shape, operand.type.element_type))


def _reshape(rewriter: Rewriter, type_: Any) -> Any:
    operand = rewriter.op.operands[0]
    known = math.prod(size for size in rewriter.shape(type_) if size is not None)
    if rewriter.shape(type_).count(None) > 1:
        raise MatchFailure("more than one size that depends on the inputs")
    if not known:
        raise MatchFailure("a dynamic size of a tensor without elements")
    total = rewriter.size(1)
    for index in range(len(rewriter.shape(operand.type))):
        total = rewriter.make("stablehlo.multiply", [total, rewriter.dimension(operand, index)], total.type)
    rest = rewriter.make("stablehlo.divide", [total, rewriter.size(known)], total.type)
    return rewriter.reshaped(
        operand, type_, [rest if size is None else rewriter.size(size) for size in rewriter.shape(type_)]
    )


def _broadcast(rewriter: Rewriter, type_: Any) -> Any:
    operand = rewriter.op.operands[0]
    along = [int(each) for each in rewriter.op.attributes["broadcast_dimensions"]]
    sizes = []
    for index, size in enumerate(rewriter.shape(type_)):
        if size is None and index not in along:
            raise MatchFailure("a size that does not depend on the sizes of the operand")
        sizes.append(rewriter.dimension(operand, along.index(index)) if size is None else rewriter.size(size))
    return spread(operand, type_, along, sizes, rewriter)


BOUND_PATTERNS: Final = patterns_of(
    {
        "stablehlo.broadcast_in_dim": _of_bounded_result(_broadcast),
        "stablehlo.reshape": _of_bounded_result(_reshape),
        "stablehlo.set_dimension_size": _set_dimension_size,
        "stablehlo.slice": _of_bounded_result(_slice),
        **{f"stablehlo.{name}": _of_bounded_result(_elementwise) for name in _OF_SEVERAL},
    },
    required=True,
)


# Resolution of dynamic shapes from the shapes of the inputs

#: Custom calls of JAX for ops without a dynamic form, which only XLA's own refinement resolves. Source:
#: ``xla/mlir_hlo/stablehlo_ext/transforms/stablehlo_refine_shapes.cpp`` in openxla/xla.
CALLS_OF_SHAPES: Final = frozenset(
    f"stablehlo.dynamic_{name}" for name in ("approx_top_k", "reduce_window", "rng_bit_generator", "top_k")
)

_OF_ARGUMENTS: Final = "inline,stablehlo-refine-arguments{{types={types}}}"
_PASSES: Final = (
    "stablehlo-refine-shapes",
    "func.func(stablehlo-canonicalize-dynamism)",
    "stablehlo-refine-shapes",
    "func.func(stablehlo-check-shape-assertions{enable-shape-assertions=true})",
)

_QUOTED: Final = re.compile(r'"[^"]*"')

#: The greatest number of integers that may be sizes.
_MOST_SIZES: Final = 16


def is_dynamic(text: str) -> bool:
    # In quotes a question mark means something else, such as an open dimension in a sharding of Shardy.
    return "?" in _QUOTED.sub("", text)


def resolve_shapes(provider: Provider, module: Module, inputs: Sequence[np.ndarray[Any, Any] | None]) -> None:
    """Inputs that may be sizes become constants; an input is ``None`` for a token."""
    (block,) = functions_of(module)["main"].regions[0].blocks
    types = []
    with module.context:
        for argument, array in zip(block.arguments, inputs, strict=True):
            if array is None:
                types.append(str(argument.type))
                continue
            sizes = "".join(f"{size}x" for size in array.shape)
            types.append(f"tensor<{sizes}{argument.type.element_type}>")
            if may_be_sizes(array) and str(argument.type) == types[-1]:
                _fix(provider, block, argument, array)
    refine(provider, module, types)


def refine(provider: Provider, module: Module, types: Sequence[str]) -> None:
    # Refinement gives each function one type, so that those called with several sizes must be inlined, and leaves the
    # decomposition of a composite as it is; the pass `inline` does nothing where a provider has not registered the
    # inlining of functions.
    inline_calls(provider, module, lambda _: True)
    _run(provider, module, _OF_ARGUMENTS.format(types=",".join(types)))
    if any(target_of(op) in CALLS_OF_SHAPES for op in provider.walk(module)):
        _refine_by_xla(provider, module)
    _run(provider, module, ",".join(_PASSES))


def _run(provider: Provider, module: Module, passes: str) -> None:
    before = provider.clone(module)
    provider.run_passes(module, passes, verify=True, before=(lambda: before, passes))


def target_of(op: Operation) -> str | None:
    return str(op.attributes["call_target_name"].value) if str(op.name) == "stablehlo.custom_call" else None


def _refine_by_xla(provider: Provider, module: Module) -> None:
    if not provider.prefix.startswith("jaxlib."):
        return
    try:
        refined = provider.parse(module.context, refined_by_xla(bytecode_of(provider, module)))
    except XlaFailure:
        return  # StableHLO's own passes say why in their diagnostics
    for op in list(module.body.operations):
        op.operation.erase()
    for op in list(refined.body.operations):
        module.body.append(op)


def may_be_sizes(array: np.ndarray[Any, Any]) -> bool:
    """Shapes may depend on the values of such an input."""
    return array.dtype.kind in "iu" and array.ndim < 2 and array.size <= _MOST_SIZES


def _fix(provider: Provider, block: Any, argument: Any, array: np.ndarray[Any, Any]) -> None:
    constant = provider.ir.Operation.create(
        "stablehlo.constant",
        results=[argument.type],
        attributes={"value": provider.dense_elements(block.owner.context, array)},
        loc=block.owner.location,
        ip=provider.ir.InsertionPoint.at_block_begin(block),
    )
    argument.replace_all_uses_with(constant.results[0])


# Wrapping of a program in a ``main`` whose values the interpreter can exchange

_INNER: Final = "vhlo_tools.program"


def wrap_main(provider: Provider, module: Module, arguments: Sequence[ValueType], results: Sequence[ValueType]) -> None:
    with module.context:
        if not all(map(is_direct, (*arguments, *results))):
            outer = provider.parse(module.context, converting_main(arguments, results, _INNER))
            provider.rename_function(module, "main", _INNER)
            _, main = (op.operation for op in outer.body.operations)
            module.body.append(main)
            inline_calls(provider, module, lambda op: _callee(op) == _INNER or not passes_only_tensors(op))
            # The program's own ``main`` remains if it calls itself.
            if not any(_callee(op) == _INNER for op in provider.walk(module)):
                functions_of(module)[_INNER].operation.erase()
        else:
            inline_calls(provider, module, lambda op: not passes_only_tensors(op))


def _callee(op: Operation) -> str | None:
    return str(op.attributes["callee"].value) if str(op.name) == "func.call" else None
