"""Compare XLA with StableHLO's interpreter, and with numpy, on random programs of thousands of elements.

`python tests/conformance/engine_sweep.py --count 1000 --seed 0` prints how the programs of each kind ended, and what
differed or crashed; `--only N` runs the program of that number alone, and `--keep DIR` writes the texts of failures.

The sizes lie around those at which XLA changes its ways. All sums and products are exact in their types in any order,
or wrap, and nothing is drawn that the specification leaves open: results must be equal, but for the signs of zeros.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.random import Generator, default_rng

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.element_types import TYPES

import vhlo_tools as vt
from vhlo_tools.api import EngineChoice

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

#: The bits of the integers that are exact in a type.
EXACT: Final = {"f32": 24, "f64": 53, "bf16": 8, "f16": 11, "complex<f32>": 22}
INTEGERS: Final = ("i8", "i16", "i32", "i64", "ui8", "ui32")
NUMBERS: Final = ("f32", "f32", "f32", *EXACT, *INTEGERS)
ELEMENTS: Final = (*NUMBERS, "i1")
REAL: Final = tuple(each for each in NUMBERS if each != "complex<f32>")
ARITHMETIC: Final = ("add", "multiply", "maximum", "minimum")
BITWISE: Final = ("and", "or", "xor")
UFUNCS: Final[dict[str, Any]] = {
    **{name: getattr(np, name) for name in (*ARITHMETIC, "subtract")},
    **{name: getattr(np, f"bitwise_{name}") for name in BITWISE},
}
REDUCERS: Final = {
    **dict.fromkeys(EXACT, ARITHMETIC),
    **dict.fromkeys(INTEGERS, (*ARITHMETIC, *BITWISE)),
    "complex<f32>": ("add", "multiply"),
    "i1": BITWISE,
}
THRESHOLDS: Final = (1024, 2048, 4096, 8192, 16384, 32768)
SMALL: Final = (1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 8, 16, 31, 64, 128)
#: The most elements of a tensor, and the most evaluations of an op: the interpreter makes four million a second.
MOST: Final = 40_000
STEPS: Final = 400_000


class Drawn(NamedTuple):
    """A program, its inputs, and what numpy makes of them, or nothing where it was not asked."""

    text: str
    inputs: list[Array]
    expected: list[Array]


@dataclass(frozen=True)
class Value:
    """A value of a program, and what numpy makes of it, or `None`."""

    name: str
    element: str
    shape: Shape
    array: Any = None

    def __str__(self) -> str:
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element}>"

    @property
    def wide(self) -> Array:
        """The elements in a type in which sums and products are exact, or wrap as in their own."""
        kinds = {"b": np.bool_, "i": np.int64, "u": np.int64, "c": np.complex128}
        return np.asarray(self.array.astype(kinds.get(self.array.dtype.kind, np.float64)))


def attribute(value: Any) -> str:
    """Return the text of an attribute: of a text as it stands, of a number, of integers, or of pairs of them."""
    if isinstance(value, str | bool):
        return str(value) if isinstance(value, str) else str(value).lower()
    if isinstance(value, int):
        return f"{value} : i64"
    array = np.asarray(value, int)
    if array.ndim == 2:
        return f"dense<{array.tolist()}> : tensor<{len(array)}x2xi64>"
    return f"array<i64: {', '.join(map(str, array))}>" if len(array) else "array<i64>"


Values = Sequence[Value]


@dataclass
class Program:
    """A program under construction."""

    arguments: list[Value] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def argument(self, element: str, array: Array) -> Value:
        self.arguments.append(Value(f"%arg{len(self.arguments)}", element, array.shape, array.astype(TYPES[element])))
        return self.arguments[-1]

    def constant(self, element: str, number: Any, shape: Shape = ()) -> Value:
        scalar = np.array(number).astype(TYPES[element])
        text = f"0x{scalar.tobytes()[::-1].hex()}" if element in EXACT else str(scalar).lower()
        if element == "complex<f32>":
            text = f"({scalar.real}, {scalar.imag})"
        kind = Value("", element, shape)
        return self.op("constant", [], kind, np.full(shape, scalar), value=f"dense<{text}> : {kind}")

    def neutral(self, element: str, reducer: str) -> Value:
        info = np.iinfo(TYPES[element]) if element in INTEGERS else None
        low, high = (info.min, info.max) if info else (-np.inf, np.inf)
        return self.constant(element, {"multiply": 1, "maximum": low, "minimum": high, "and": -1}.get(reducer, 0))

    def op(self, name: str, operands: Values, like: Value | Shape, array: Any = None, **attrs: Any) -> Value:
        """Append an op whose result has the type of a value, or a shape and the element type of the first operand."""
        kind = like if isinstance(like, Value) else Value("", operands[0].element, like)
        return self.several(name, operands, [kind], [array], **attrs)[0]

    def several(
        self, name: str, operands: Values, kinds: Values, arrays: Any = None, region: str = "", **attrs: Any
    ) -> list[Value]:
        """Append an op of several results."""
        names, made = ", ".join(each.name for each in operands), f"%v{len(self.lines)}"
        types = f"({', '.join(map(str, operands))}) -> ({', '.join(map(str, kinds))})"
        texts = ", ".join(f"{key} = {attribute(value)}" for key, value in attrs.items())
        properties = f"<{{{texts}}}>" if attrs else ""
        self.lines.append(f'{made}:{len(kinds)} = "stablehlo.{name}"({names}) {properties} {region} : {types}')
        results = []
        for i, (kind, array) in enumerate(zip(kinds, arrays or [None] * len(kinds), strict=True)):
            known = array if array is None else np.asarray(array).astype(TYPES[kind.element])
            results.append(Value(f"{made}#{i}", kind.element, kind.shape, known))
        return results

    def elementwise(self, name: str, one: Value, other: Value) -> Value:
        return self.op(name, [one, other], one, UFUNCS[name](one.wide, other.wide))

    def reduce(self, operands: Values, reducers: Sequence[str], axes: Sequence[int]) -> list[Value]:
        arrays = [UFUNCS[r].reduce(v.wide, axis=tuple(axes)) for v, r in zip(operands, reducers, strict=True)]
        kinds = [Value("", v.element, array.shape) for v, array in zip(operands, arrays, strict=True)]
        given = [*operands, *(self.neutral(v.element, r) for v, r in zip(operands, reducers, strict=True))]
        return self.several("reduce", given, kinds, arrays, combining(reducers, operands), dimensions=axes)

    def iota(self, element: str, shape: Shape, axis: int) -> Value:
        array = np.broadcast_to(np.indices(shape, sparse=True)[axis], shape)
        return self.op("iota", [], Value("", element, shape), array, iota_dimension=axis)

    def broadcast(self, value: Value, shape: Shape, axes: Sequence[int]) -> Value:
        array = np.expand_dims(value.array, [i for i in range(len(shape)) if i not in axes])
        return self.op("broadcast_in_dim", [value], shape, np.broadcast_to(array, shape), broadcast_dimensions=axes)

    def transpose(self, value: Value, order: Any) -> Value:
        array = value.array.transpose(order)
        return self.op("transpose", [value], array.shape, array, permutation=order)

    def reverse(self, value: Value, axes: Sequence[int]) -> Value:
        return self.op("reverse", [value], value, np.flip(value.array, tuple(axes)), dimensions=axes)

    def slice(self, value: Value, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]) -> Value:
        array = value.array[tuple(slice(*each) for each in zip(starts, limits, strides, strict=True))]
        attrs = {"start_indices": starts, "limit_indices": limits, "strides": strides}
        return self.op("slice", [value], array.shape, array, **attrs)

    def returning(self, *results: Value) -> Drawn:
        types = ", ".join(map(str, results))
        arguments = ", ".join(f"{each.name}: {each}" for each in self.arguments)
        given = f"return {', '.join(each.name for each in results)} : {types}"
        text = "\n".join((f"func.func @main({arguments}) -> ({types}) {{", *self.lines, given, "}"))
        expected = [each.array for each in results]
        return Drawn(text, [each.array for each in self.arguments], [] if expected[0] is None else expected)


def combining(reducers: Sequence[str], values: Values) -> str:
    """Return a region that combines the elements of several pairs; `set` takes the second."""
    types = [f"tensor<{each.element}>" for each in values]
    lines = [f"%c{i} = stablehlo.{r} %a{i}, %b{i} : {types[i]}\n" for i, r in enumerate(reducers) if r != "set"]
    given = ", ".join(f"%b{i}" if r == "set" else f"%c{i}" for i, r in enumerate(reducers))
    arguments = ", ".join(f"%{side}{i}: {each}" for side in "ab" for i, each in enumerate(types))
    return f"({{\n^bb0({arguments}):\n{''.join(lines)}stablehlo.return {given} : {', '.join(types)}\n}})"


def comparing(direction: str, arguments: str, names: str, kind: str) -> str:
    return f"""({{\n^bb0({arguments}):
%c = stablehlo.compare {direction}, {names} : ({kind}, {kind}) -> tensor<i1>\nstablehlo.return %c : tensor<i1>\n}})"""


def pick(rng: Generator, options: Sequence[Any]) -> Any:
    return options[int(rng.integers(len(options)))]


def draw_shape(rng: Generator, rank: int, most: int = MOST) -> Shape:
    """Return sizes of at most `most` elements: a number near a threshold, or any, split, or beside small ones."""
    huge = pick(rng, THRESHOLDS) + int(rng.integers(-1, 2)) if rng.random() < 0.5 else int(2_000 * 20 ** rng.random())
    sizes = [1] * rank
    if rng.random() < 0.3:
        while prod(sizes) * 3 <= huge:
            sizes[rng.integers(rank)] *= pick(rng, (2, 2, 3))
        return tuple(sizes)
    split = rng.random() < 0.5
    room, sizes = huge * int(rng.integers(1, most // MOST + 1)) if split else most // huge, []
    for _ in range(rank - 1):
        size = pick(rng, SMALL)
        sizes.append(size if size <= room else 1)
        room //= sizes[-1]
    return tuple(map(int, rng.permutation([*sizes, room if split else huge])))


def draw_axes(rng: Generator, rank: int) -> list[int]:
    count = 1 if rng.random() < 0.5 else rng.integers(1, rank + 1)
    return sorted(map(int, rng.choice(rank, count, replace=False)))


def draw(rng: Generator, element: str, shape: Shape, reducer: str = "add", terms: int = 1, power: int = 1) -> Array:
    """Return numbers: `terms` products of `power` of them can be summed exactly, or `terms` of them multiplied."""
    few = rng.random() < 0.3
    if element == "i1":
        return rng.random(shape) < 0.5
    if element in INTEGERS:
        info = np.iinfo(TYPES[element])
        low, high = (max(info.min, -3), 3) if few else (info.min, info.max)
        return rng.integers(low, high, shape, TYPES[element], endpoint=True)
    if reducer == "multiply":
        return np.where(rng.random(shape) < 4 / terms, rng.choice((-1.0, 0.5, 2.0), shape), 1.0)
    if element == "complex<f32>":
        real, imaginary = (draw(rng, "f32", shape, "add", terms * 2**power, power) for _ in range(2))
        return np.asarray(real + 1j * imaginary)
    top = int((2 ** EXACT[element] / terms) ** (1 / power))
    if top:
        return rng.integers(
            -3 if few and top > 3 else -top, 3 if few and top > 3 else top, shape, endpoint=True
        ).astype(float)
    return np.where(rng.random(shape) < 2 ** EXACT[element] / terms / 4, rng.choice((-1.0, 1.0), shape), 0.0)


def draw_reducers(rng: Generator) -> tuple[list[str], list[str]]:
    """Return element types and reducers: XLA refuses floats of several precisions."""
    first = pick(rng, ELEMENTS)
    elements = [first, *(pick(rng, (first, *INTEGERS)) for _ in range(pick(rng, (0, 0, 1, 2))))]
    return elements, [pick(rng, REDUCERS[each]) for each in elements]


def draw_windows(rng: Generator, rank: int, least: int = -2) -> tuple[Shape, Array, Array, Array, Array, Array, Shape]:
    """Return a shape, windows' sizes and strides, dilations of the base and of windows, padding, the result's shape."""
    while True:
        shape = draw_shape(rng, rank)
        size, stride = rng.choice((1, 1, 2, 2, 3, 5), rank), rng.choice((1, 1, 2, 3), rank)
        base, dilation = (rng.choice((1, 2, 3), rank) ** rng.integers(2) for _ in range(2))
        padding = rng.integers(least, 4, (rank, 2)) * rng.integers(2)
        if least == 0:
            base, dilation, padding = base**0, dilation**0, np.minimum(padding, size[:, None] - 1)
        elif rng.integers(2):
            # Windows side by side.
            stride, dilation, padding = size, dilation**0, padding * 0
        room = (np.array(shape) - 1) * base + padding.sum(1) - (size - 1) * dilation
        results = tuple(map(int, room // stride + 1))
        if min(room) >= 0 and prod(results) * prod(map(int, size)) <= STEPS:
            return shape, size, stride, base, dilation, padding, results


def reduction(rng: Generator) -> Drawn:
    p, shape = Program(), draw_shape(rng, int(rng.integers(1, 9)))
    axes, (elements, reducers) = draw_axes(rng, len(shape)), draw_reducers(rng)
    terms = prod(shape[i] for i in axes)
    operands = [p.argument(e, draw(rng, e, shape, r, terms)) for e, r in zip(elements, reducers, strict=True)]
    return p.returning(*p.reduce(operands, reducers, axes))


def argmax(rng: Generator) -> Drawn:
    p, shape = Program(), draw_shape(rng, int(rng.integers(1, 6)))
    axis, element, index = int(rng.integers(len(shape))), pick(rng, REAL), pick(rng, ("i32", "i64", "ui32"))
    key = p.argument(element, draw(rng, element, shape))
    e, i = f"tensor<{element}>", f"tensor<{index}>"
    region = f"""({{\n^bb0(%a: {e}, %i: {i}, %b: {e}, %j: {i}):
%more = stablehlo.compare GT, %a, %b : ({e}, {e}) -> tensor<i1>
%same = stablehlo.compare EQ, %a, %b : ({e}, {e}) -> tensor<i1>
%first = stablehlo.compare LT, %i, %j : ({i}, {i}) -> tensor<i1>
%tied = stablehlo.and %same, %first : tensor<i1>
%left = stablehlo.or %more, %tied : tensor<i1>
%x = stablehlo.select %left, %a, %b : tensor<i1>, {e}
%y = stablehlo.select %left, %i, %j : tensor<i1>, {i}
stablehlo.return %x, %y : {e}, {i}\n}})"""
    arrays = [key.wide.max(axis), key.wide.argmax(axis)]
    kinds = [Value("", each, arrays[0].shape) for each in (element, index)]
    operands = [key, p.iota(index, shape, axis), p.neutral(element, "maximum"), p.neutral(index, "minimum")]
    return p.returning(*p.several("reduce", operands, kinds, arrays, region, dimensions=[axis]))


def products(rng: Generator) -> Drawn:
    p, shape, element = Program(), draw_shape(rng, pick(rng, (1, 2, 3, 4, 5, 6, 7, 8, 8))), pick(rng, NUMBERS)
    axes, terms = draw_axes(rng, len(shape)), 4 * prod(shape)
    one = other = p.argument(element, draw(rng, element, shape, "add", terms, 2))
    if rng.random() < 0.8:
        kept = draw_axes(rng, len(shape)) if rng.random() < 0.3 else range(len(shape))
        array = draw(rng, element, tuple(shape[i] for i in kept), "add", terms, 2)
        other = p.argument(element, array)
        other = other if array.shape == shape else p.broadcast(other, shape, kept)
    wider = {"bf16": "f32", "f16": "f32", "f32": "f64", "i8": "i32"}.get(element)
    if wider and rng.random() < 0.2:
        one, other = (p.op("convert", [each], Value("", wider, shape), each.array) for each in (one, other))
    results = []
    for form in rng.permutation(3)[: pick(rng, (1, 1, 2))]:
        factors = [one, other]
        if form:
            factors = [p.elementwise("add", one, other), p.elementwise("subtract", one, other) if form == 1 else one]
        reducer = pick(rng, ("add", "add", "add" if element == "complex<f32>" else "maximum"))
        results += p.reduce([p.elementwise("multiply", *factors)], [reducer], axes)
    return p.returning(*results)


def windows(rng: Generator) -> Drawn:
    p, (elements, reducers) = Program(), draw_reducers(rng)
    shape, size, stride, base, dilation, padding, results = draw_windows(rng, int(rng.integers(1, 6)))
    pairs = list(zip(elements, reducers, strict=True))
    operands = [p.argument(e, draw(rng, e, shape, r, prod(map(int, size)))) for e, r in pairs]
    given, kinds = [*operands, *(p.neutral(*each) for each in pairs)], [Value("", e, results) for e in elements]
    places = {"window_dimensions": size, "window_strides": stride, "padding": padding}
    places |= {"base_dilations": base, "window_dilations": dilation}
    return p.returning(*p.several("reduce_window", given, kinds, None, combining(reducers, operands), **places))


def cumulative(rng: Generator) -> Drawn:
    p = Program()
    shape, axis = draw_shape(rng, 1, MOST), 0
    while prod(shape) * shape[axis] > 2 * STEPS:
        shape = draw_shape(rng, int(rng.integers(1, 5)))
        axis = int(rng.integers(len(shape)))
    element, backwards = pick(rng, ELEMENTS), int(rng.integers(2))
    reducer = pick(rng, REDUCERS[element])
    value = p.argument(element, draw(rng, element, shape, reducer, shape[axis]))
    if turned := rng.random() < 0.5:
        value = p.reverse(value, [axis])
    size, padding = np.ones(len(shape), int), np.zeros((len(shape), 2), int)
    size[axis], padding[axis, backwards] = shape[axis], shape[axis] - 1
    ahead: Any = (..., slice(None, None, -1 if backwards else 1), *[slice(None)] * (len(shape) - axis - 1))
    array = UFUNCS[reducer].accumulate(value.wide[ahead], axis)[ahead]
    given, region = [value, p.neutral(element, reducer)], combining([reducer], [value])
    [value] = p.several("reduce_window", given, [value], [array], region, window_dimensions=size, padding=padding)
    return p.returning(p.reverse(value, [axis]) if turned else value)


def dot(rng: Generator) -> Drawn:
    p, element, counts = Program(), pick(rng, (*NUMBERS, "f64", "f64")), rng.integers(0, 3, 4)
    if thin := rng.random() < 0.5:
        counts = np.array([0, 1, 1, 1])
        sizes = {"a": pick(rng, (1, 2, 3, 3, 4)), "b": pick(rng, (1, 2, 3, 4)), "c": int(rng.integers(16_383, MOST))}
    else:
        counts[1] += not counts.any()
        sizes = dict(zip("abcdefgh", draw_shape(rng, int(counts.sum()), STEPS), strict=False))
    batch, summed, left, right = ("".join(each) for each in np.split([*sizes], np.cumsum(counts)[:-1]))
    sides = ["".join(rng.permutation([*batch, *summed, *free])) for free in (left, right)]
    shapes = [tuple(sizes[each] for each in side) for side in sides]
    if max(map(prod, shapes)) > 4 * MOST:
        return dot(rng)
    result = batch + "".join(each for side in sides for each in side if each in left + right)
    shape = tuple(sizes[each] for each in result)
    axes = draw_axes(rng, len(shape)) if shape and rng.random() < (0.8 if thin else 0.3) else []
    # The square of a sum of n products is n * n products of four.
    terms = prod(sizes[each] for each in summed)
    bound = (terms * terms * prod(shape[i] for i in axes), 4) if axes else (terms, 2)
    operands = [p.argument(element, draw(rng, element, each, "add", *bound)) for each in shapes]
    numbers = [
        f"{name}_{kind}_dimensions = {[side.index(each) for each in letters]}"
        for kind, letters in (("batching", batch), ("contracting", summed))
        for name, side in zip(("lhs", "rhs"), sides, strict=True)
    ]
    array = np.einsum(f"{','.join(sides)}->{result}", *(each.wide for each in operands))
    value = p.op("dot_general", operands, shape, array, dot_dimension_numbers=f"#stablehlo.dot<{', '.join(numbers)}>")
    return p.returning(*(p.reduce([p.elementwise("multiply", value, value)], ["add"], axes) if axes else [value]))


def convolution(rng: Generator) -> Drawn:
    p, element, steps = Program(), pick(rng, NUMBERS), STEPS + 1
    while steps > STEPS:
        spatial, size, stride, base, dilation, padding, results = draw_windows(rng, int(rng.integers(1, 4)))
        batch, features, kernels = (pick(rng, (1, 2, 3, 8)) for _ in range(3))
        groups, by_batch = pick(rng, ((1, 1), (1, 1), (2, 1), (4, 1), (1, 2), (1, 3)))
        steps = prod(results) * prod(map(int, size)) * batch * features * kernels * groups * by_batch
    kernels *= groups * by_batch
    sides: list[dict[Any, int]] = [
        {"b": batch * by_batch, "f": features * groups, **dict(enumerate(spatial))},
        {"i": features, "o": kernels, **dict(enumerate(map(int, size)))},
        {"b": batch, "f": kernels, **dict(enumerate(results))},
    ]
    orders = [[[*side][i] for i in rng.permutation(len(side))] for side in sides]
    shapes = [tuple(side[each] for each in order) for side, order in zip(sides, orders, strict=True)]
    terms = features * prod(map(int, size))
    operands = [p.argument(element, draw(rng, element, each, "add", terms, 2)) for each in shapes[:2]]
    left, right, result = (f"[{', '.join(map(str, order))}]" for order in orders)
    places = {"window_strides": stride, "padding": padding, "lhs_dilation": base, "rhs_dilation": dilation}
    places |= {"feature_group_count": groups, "batch_group_count": by_batch}
    numbers = f"#stablehlo.conv<{left}x{right}->{result}>"
    return p.returning(p.op("convolution", operands, shapes[2], dimension_numbers=numbers, **places))


class Places(NamedTuple):
    """Where a scatter or a gather reads and writes: `numbers` are those of its dimensions."""

    shape: Shape
    window: list[int]
    indices: Value
    updates: Shape
    points: int
    numbers: list[Any]

    def text(self, *names: str) -> str:
        return ", ".join(f"{name} = {each}" for name, each in zip(names, self.numbers, strict=True))


def draw_places(p: Program, rng: Generator, disjoint: bool) -> Places:
    """Return indices of windows, of which some are partly or wholly outside."""
    shape, element = draw_shape(rng, int(rng.integers(1, 6))), pick(rng, INTEGERS)
    rank, info, starts = len(shape), np.iinfo(TYPES[element]), []
    batch = [i for i in range(rank) if rank > 1 and shape[i] <= 16 and rng.random() < 0.2][:1]
    window = [min(n, pick(rng, (1, 1, 1, 2, 3, 8, n if n < 64 else 1))) for n in shape]
    window = [1 if i in batch else each for i, each in enumerate(window)]
    dropped = [i for i in range(rank) if i not in batch and window[i] == 1 and rng.random() < 0.7]
    indexed = [int(i) for i in rng.permutation(rank) if i not in batch and rng.random() < 0.6]
    for i in indexed:
        step = window[i] if disjoint else 1
        inside = np.arange(int(rng.integers(step)) - 2 * window[i], shape[i] + 2 * window[i], step)
        outside = [info.max] if info.max >= shape[i] else []
        starts.append(np.array([*inside[(inside >= info.min) & (inside <= info.max)], *outside]))
    lengths = [len(each) for each in starts]
    groups, choices = prod(shape[i] for i in batch), prod(lengths)
    points = int(rng.integers(1, min(2_000, max(1, 20_000 // prod(window) // groups)) + 1))
    points = min(points, choices) if disjoint else points
    flat = np.array(
        [rng.permutation(choices)[:points] if disjoint else rng.integers(choices, size=points) for _ in range(groups)]
    )
    indices = np.zeros((groups, points, len(indexed)), TYPES[element])
    for i, (start, position) in enumerate(zip(starts, np.unravel_index(flat, lengths or [1]), strict=False)):
        indices[..., i] = start[position]
    indices = indices.reshape(*[groups] * len(batch), *pick(rng, ((points,), (1, points))), len(indexed))
    of_batch = [int(rng.integers(indices.ndim - 1)) for _ in batch]
    for i in of_batch:
        indices = np.moveaxis(indices, 0, i)
    outer, vector = list(indices.shape[:-1]), int(rng.integers(indices.ndim))
    indices = np.moveaxis(indices, -1, vector)
    if len(indexed) == 1 and vector == len(outer):
        indices = indices[..., 0]
    inner = [window[i] for i in range(rank) if i not in batch and i not in dropped]
    places = sorted(map(int, rng.choice(len(outer) + len(inner), len(inner), replace=False)))
    of_batch = [i + (vector <= i) for i in of_batch]
    updates = tuple((inner if i in places else outer).pop(0) for i in range(len(inner) + len(outer)))
    numbers = [places, dropped, batch, of_batch, indexed, vector]
    return Places(shape, window, p.argument(element, indices), updates, points, numbers)


def gather(rng: Generator) -> Drawn:
    p, element = Program(), pick(rng, ELEMENTS)
    at = draw_places(p, rng, False)
    names = ("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims")
    numbers = f"#stablehlo.gather<{at.text(*names, 'start_index_map', 'index_vector_dim')}>"
    operands = [p.argument(element, draw(rng, element, at.shape)), at.indices]
    return p.returning(p.op("gather", operands, at.updates, dimension_numbers=numbers, slice_sizes=at.window))


def scatter(rng: Generator) -> Drawn:
    p, disjoint, element = Program(), pick(rng, (False, True)), pick(rng, ELEMENTS)
    count, reducer, at = pick(rng, (1, 1, 1, 2, 3, 4)), pick(rng, REDUCERS[element]), draw_places(p, rng, disjoint)
    reducers = [pick(rng, (reducer, "set")) if disjoint else reducer for _ in range(count)]

    def values(shape: Shape) -> list[Value]:
        if rng.random() < 0.3:
            return [p.constant(element, 1, shape) for _ in range(count)]
        arrays = [draw(rng, element, shape, reducer, at.points + 1) for _ in range(rng.integers(1, count + 1))]
        arguments = [p.argument(element, each) for each in arrays]
        return [pick(rng, arguments) for _ in range(count)]

    operands = values(at.shape)
    names = ("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims")
    numbers = f"#stablehlo.scatter<{at.text(*names, 'scatter_dims_to_operand_dims', 'index_vector_dim')}>"
    attrs = {"scatter_dimension_numbers": numbers, "unique_indices": disjoint and pick(rng, (False, True))}
    given = [*operands, at.indices, *values(at.updates)]
    return p.returning(*p.several("scatter", given, operands, None, combining(reducers, operands), **attrs))


def step(p: Program, rng: Generator, base: Value, counter: Value | None = None) -> Value:
    """Update an array by a part of itself."""
    shape, near = base.shape, rng.random() < 0.6
    size = [n if rng.random() < 0.4 else int(rng.integers(max(1, n - 2) if near else 1, n + 1)) for n in shape]
    strides = [pick(rng, (1, 2, 3)) if k * 3 < n else 1 for n, k in zip(shape, size, strict=True)]
    spans = [(k - 1) * s + 1 for k, s in zip(size, strides, strict=True)]
    starts = [int(rng.integers(n - span + 1)) for n, span in zip(shape, spans, strict=True)]
    update = p.slice(base, starts, [i + span for i, span in zip(starts, spans, strict=True)], strides)
    if rng.random() < 0.3:
        update = p.reverse(update, draw_axes(rng, len(shape)))
    if rng.random() < 0.3:
        name = "xor" if base.element == "i1" else pick(rng, ("add", "subtract"))
        update = p.elementwise(name, p.constant(base.element, 1, update.shape), update)
    element = "i32" if counter else pick(rng, INTEGERS)
    at = [p.constant(element, rng.integers(-1, n - k + 2)) for n, k in zip(shape, size, strict=True)]
    if counter:
        at[0] = p.elementwise("add", at[0], counter)
    array, low = base.array.copy(), [np.clip(int(i.array), 0, n - k) for i, n, k in zip(at, shape, size, strict=True)]
    array[tuple(slice(i, i + k) for i, k in zip(low, size, strict=True))] = update.array
    return p.op("dynamic_update_slice", [base, update, *at], base, array)


def loop(p: Program, rng: Generator, base: Value) -> Value:
    """Update an array by parts of itself, several times."""
    seed, times, array = int(rng.integers(1 << 30)), int(rng.integers(2, 6)), base.array
    for i in range(times):
        last = Value("", base.element, base.shape, array)
        array = step(Program(), default_rng(seed), last, Value("", "i32", (), np.array(i))).array
    start, one, limit = (p.constant("i32", each) for each in (0, 1, times))
    less = comparing("LT", "", f"%i, {limit.name}", "tensor<i32>").split("\n", 2)[2].removesuffix("})")
    p.lines.append(f"%w:2 = stablehlo.while(%i = {start.name}, %x = {base.name}) : tensor<i32>, {base}")
    p.lines.append(f"cond {{\n{less}}} do {{")
    counter = Value("%i", "i32", (), np.array(0))
    made = step(p, default_rng(seed), Value("%x", base.element, base.shape, base.array), counter)
    following = p.elementwise("add", counter, one)
    p.lines.append(f"stablehlo.return {following.name}, {made.name} : tensor<i32>, {base}\n}}")
    return Value("%w#1", base.element, base.shape, array)


def update(rng: Generator) -> Drawn:
    p, shape, element = Program(), draw_shape(rng, int(rng.integers(1, 5))), pick(rng, ELEMENTS)
    value = p.argument(element, draw(rng, element, shape, "add", 8))
    if rng.random() < 0.8:
        value = p.elementwise("xor" if element == "i1" else "add", value, p.constant(element, 1, shape))
    if rng.random() < 0.2:
        value = loop(p, rng, value)
    for _ in range(rng.integers(1, 4)):
        value = step(p, rng, value)
    if rng.random() < 0.3:
        value = p.transpose(value, rng.permutation(len(shape)))
    if rng.random() < 0.7:
        sizes = tuple(map(int, rng.permutation(pick(rng, ([*shape, 1], [1, prod(shape)])))))
        value = p.op("reshape", [value], sizes, value.array.reshape(sizes))
    return p.returning(value)


def sort(rng: Generator) -> Drawn:
    p = Program()
    shape: Shape = (MOST,)
    while prod(shape) > 12_000:
        shape = draw_shape(rng, int(rng.integers(1, 5)))
    axis = len(shape) - 1 if rng.random() < 0.7 else int(rng.integers(len(shape)))
    element, direction = pick(rng, (*["f32"] * 9, "bf16", *REAL)), pick(rng, ("GT", "GT", "GT", "LT"))
    operands = [p.argument(element, draw(rng, element, shape))]
    for _ in range(pick(rng, (1, 1, 1, 1, 2, 3))):
        other, along = pick(rng, ("i32", "i32", "i32", "i64", "ui32", "f32")), int(rng.integers(len(shape)))
        form, value = pick(rng, (0, 0, 0, 1, 2, 2, 3, 4)), p.iota(other, shape, along)
        if form == 1:
            order = rng.permutation(len(shape))
            tilted = p.iota(other, tuple(shape[i] for i in order), int(np.argsort(order)[along]))
            value = p.transpose(tilted, np.argsort(order))
        elif form == 2:
            value = p.broadcast(p.iota(other, shape[along : along + 1], 0), shape, [along])
        elif form == 3:
            value = p.elementwise(pick(rng, ("add", "subtract", "multiply")), p.constant(other, 3, shape), value)
        elif form == 4:
            value = p.argument(other, draw(rng, other, shape))
        operands.append(value)
    key = int(rng.integers(len(operands))) if rng.random() < 0.3 else 0
    operands[0], operands[key] = operands[key], operands[0]
    ranks = np.unique(operands[key].wide, return_inverse=True)[1].reshape(shape)
    order = np.argsort(ranks if direction == "LT" else -ranks, axis, kind="stable")
    arrays = [np.take_along_axis(each.array, order, axis) for each in operands]
    arguments = ", ".join(f"%{side}{i}: tensor<{each.element}>" for i, each in enumerate(operands) for side in "ab")
    region = comparing(direction, arguments, f"%a{key}, %b{key}", f"tensor<{element}>")
    results = p.several("sort", operands, operands, arrays, region, dimension=axis, is_stable=True)
    if rng.random() < 0.7:
        limits = [int(rng.integers(1, n + 1)) if i == axis else n for i, n in enumerate(shape)]
        results = [p.slice(each, [0] * len(shape), limits, [1] * len(shape)) for each in results]
    return p.returning(*results)


def select_and_scatter(rng: Generator) -> Drawn:
    p, element, reducer = Program(), pick(rng, ("f32", "f64", "i16", "i32", "i64")), pick(rng, ("add", "maximum"))
    shape, size, stride, _, _, padding, results = draw_windows(rng, int(rng.integers(1, 5)), 0)
    # No two elements are equal, so that the selected one is not open.
    operand = p.argument(element, rng.permutation(prod(shape)).reshape(shape) - prod(shape) // 2)
    source = p.argument(element, draw(rng, element, results, reducer, prod(map(int, size))))
    kind, given = f"tensor<{element}>", [operand, source, p.neutral(element, reducer)]
    region = f"{comparing('GE', f'%a: {kind}, %b: {kind}', '%a, %b', kind)[:-1]}, {combining([reducer], [operand])[1:]}"
    places = {"window_dimensions": size, "window_strides": stride, "padding": padding}
    return p.returning(*p.several("select_and_scatter", given, [operand], None, region, **places))


def moves(rng: Generator) -> Drawn:
    p, element, shape = Program(), pick(rng, ELEMENTS), draw_shape(rng, int(rng.integers(1, 7)))
    value, one = p.argument(element, draw(rng, element, shape)), p.constant(element, 1)
    for _ in range(rng.integers(2, 7)):
        shape, rank, axes = value.shape, len(value.shape), draw_axes(rng, len(value.shape))
        how = pick(rng, ("pad", "concatenate", "transpose", "reverse", "slice", "reshape"))
        if how == "pad" and prod(shape) < MOST:
            low, high = (rng.integers(-1, 3, rank) * (np.array(shape) > 2) for _ in range(2))
            interior = np.array([int(rng.integers(3)) if i == axes[0] else 0 for i in range(rank)])
            array = np.full((np.array(shape) - 1) * (interior + 1) + 1, one.array)
            array[tuple(slice(None, None, each + 1) for each in interior)] = value.array
            array = np.pad(array, np.stack([low, high], 1).clip(0), constant_values=one.array)
            array = array[
                tuple(slice(max(0, -i), n + min(0, j)) for i, j, n in zip(low, high, array.shape, strict=True))
            ]
            edges = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
            value = p.op("pad", [value, one], array.shape, array, **edges)
        elif how == "concatenate" and prod(shape) < MOST:
            parts = [value, pick(rng, (value, p.reverse(value, axes)))]
            array = np.concatenate([each.array for each in parts], axes[0])
            value = p.op("concatenate", parts, array.shape, array, dimension=axes[0])
        elif how == "transpose":
            value = p.transpose(value, rng.permutation(rank))
        elif how == "reverse":
            value = p.reverse(value, axes)
        elif how == "slice":
            starts = [int(rng.integers(min(n, 4))) for n in shape]
            limits = [int(rng.integers(max(i + 1, n - 3), n + 1)) for i, n in zip(starts, shape, strict=True)]
            value = p.slice(value, starts, limits, [pick(rng, (1, 1, 2, 3)) for _ in shape])
        elif how == "reshape" and rank < 8:
            sizes = tuple(map(int, rng.permutation(pick(rng, ([1, *shape], [shape[0], prod(shape[1:])])))))
            value = p.op("reshape", [value], sizes, value.array.reshape(sizes))
    return p.returning(value)


#: Those in which faults are more narrow are drawn twice as often.
OFTEN: Final = (products, windows, dot, scatter, update, sort)
SELDOM: Final = (reduction, argmax, cumulative, convolution, gather, select_and_scatter, moves)
KINDS: Final[tuple[Callable[[Generator], Drawn], ...]] = (*OFTEN, *SELDOM, *OFTEN)
ENGINES: Final[tuple[EngineChoice, ...]] = ("xla", "reference")


def draw_program(seed: int, number: int) -> tuple[str, Drawn]:
    """Return the kind of a program, and the program."""
    kind = KINDS[number % len(KINDS)]
    return kind.__name__, kind(default_rng([seed, number]))


def same(one: Any, other: Any) -> bool:
    return bool(
        one.dtype == other.dtype
        and one.shape == other.shape
        and np.all((one == other) | ((one != one) & (other != other)))
    )


def ended(drawn: Drawn) -> tuple[str, str]:
    """Run a program; return `equal`, `refused`, `different` or `crashed`, and why."""
    results: dict[str, Sequence[Any]] = {"numpy": drawn.expected} if drawn.expected else {}
    refused = ""
    for engine in ENGINES:
        try:
            results[engine] = vt.run(drawn.text, drawn.inputs, engine=engine, timeout=60)
        except (vt.EngineCrashError, vt.EngineTimeoutError) as error:
            return "crashed", f"{engine}: {error}"
        except vt.VhloToolsError as error:
            refused = f"{engine}: {error}"
    pairs = combinations(results, 2)
    wrong = [f"{a} and {b}" for a, b in pairs if not all(map(same, results[a], results[b]))]
    if wrong:
        return "different", ", ".join(wrong)
    return ("refused", refused) if refused else ("equal", "")


def main() -> int:
    """Run as many programs as are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of the one program to run")
    parser.add_argument("--keep", type=Path, help="a folder for the texts of what differs or crashes")
    options = parser.parse_args()
    counts, reasons = Counter[tuple[str, str]](), Counter[str]()
    for number in range(options.count) if options.only is None else [options.only]:
        kind, drawn = draw_program(options.seed, number)
        how, why = ended(drawn)
        counts[kind, how] += 1
        line = f"{kind}, --seed {options.seed} --only {number}: {how}: {why}".splitlines()[0]
        if how == "refused":
            reasons[re.sub(r"[0-9]+", "N", f"{kind}: {why}".splitlines()[0])] += 1
        elif how != "equal":
            print(line, flush=True)
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{kind}_{options.seed}_{number}.mlir").write_text(f"// {line}\n{drawn.text}\n")
    words = ("equal", "refused", "different", "crashed")
    print(f"{'':20}{''.join(f'{word:>11}' for word in words)}")
    for kind in dict.fromkeys(each.__name__ for each in KINDS):
        print(f"{kind:20}{''.join(f'{counts[kind, word]:11}' for word in words)}")
    for reason, count in reasons.most_common():
        print(f"{count} refused: {reason}")
    return int(any(how in ("different", "crashed") for _, how in counts))


if __name__ == "__main__":
    raise SystemExit(main())
