"""The ops of random programs: how the operands of each are drawn, and what numpy makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf, prod
from typing import Any, Final, NamedTuple

import numpy as np
from support.element_types import TYPES
from sweep_programs import (
    COMPLEX,
    EVALUATIONS,
    EVERY,
    FLOATS,
    INDICES,
    INTEGERS,
    MOST,
    NARROW,
    NUMBERS,
    PACKED,
    REAL,
    SIGNED,
    STEPS,
    Array,
    Node,
    Program,
    Shape,
    Value,
    Values,
    exact,
    facts_of,
    greatest,
    holds,
    must,
    pick,
)

Step = Callable[[Program], Any]

#: All but f8E8M0FNU, which has neither zero nor sums.
USUAL: Final = (*NUMBERS, "i1")
UNPACKED: Final = tuple(each for each in NUMBERS if each not in PACKED)
FLOATING: Final = (*FLOATS, *NARROW)
BITWISE: Final = ("and", "or", "xor")
ARITHMETIC: Final = ("add", "multiply", "maximum", "minimum")
UFUNCS: Final[dict[str, Any]] = {
    **{name: getattr(np, name) for name in (*ARITHMETIC, "subtract")},
    **{name: getattr(np, f"bitwise_{name}") for name in BITWISE},
}
REDUCERS: Final[dict[str, Sequence[str]]] = {
    **dict.fromkeys(FLOATING, ARITHMETIC),
    **dict.fromkeys(INTEGERS, (*ARITHMETIC, *BITWISE)),
    **dict.fromkeys(COMPLEX, ("add", "multiply")),
    "i1": BITWISE,
}


# Ops on elements


class Elementwise(NamedTuple):
    """The types that an op takes, what numpy makes of them, and what must hold for that."""

    elements: Sequence[str]
    function: Callable[..., Any]
    must: Callable[..., Any] = lambda *_: True
    signs: bool = False  # whether the signs of zeros are defined
    numbers: Sequence[int] = ()  # what the second operand is made of, if it is new


def divide(one: Array, other: Array) -> Array:
    if one.dtype.kind in "fc":
        return np.asarray(one / other)
    quotient = np.abs(one) // np.abs(other)
    return np.asarray(quotient if one.dtype.kind == "u" else quotient * np.sign(one) * np.sign(other))


def divides(one: Array, other: Array) -> Any:
    finite = np.isfinite(one) & np.isfinite(other) if one.dtype.kind in "fc" else (one >= -(2**53))
    return finite & (other != 0) & (np.abs(other) < 100)


def width(element: str) -> int:
    return 1 if element == "i1" else int(element.strip("ui"))


def bits_of(value: Value) -> Array:
    """Return integers as unsigned ones of 64 bits."""
    mask = np.uint64((1 << width(value.element)) - 1)
    return np.asarray(value.wide.astype(np.uint64) & mask)


def half_away(wide: Array) -> Array:
    size = np.abs(wide)
    return np.asarray(np.copysign(np.floor(size) + (size % 1 >= 0.5), wide))


UNARY: Final[dict[str, Elementwise]] = {
    "abs": Elementwise((*SIGNED, *FLOATING), np.abs, signs=True),
    "ceil": Elementwise(FLOATING, np.ceil, signs=True),
    "floor": Elementwise(FLOATING, np.floor, signs=True),
    "negate": Elementwise((*INTEGERS, *FLOATING, *COMPLEX), np.negative),
    "not": Elementwise((*INTEGERS, "i1"), np.invert),
    "optimization_barrier": Elementwise(EVERY, np.array, signs=True),
    "round_nearest_afz": Elementwise(FLOATING, half_away, signs=True),
    "round_nearest_even": Elementwise(FLOATING, np.round, signs=True),
    "sign": Elementwise((*SIGNED, *FLOATING), np.sign),
    "sqrt": Elementwise(("f32", "f64"), np.sqrt, lambda a: a >= 0),
}
#: Results are near those of numpy.
ROUNDED: Final[dict[str, tuple[Any, float]]] = {
    "cbrt": (np.cbrt, -inf),
    "cosine": (np.cos, -inf),
    "exponential": (np.exp, -inf),
    "exponential_minus_one": (np.expm1, -inf),
    "log": (np.log, 1),
    "log_plus_one": (np.log1p, 0),
    "logistic": (lambda a: 1 / (1 + np.exp(-a)), -inf),
    "rsqrt": (lambda a: 1 / np.sqrt(a), 1),
    "sine": (np.sin, -inf),
    "tan": (np.tan, -inf),
    "tanh": (np.tanh, -inf),
}
BINARY: Final[dict[str, Elementwise]] = {
    "add": Elementwise(USUAL, np.add),
    "divide": Elementwise((*INTEGERS, *FLOATING), divide, divides, numbers=(1, 2, 4, -2, -1, 3)),
    "maximum": Elementwise((*REAL, "i1"), np.maximum),
    "minimum": Elementwise((*REAL, "i1"), np.minimum),
    "multiply": Elementwise(USUAL, np.multiply),
    "power": Elementwise(INTEGERS, np.power, lambda a, b: (b >= 0) & (b < 63), numbers=(0, 1, 2, 3)),
    "remainder": Elementwise((*INTEGERS, *FLOATING), np.fmod, divides, numbers=(1, 2, 3, 4, -3)),
    "subtract": Elementwise(NUMBERS, np.subtract),
    **{name: Elementwise((*INTEGERS, "i1"), UFUNCS[name]) for name in BITWISE},
}


def unary(name: str, p: Program) -> Value:
    row = UNARY[name]
    with_fractions = name in ("ceil", "floor", "round_nearest_afz", "round_nearest_even") and p.rng.random() < 0.8
    value = p.any(row.elements, rounded=name == "optimization_barrier")
    if with_fractions:
        value = p.argument(value.element, value.wide / 4)
    if name == "sqrt" and p.rng.random() < 0.8:
        value = p.argument(value.element, np.abs(p.numbers(value.element, value.shape, power=2)) ** 2)
    must(row.must(value.wide))
    wide = value.array if name == "optimization_barrier" else row.function(value.wide)
    return p.emit(name, [value], value.element, wide, signs=row.signs, error=value.error)


def rounded(name: str, p: Program) -> Value:
    (function, least), element = ROUNDED[name], p.element_of(FLOATS)
    value = p.take(
        lambda v: v.element in FLOATS and not v.error and np.all(np.abs(v.wide) <= 8),
        lambda: p.argument(element, np.abs(p.rng.integers(int(max(least, -8)), 8, p.shape()))),
    )
    must(value.wide >= least)
    wide = function(value.wide)
    return p.emit(name, [value], value.element, wide, error=tolerance(wide, value.element))


def tolerance(wide: Array, element: str, factor: float = 16) -> float:
    return float(np.max(np.abs(wide), initial=1) * factor / greatest(element))


def binary(name: str, p: Program) -> Value:
    row = BINARY[name]
    power = {"multiply": 2}.get(name, 1)
    one = p.any(row.elements, terms=2, power=power)
    if row.numbers:
        choices = [each for each in row.numbers if each > 0 or one.element not in INTEGERS or one.element[0] != "u"]
        other = p.take(
            lambda v: (
                v.shape == one.shape and v.element == one.element and not v.error and np.all(row.must(one.wide, v.wide))
            ),
            lambda: p.argument(
                one.element, p.rng.choice([each for each in choices if abs(each) <= greatest(one.element)], one.shape)
            ),
        )
    elif p.is_sequence and p.is_argument(one) and p.rng.random() < 0.75:
        other = p.fresh(one.element, one.shape, 2, power)
    else:
        other = p.like(one, terms=2, power=power)
    if p.rng.random() < 0.5 and not row.numbers:
        one, other = other, one
    return elementwise(p, name, one, other)


def elementwise(p: Program, name: str, one: Value, other: Value) -> Value:
    row = BINARY[name]
    must(row.must(one.wide, other.wide))
    if name == "multiply" and one.element in COMPLEX:
        # Its parts are sums, which engines may round once or twice.
        size, by = (np.abs(each.wide.real) + np.abs(each.wide.imag) for each in (one, other))
        must(~np.isfinite(size * by) | (size * by <= greatest(one.element)))
    wide = row.function(one.wide, other.wide)
    return p.emit(name, [one, other], one.element, wide)


def atan2(p: Program) -> Value:
    element = p.element_of(FLOATS)
    one = p.take(
        lambda v: v.element in FLOATS and not v.error and v.is_finite and np.all(v.wide != 0),
        lambda: p.argument(element, p.rng.integers(1, 9, p.shape())),
    )
    other = p.argument(one.element, p.rng.integers(-8, 8, one.shape) + 0.5)
    wide = np.arctan2(one.wide, other.wide)
    return p.emit("atan2", [one, other], one.element, wide, error=tolerance(wide, one.element))


def shift(name: str, p: Program) -> Value:
    one = p.any(SIGNED if name == "shift_right_arithmetic" else INTEGERS)
    other = p.argument(one.element, p.rng.integers(0, min(width(one.element), greatest(one.element) + 1), one.shape))
    by = bits_of(other)
    if name == "shift_right_arithmetic":
        return p.emit(name, [one, other], one.element, one.wide >> by.astype(np.int64))
    return p.emit(name, [one, other], one.element, bits_of(one) << by if name == "shift_left" else bits_of(one) >> by)


def count_bits(name: str, p: Program) -> Value:
    value = p.any(INTEGERS)
    bits, size = bits_of(value), width(value.element)
    ones = [(bits >> np.uint64(i)) & np.uint64(1) for i in range(size)]
    if name == "popcnt":
        wide = sum(ones)
    else:
        wide = np.full(value.shape, size)
        for i, one in enumerate(ones):
            wide[one == 1] = size - 1 - i
    return p.emit(name, [value], value.element, wide)


def is_finite(p: Program) -> Value:
    value = p.any(FLOATS)
    return p.emit("is_finite", [value], "i1", np.isfinite(value.wide))


def compare(p: Program) -> Value:
    one = p.any(EVERY)
    other = p.like(one)
    direction = pick(p.rng, ("EQ", "NE") if one.element in COMPLEX else ("EQ", "NE", "LT", "LE", "GT", "GE"))
    kind = {"c": "FLOAT", "f": "FLOAT", "b": "FLOAT", "u": "UNSIGNED"}.get(one.element[0], "SIGNED")
    kind = "UNSIGNED" if one.element == "i1" else kind
    a, b = one.wide, other.wide
    if one.element in FLOATING and p.rng.random() < 0.3 and one.signs and other.signs:
        kind = "TOTALORDER"
        must(~np.isnan(a) & ~np.isnan(b))
        a, b = ordered(one), ordered(other)
    wide = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater}.get(
        direction, np.greater_equal
    )(a, b)
    attrs: dict[str, Any] = {"comparison_direction": f"#stablehlo<comparison_direction {direction}>"}
    attrs["compare_type"] = f"#stablehlo<comparison_type {kind}>"
    return p.emit("compare", [one, other], "i1", wide, **attrs)


def ordered(value: Value) -> Array:
    """Return numbers in whose order minus zero is below zero."""
    wide = value.wide
    return np.where(wide == 0, np.where(np.signbit(wide), -0.25, 0.25), wide)


def select(p: Program) -> Value:
    one = p.any(EVERY)
    other = p.like(one)
    by = p.like(one, "i1") if p.rng.random() < 0.8 else p.fresh("i1", ())
    return p.emit("select", [by, one, other], one.element, np.where(by.array, one.array, other.array), signs=True)


def clamp(p: Program) -> Value:
    value = p.any(REAL)
    shape = value.shape if p.rng.random() < 0.5 else ()
    low, high = (np.sort(p.numbers(value.element, (2, *shape), top=3), 0)[i] for i in (0, 1))
    low, high = p.argument(value.element, low), p.argument(value.element, high)
    wide = np.minimum(np.maximum(value.wide, low.wide), high.wide)
    return p.emit("clamp", [low, value, high], value.element, wide)


def make_complex(p: Program) -> Value:
    one = p.any(("f32", "f64"))
    other = p.like(one)
    must(one.is_finite and other.is_finite)
    return p.emit("complex", [one, other], f"complex<{one.element}>", one.wide + 1j * other.wide)


def part(name: str, p: Program) -> Value:
    value = p.any(COMPLEX)
    return p.emit(name, [value], value.element[8:-1], value.wide.real if name == "real" else value.wide.imag)


def converted(p: Program, value: Value, element: str) -> Value:
    wide = value.wide
    if element == "i1":
        wide = wide != 0
    elif element in INTEGERS:
        info = facts_of(element)
        must(np.isfinite(wide) & (wide >= max(int(info.min), -(2**53))) & (wide <= min(int(info.max), 2**53)))
        must(wide == np.floor(wide))
    elif element not in COMPLEX:
        must(element in (*FLOATS, "f8E8M0FNU") or value.is_finite)
        must(element != "f8E8M0FNU" or np.all(wide > 0))
    signs = value.element in (*INTEGERS, "i1") or (element in FLOATS and value.element in FLOATING)
    return p.emit("convert", [value], element, wide, signs=signs)


def convert(p: Program) -> Value:
    return converted(p, p.any((*REAL, "i1", "f8E8M0FNU")), p.pick_element(EVERY))


def bitcast_convert(p: Program) -> Value:
    value = p.any([each for each in (*INTEGERS, *FLOATS) if each not in ("i2", "ui2", "i4", "ui4")])
    size = value.array.itemsize
    widths = [each for each in ("i8", "i16", "i32", "i64", "ui8", "ui32") if TYPES[each].itemsize <= size]
    element = pick(p.rng, widths)
    must(value.signs and value.is_finite and value.rank < 8)
    ratio = size // TYPES[element].itemsize
    array = np.frombuffer(value.array.tobytes(), TYPES[element]).reshape(
        (*value.shape, *([ratio] if ratio > 1 else []))
    )
    return p.emit("bitcast_convert", [value], element, array)


def reduce_precision(p: Program) -> Value:
    value = p.any(FLOATS)
    bits = int(p.rng.integers(1, 11))
    must(value.is_finite and np.all(np.abs(value.wide) < 2**14))
    fraction, exponent = np.frexp(value.wide)
    wide = np.ldexp(np.round(np.ldexp(fraction, bits + 1)), exponent - bits - 1)
    limits = {"exponent_bits": "5 : i32", "mantissa_bits": f"{bits} : i32"}
    return p.emit("reduce_precision", [value], value.element, wide, signs=True, **limits)


# Ops that move elements


def moved(p: Program, name: str, operands: Values, array: Array, **attrs: Any) -> Value:
    errors = max(each.error for each in operands if each.element == operands[0].element)
    return p.emit(name, operands, operands[0].element, array, signs=True, error=errors, **attrs)


def iota(p: Program, element: str, shape: Shape, axis: int) -> Value:
    must(shape[axis] - 1 <= greatest(element))
    array = np.broadcast_to(np.indices(shape, sparse=True)[axis], shape)
    return p.emit("iota", [], element, array, signs=True, iota_dimension=axis)


def draw_iota(name: str, p: Program) -> Value:
    shape = p.shape(1)
    axis, element = int(p.rng.integers(len(shape))), p.element_of((*INTEGERS, *FLOATS, *COMPLEX))
    if name == "iota":
        return iota(p, element, shape, axis)
    must(shape[axis] - 1 <= greatest(element))
    array = np.broadcast_to(np.indices(shape, sparse=True)[axis], shape)
    return p.emit(name, [p.integers(shape)], element, array, iota_dimension=axis)


def broadcast(p: Program, value: Value, shape: Shape, axes: Sequence[int], name: str = "broadcast_in_dim") -> Value:
    array = np.expand_dims(value.array, [i for i in range(len(shape)) if i not in axes])
    sizes = [p.integers(shape)] if name.startswith("dynamic") else []
    return moved(p, name, [value, *sizes], np.broadcast_to(array, shape), broadcast_dimensions=axes)


def draw_broadcast(name: str, p: Program) -> Value:
    value = p.any(rounded=True, most=6)
    shape: list[int] = [pick(p.rng, (2, 3, 17)) if n == 1 and p.rng.random() < 0.5 else n for n in value.shape]
    axes = list(range(len(shape)))
    for _ in range(p.rng.integers(1, 9 - len(shape))):
        at = 0 if name == "broadcast" else int(p.rng.integers(len(shape) + 1))
        shape.insert(at, pick(p.rng, (1, 2, 3, 8, 40)))
        axes = [i + (i >= at) for i in axes]
        if prod(shape) > 40_000:
            shape[at] = 1
    if name == "broadcast":
        count = len(shape) - value.rank
        shape[count:] = value.shape
        array = np.broadcast_to(value.array, shape)
        return moved(p, name, [value], array, broadcast_sizes=shape[:count])
    must(prod(shape) <= max(40_000, value.array.size))
    return broadcast(p, value, tuple(shape), axes, name)


def transposed(p: Program, value: Value, order: Any) -> Value:
    return moved(p, "transpose", [value], value.array.transpose(order), permutation=order)


def transpose(p: Program) -> Value:
    value = p.any(rounded=True)
    return transposed(p, value, p.rng.permutation(value.rank))


def reversed_(p: Program, value: Value, axes: Sequence[int]) -> Value:
    return moved(p, "reverse", [value], np.flip(value.array, tuple(axes)), dimensions=axes)


def reverse(p: Program) -> Value:
    value = p.any(least=1, rounded=True)
    return reversed_(p, value, p.axes(value.rank))


def sliced(p: Program, value: Value, starts: Any, limits: Any, strides: Any, name: str = "slice") -> Value:
    array = value.array[tuple(slice(*each) for each in zip(starts, limits, strides, strict=True))]
    if name == "slice":
        return moved(p, name, [value], array, start_indices=starts, limit_indices=limits, strides=strides)
    return moved(p, name, [value, *(p.integers(each) for each in (starts, limits, strides))], array)


def draw_slice(name: str, p: Program) -> Value:
    value, rng = p.any(least=1, rounded=True), p.rng
    near = rng.random() < 0.6
    starts = [int(rng.integers(min(n, 4) if near else n)) for n in value.shape]
    limits = [
        int(rng.integers(max(i, n - 4 if near else 0) + 1, n + 1)) for i, n in zip(starts, value.shape, strict=True)
    ]
    if rng.random() < 0.4:
        # The first ones of one dimension.
        axis = int(rng.integers(value.rank))
        starts, limits = [0] * value.rank, [limits[i] if i == axis else n for i, n in enumerate(value.shape)]
    strides = [pick(rng, (1, 1, 2, 3)) if rng.random() < 0.4 else 1 for _ in value.shape]
    return sliced(p, value, starts, limits, strides, name)


def reshape(name: str, p: Program) -> Value:
    value, rng = p.any(rounded=True), p.rng
    sizes: Any = pick(rng, ([*value.shape, 1], [1, prod(value.shape)], [prod(value.shape[:2]), *value.shape[2:]], None))
    if sizes is None:
        sizes, rest = [1] * int(rng.integers(1, 9)), prod(value.shape)
        for factor in (2, 3, 5, 7):
            while rest % factor == 0:
                rest //= factor
                sizes[rng.integers(len(sizes))] *= factor
        sizes[rng.integers(len(sizes))] *= rest
    must(len(sizes) <= 8)
    shape = tuple(map(int, rng.permutation(sizes)))
    others = [p.integers(shape)] if name.startswith("dynamic") else []
    return moved(p, name, [value, *others], value.array.reshape(shape))


def pad(name: str, p: Program) -> Value:
    value, rng = p.any(least=1), p.rng
    shape, axes, one = np.array(value.shape), p.axes(value.rank), p.constant(value.element, 1)
    low, high = (rng.integers(-1, 3, value.rank) * (shape > 2) for _ in range(2))
    interior = np.array([int(rng.integers(3)) if i == axes[0] else 0 for i in range(value.rank)])
    array = spread(value.array, interior + 1, np.stack([low, high], 1), one.array)
    if name == "pad":
        edges = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
        return moved(p, name, [value, one], array, **edges)
    return moved(p, name, [value, one, *(p.integers(each) for each in (low, high, interior))], array)


def concatenate(p: Program) -> Value:
    value, rng = p.any(least=1), p.rng
    axis = int(rng.integers(value.rank))
    parts = [value, p.like(value)]
    for _ in range(pick(rng, (0, 0, 1, 2))):
        parts.append(p.take(lambda v: fits_beside(v, value, axis), lambda: value))
    order = rng.permutation(len(parts))
    parts = [parts[i] for i in order]
    return moved(p, "concatenate", parts, np.concatenate([each.array for each in parts], axis), dimension=axis)


def fits_beside(one: Value, other: Value, axis: int) -> bool:
    rest = [(*each.shape[:axis], *each.shape[axis + 1 :]) for each in (one, other)]
    return one.rank == other.rank and rest[0] == rest[1] and one.element == other.element and not one.error


def starts_of(
    p: Program, shape: Shape, size: Sequence[int], counter: Value | None = None
) -> tuple[list[Value], list[int]]:
    """Return indices, of which some are outside, and those that they are limited to."""
    element = "i32" if counter else pick(p.rng, INDICES)
    bounds = facts_of(element)
    drawn = [
        int(np.clip(p.rng.integers(-1, n - k + 2), bounds.min, bounds.max)) for n, k in zip(shape, size, strict=True)
    ]
    make = p.constant if counter or p.rng.random() < 0.7 else p.argument
    at = [make(element, np.array(each)) for each in drawn]
    if counter and at:
        at[0] = elementwise(p, "add", at[0], counter)
    return at, [int(np.clip(int(i.array), 0, n - k)) for i, n, k in zip(at, shape, size, strict=True)]


def dynamic_slice(p: Program) -> Value:
    value = p.any(rounded=True)
    size = [int(p.rng.integers(1, n + 1)) for n in value.shape]
    at, low = starts_of(p, value.shape, size)
    array = value.array[tuple(slice(i, i + k) for i, k in zip(low, size, strict=True))]
    return moved(p, "dynamic_slice", [value, *at], array, slice_sizes=size)


def updated(p: Program, base: Value, counter: Value | None = None) -> Value:
    """Update an array, by a part of itself as a rule."""
    rng, shape, near = p.rng, base.shape, p.rng.random() < 0.6
    size = [n if rng.random() < 0.4 else int(rng.integers(max(1, n - 2) if near else 1, n + 1)) for n in shape]
    strides = [pick(rng, (1, 2, 3)) if k * 3 < n else 1 for n, k in zip(shape, size, strict=True)]
    spans = [(k - 1) * s + 1 for k, s in zip(size, strides, strict=True)]
    starts = [int(rng.integers(n - span + 1)) for n, span in zip(shape, spans, strict=True)]
    if counter or rng.random() < 0.8:
        update = sliced(p, base, starts, [i + span for i, span in zip(starts, spans, strict=True)], strides)
    else:
        update = p.take(
            lambda v: (
                v.element == base.element and v.rank == base.rank and not v.error and np.all(np.array(v.shape) <= shape)
            ),
            lambda: p.fresh(base.element, tuple(size)),
        )
        size = list(update.shape)
    if base.rank and rng.random() < 0.3:
        update = reversed_(p, update, p.axes(base.rank))
    if base.element in USUAL and rng.random() < 0.3 and base.element != "i1":
        update = elementwise(p, pick(rng, ("add", "subtract")), p.constant(base.element, 1, update.shape), update)
    at, low = starts_of(p, shape, size, counter)
    array = base.array.copy()
    array[tuple(slice(i, i + k) for i, k in zip(low, size, strict=True))] = update.array
    return moved(p, "dynamic_update_slice", [base, update, *at], array)


def dynamic_update_slice(p: Program) -> Value:
    return updated(p, p.any(least=1))


def get_dimension_size(p: Program) -> Value:
    value = p.any(least=1)
    axis = int(p.rng.integers(value.rank))
    return p.emit("get_dimension_size", [value], "i32", np.array(value.shape[axis]), dimension=axis)


def tuples(p: Program) -> Value:
    values = [p.any(EVERY) for _ in range(3)]
    name, kind, taken = p.name(), f"tuple<{', '.join(map(str, values))}>", pick(p.rng, (0, 1, 2))
    given, made = ", ".join(each.name for each in values), p.name()
    chosen = values[taken]
    result = Value(made, chosen.element, chosen.shape, chosen.array, chosen.signs)
    text = f"{name} = stablehlo.tuple {given} : {kind}\n"
    text += f'{made} = "stablehlo.get_tuple_element"({name}) <{{index = {taken} : i32}}> : ({kind}) -> {result}'
    p.add(Node(text, values, [result]))
    return result


def constant(p: Program) -> Value:
    value = p.constant(p.element_of(EVERY), 1, p.shape())
    p.values.append(value)
    return value


# Reductions and windows


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


def neutral(p: Program, element: str, reducer: str) -> Value:
    low: Any = 0
    high: Any = 1
    if element in INTEGERS:
        info = facts_of(element)
        low, high = int(info.min), int(info.max)
    elif element in FLOATING:
        top = inf if holds(element, inf) else float(facts_of(element).max)
        low, high = -top, top
    number = {"multiply": 1, "maximum": low, "minimum": high, "and": -1}.get(reducer, 0)
    return p.constant(element, number)


def reduced(reducer: str, wide: Array, element: str, axes: Sequence[int]) -> Array:
    """Return the exact result of combining elements in any order."""
    if element in (*FLOATING, *COMPLEX) and reducer in ("add", "multiply"):
        must(np.isfinite(wide) & (wide == np.round(wide)))
        size = np.abs(wide.real) + np.abs(wide.imag)
        most = size.sum(tuple(axes)) if reducer == "add" else np.maximum(size, 1).prod(tuple(axes))
        must(most <= greatest(element))
    return np.asarray(UFUNCS[reducer].reduce(wide, axis=tuple(axes)))


def factors(p: Program, element: str, shape: Shape, reducer: str, terms: int) -> Value:
    if reducer == "multiply" and element not in INTEGERS:
        rare = p.rng.random(shape) < 3 / terms
        return p.argument(element, np.where(rare, p.rng.choice((-1.0, 2.0, -2.0), shape), 1.0))
    return p.fresh(element, shape, terms if reducer == "add" else 1)


def draw_operands(p: Program, most: int = 8) -> tuple[list[Value], list[str]]:
    """Return values of one shape and reducers: XLA refuses floats of several precisions."""
    reducer = pick(p.rng, ("add", "add", "any"))
    others = (0, 0, 0, 0, 0, 1, 2) if p.is_sequence else (0, 0, 0, 1, 2)

    def make() -> Value:
        element, shape = p.element_of(USUAL), p.shape(1, most)
        chosen = reducer if reducer in REDUCERS[element] else pick(p.rng, REDUCERS[element])
        return factors(p, element, shape, chosen, prod(shape))

    first = p.take(lambda v: v.element in USUAL and 1 <= v.rank <= most and not v.error, make)
    operands = [first]
    for _ in range(pick(p.rng, others) if first.element not in PACKED else 0):
        element = pick(p.rng, (first.element, *(each for each in INTEGERS if "8" in each or "32" in each)))
        operands.append(p.like(first, element, terms=prod(first.shape)))
    return operands, [
        reducer if reducer in REDUCERS[each.element] else pick(p.rng, REDUCERS[each.element]) for each in operands
    ]


def reduce(p: Program) -> list[Value]:
    if p.rng.random() < 0.12:
        return argmax(p)
    operands, reducers = draw_operands(p)
    axes = p.axes(operands[0].rank)
    if p.rng.random() < (0.6 if p.is_sequence else 0.4):
        axes = [int(p.rng.choice(np.flatnonzero(np.asarray(operands[0].shape) <= max(3, min(operands[0].shape)))))]
    pairs = list(zip(operands, reducers, strict=True))
    arrays = [reduced(r, v.wide, v.element, axes) for v, r in pairs]
    given = [*operands, *(neutral(p, v.element, r) for v, r in pairs)]
    elements = [each.element for each in operands]
    cost = prod(operands[0].shape) * len(operands)
    return p.several(
        "reduce", given, elements, arrays, region=combining(reducers, operands), dimensions=axes, cost=cost
    )


def argmax(p: Program) -> list[Value]:
    key = p.any([each for each in REAL if each in UNPACKED], least=1)
    must(key.is_finite)
    axis, element, index = int(p.rng.integers(key.rank)), key.element, pick(p.rng, ("i32", "i64", "ui32"))
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
    operands = [key, iota(p, index, key.shape, axis), neutral(p, element, "maximum"), neutral(p, index, "minimum")]
    cost = 7 * prod(key.shape)
    return p.several("reduce", operands, [element, index], arrays, region=region, dimensions=[axis], cost=cost)


def map_(p: Program) -> Value:
    one = p.any(REAL)
    name = pick(p.rng, REDUCERS[one.element])
    other = p.like(one)
    must(not (name == "multiply" and one.element in FLOATING) or (one.is_finite and other.is_finite))
    region, axes = combining([name], [one]), range(one.rank)
    return p.emit("map", [one, other], one.element, UFUNCS[name](one.wide, other.wide), region=region, dimensions=axes)


def spread(array: Array, base: Array, padding: Array, fill: Any) -> Array:
    """Return an array with holes between its elements and padding around them, or without some at its ends."""
    held = np.full((np.array(array.shape) - 1) * base + 1, fill, array.dtype)
    held[tuple(slice(None, None, int(each)) for each in base)] = array
    held = np.pad(held, padding.clip(0), constant_values=fill)
    low, high = -padding.clip(None, 0).T
    return held[tuple(slice(i, n - j) for i, j, n in zip(low, high, held.shape, strict=True))]


class Windows(NamedTuple):
    size: Array
    stride: Array
    base: Array
    dilation: Array
    padding: Array
    results: Shape

    def views(self, array: Array, fill: Any) -> Array:
        """Return the windows of the first dimensions of an array; the dimensions of a window are the last ones."""
        rank = len(self.size)
        rest = array.ndim - rank
        ones = np.ones(rest, int)
        held = spread(array, np.concatenate([self.base, ones]), np.pad(self.padding, ((0, rest), (0, 0))), fill)
        steps = np.array(held.strides[:rank])
        return np.lib.stride_tricks.as_strided(
            held,
            (*self.results, *held.shape[rank:], *map(int, self.size)),
            (*map(int, steps * self.stride), *held.strides[rank:], *map(int, steps * self.dilation)),
        )


def draw_windows(p: Program, shape: Shape, is_plain: bool = False) -> Windows:
    rng, rank = p.rng, len(shape)
    for _ in range(20):
        stride = rng.choice((1, 1, 2, 3), rank)
        size = np.where(rng.random(rank) < pick(rng, (0.3, 0.6, 0.9)), rng.choice((2, 2, 3, 5), rank), 1)
        base, dilation = (
            np.where(rng.random(rank) < pick(rng, (0, 0.3, 0.6)), rng.choice((2, 3), rank), 1) for _ in range(2)
        )
        if rng.random() < 0.6:
            # Holes along other dimensions than windows.
            base = np.where(size > 1, 1, base)
        padding = rng.integers(-2, 4, (rank, 2)) * rng.integers(2)
        if is_plain:
            base, dilation, padding = base**0, dilation**0, np.minimum(padding.clip(0), size[:, None] - 1)
        elif rng.integers(2):
            # Windows side by side.
            stride, dilation, padding = size, dilation**0, padding * 0
        room = (np.array(shape) - 1) * base + padding.sum(1) - (size - 1) * dilation
        results = tuple(map(int, room // stride + 1))
        if min(room, default=0) >= 0 and np.all((np.array(shape) - 1) * base + 1 + padding.clip(None, 0).sum(1) > 0):
            must(prod(results) * prod(map(int, size)) <= (EVALUATIONS if p.size == "large" else STEPS))
            return Windows(size, stride, base, dilation, padding, results)
    must(False)
    raise AssertionError


def reduce_window(p: Program) -> list[Value]:
    if p.rng.random() < 0.2:
        return [cumulative(p)]
    operands, reducers = draw_operands(p, 5)
    at = draw_windows(p, operands[0].shape)
    pairs = list(zip(operands, reducers, strict=True))
    given = [*operands, *(neutral(p, v.element, r) for v, r in pairs)]
    rank, arrays = operands[0].rank, []
    for (value, reducer), start in zip(pairs, given[len(operands) :], strict=True):
        views = at.views(value.wide, start.wide)
        arrays.append(reduced(reducer, views, value.element, range(rank, 2 * rank)))
    places: dict[str, Any] = {"window_dimensions": at.size, "window_strides": at.stride, "padding": at.padding}
    places |= {"base_dilations": at.base, "window_dilations": at.dilation}
    elements, cost = [each.element for each in operands], prod(at.results) * int(prod(at.size)) * len(operands)
    return p.several(
        "reduce_window", given, elements, arrays, region=combining(reducers, operands), cost=cost, **places
    )


def cumulative(p: Program) -> Value:
    element = p.element_of(USUAL)
    reducer = pick(p.rng, REDUCERS[element])
    shape = p.shape(1, 5)
    value = p.take(
        lambda v: v.element == element and 1 <= v.rank <= 5 and not v.error,
        lambda: factors(p, element, shape, reducer, prod(shape)),
    )
    shape, axis, backwards = value.shape, int(p.rng.integers(value.rank)), int(p.rng.integers(2))
    must(prod(shape) * shape[axis] <= STEPS)
    if turned := p.rng.random() < 0.5:
        value = reversed_(p, value, [axis])
    size, padding = np.ones(len(shape), int), np.zeros((len(shape), 2), int)
    size[axis], padding[axis, backwards] = shape[axis], shape[axis] - 1
    reduced(reducer, value.wide, element, [axis])
    ahead: Any = (..., slice(None, None, -1 if backwards else 1), *[slice(None)] * (len(shape) - axis - 1))
    array = UFUNCS[reducer].accumulate(value.wide[ahead], axis)[ahead]
    places: dict[str, Any] = {"window_dimensions": size, "padding": padding, "cost": prod(shape) * shape[axis]}
    given, region = [value, neutral(p, element, reducer)], combining([reducer], [value])
    [value] = p.several("reduce_window", given, [element], [array], region=region, **places)
    return reversed_(p, value, [axis]) if turned else value


def select_and_scatter(p: Program) -> Value:
    rng, element, reducer = p.rng, p.element_of(("f32", "f64", "i16", "i32", "i64")), pick(p.rng, ("add", "maximum"))
    shape = p.shape(1, 4)
    # No two elements are equal, so that the selected one is not open.
    operand = p.take(
        lambda v: (
            v.element == element
            and 1 <= v.rank <= 4
            and not v.error
            and v.is_finite
            and len(np.unique(v.array)) == v.array.size
        ),
        lambda: p.argument(element, rng.permutation(prod(shape)).reshape(shape) - prod(shape) // 2),
    )
    at = draw_windows(p, operand.shape, True)
    source, start = factors(p, element, at.results, reducer, int(prod(at.size))), neutral(p, element, reducer)
    numbers = np.arange(operand.array.size).reshape(operand.shape)
    places = at.views(numbers, -1).reshape(prod(at.results), -1)
    wide = operand.wide.reshape(-1)
    chosen = np.where(places >= 0, wide[places], wide.min() - 1).argmax(1)
    result = np.full(operand.array.size, start.wide)
    UFUNCS[reducer].at(result, places[np.arange(len(places)), chosen], source.wide.reshape(-1))
    kind, given = f"tensor<{element}>", [operand, source, start]
    region = f"{comparing('GE', f'%a: {kind}, %b: {kind}', '%a, %b', kind)[:-1]}, {combining([reducer], [operand])[1:]}"
    attrs: dict[str, Any] = {"window_dimensions": at.size, "window_strides": at.stride, "padding": at.padding}
    cost = places.size * 2
    return p.emit(
        "select_and_scatter", given, element, result.reshape(operand.shape), region=region, cost=cost, **attrs
    )


# Products


def einsum(p: Program, letters: str, one: Value, other: Value, sizes: int) -> Array:
    must(sizes <= (EVALUATIONS if p.size == "large" else 2 * STEPS))
    wide = [one.wide, other.wide]
    if one.element not in INTEGERS:
        must(one.is_finite and other.is_finite)
        must([each == np.round(each) for each in wide[:1]])
        must(wide[1] == np.round(wide[1]))
        bounds = [np.abs(each.real) + np.abs(each.imag) for each in wide]
        must(np.einsum(letters, *bounds, optimize=False) <= greatest(one.element))
    return np.asarray(np.einsum(letters, *wide, optimize=False))


def contraction(name: str, p: Program) -> Value:
    rng, alphabet = p.rng, iter("abcdefghijklmnopqrstuvwxyz")
    sizes: dict[str, int] = {}
    element = p.element_of(NUMBERS)
    is_thin = p.size == "usual" and rng.random() < (0.8 if p.is_sequence else 0.4)
    shape = p.shape(1, 4)
    if is_thin:
        # Many rows, of a few numbers each.
        rows = (
            pick(rng, (16_384, 32_768, 32_768)) + int(rng.integers(-1, 4))
            if rng.random() < 0.6
            else rng.integers(4_000, 60_000)
        )
        shape = (int(rows), pick(rng, (1, 2, 3, 3, 3, 4)))
        shape = shape if rng.random() < 0.8 else shape[::-1]
    if name == "dot":
        shape = shape[:2]
    # The square of a sum of n products, summed as often as there are results, shall be exact as well.
    power = 4 if p.is_sequence or rng.random() < 0.3 else 2
    one = p.take(
        lambda v: v.element in NUMBERS and not v.error and 1 <= v.rank <= (2 if name == "dot" else 5),
        lambda: p.fresh(element, shape, prod(shape), power),
    )
    left = "".join(next(alphabet) for _ in one.shape)
    sizes |= zip(left, one.shape, strict=True)
    if name == "dot":
        batch, summed = "", left[-1]
    else:
        by_size = sorted(left, key=lambda each: sizes[each] if rng.random() < 0.8 else 0)
        summed = "".join(by_size[: int(rng.integers(0 if len(left) > 1 else 1, len(left) + 1))])
        if is_thin:
            summed = by_size[0]
        batch = "".join(each for each in left if each not in summed and rng.random() < 0.15)
    free = "".join(next(alphabet) for _ in range(pick(rng, (0, 1, 1, 1, 1, 2) if name != "dot" else (0, 1))))
    sizes |= {each: pick(rng, (1, 2, 3, 3, 3, 4, 5, 7, 16)) for each in free}
    if name == "dot":
        right = summed + free
    else:
        right = (
            free + summed if rng.random() < 0.5 and not batch else "".join(rng.permutation([*batch, *summed, *free]))
        )
    other = p.take(
        lambda v: v.element == one.element and v.shape == tuple(sizes[each] for each in right) and not v.error,
        lambda: p.fresh(one.element, tuple(sizes[each] for each in right), prod(one.shape), power),
    )
    if name != "dot" and rng.random() < 0.5:
        one, other, left, right = other, one, right, left
    result = batch + "".join(each for each in left + right if each not in batch + summed)
    cost = prod(sizes.values())
    array = einsum(p, f"{left},{right}->{result}", one, other, cost)
    wider = (
        {"bf16": "f32", "f16": "f32", "i8": "i32"}.get(one.element, one.element) if rng.random() < 0.2 else one.element
    )
    attrs: dict[str, Any] = {"cost": cost}
    if name == "dot_general":
        numbers = [
            f"{side}_{kind}_dimensions = {[letters.index(each) for each in chosen]}"
            for kind, chosen in (("batching", batch), ("contracting", summed))
            for side, letters in (("lhs", left), ("rhs", right))
        ]
        attrs["dot_dimension_numbers"] = f"#stablehlo.dot<{', '.join(numbers)}>"
    elif name == "einsum":
        attrs["einsum_config"] = f'"{left},{right}->{result}"'
        wider = one.element
    return p.emit(name, [one, other], wider, array, **attrs)


def convolution(p: Program) -> Value:
    rng = p.rng
    groups, by_batch = pick(rng, ((1, 1), (1, 1), (2, 1), (4, 1), (1, 2), (1, 3)))

    def make() -> Value:
        spatial = p.shape(1, 3)
        batch, features = by_batch * pick(rng, (1, 2, 3, 8)), groups * pick(rng, (1, 2, 3, 8))
        shape = tuple(map(int, rng.permutation([batch, features, *spatial])))
        must(prod(shape) <= EVALUATIONS)
        return p.fresh(p.element_of(UNPACKED), shape, features * 27, 2)

    data = p.take(lambda v: v.element in UNPACKED and not v.error and 2 <= v.rank <= 5, make)
    smallest = sorted(range(data.rank), key=lambda i: data.shape[i])
    at = [[int(i)] for i in rng.permutation(smallest[:2])]
    groups = groups if data.shape[at[1][0]] % groups == 0 else 1
    by_batch = by_batch if data.shape[at[0][0]] % by_batch == 0 and groups == 1 else 1
    (batch_at,), (feature_at,) = at
    spatial = [i for i in range(data.rank) if i not in (batch_at, feature_at)]
    windows = draw_windows(p, tuple(data.shape[i] for i in spatial))
    features, kernels = data.shape[feature_at] // groups, pick(rng, (1, 2, 3, 8)) * groups * by_batch
    size = tuple(map(int, windows.size))
    cost = prod(windows.results) * prod(size) * features * kernels * data.shape[batch_at]
    must(cost <= (EVALUATIONS if p.size == "large" else 2 * STEPS))
    order = rng.permutation(len(size) + 2)
    kernel_shape = (kernels, features, *size)
    kernel = p.fresh(data.element, tuple(kernel_shape[i] for i in order), features * prod(size), 2)
    turned = data.wide.transpose([*spatial, batch_at, feature_at])
    weights = kernel.wide.transpose(np.argsort(order))
    must(data.element in INTEGERS or (data.is_finite and np.all(turned == np.round(turned))))
    sums = [convolve(windows, turned, weights, groups, by_batch)]
    if data.element not in INTEGERS:
        bounds = [np.abs(each.real) + np.abs(each.imag) for each in (turned, weights)]
        must(convolve(windows, bounds[0], bounds[1], groups, by_batch) <= greatest(data.element))
    # The dimensions of the sums: those of space, the batch, the features.
    out = rng.permutation(data.rank)
    names = [*map(str, range(len(size))), "b", "f"]
    sides = [[""] * data.rank, [(["o", "i", *map(str, range(len(size)))])[i] for i in order], [names[i] for i in out]]
    for name_of, index in zip(names, [*spatial, batch_at, feature_at], strict=True):
        sides[0][index] = name_of
    text = [f"[{', '.join(side)}]" for side in sides]
    places: dict[str, Any] = {"window_strides": windows.stride, "padding": windows.padding}
    places |= {"lhs_dilation": windows.base, "rhs_dilation": windows.dilation}
    places |= {"feature_group_count": groups, "batch_group_count": by_batch}
    places["dimension_numbers"] = f"#stablehlo.conv<{text[0]}x{text[1]}->{text[2]}>"
    return p.emit("convolution", [data, kernel], data.element, sums[0].transpose(out), cost=cost, **places)


def convolve(windows: Windows, data: Array, weights: Array, groups: int, by_batch: int) -> Array:
    """Return the sums of products of windows of `data`, whose last dimensions are the batch and the features."""
    views = windows.views(data, 0)
    rank = len(windows.size)
    parts = []
    count = max(groups, by_batch)
    for i, kernel in enumerate(np.split(weights, count)):
        taken = np.split(views, count, rank if by_batch > 1 else rank + 1)[i]
        window = "xyz"[:rank]
        parts.append(np.einsum(f"...bf{window},of{window}->...bo", taken, kernel))
    return np.concatenate(parts, -1)


# Indices


class Places(NamedTuple):
    """Where a scatter or a gather reads and writes: `numbers` are those of its dimensions."""

    window: list[int]
    indices: Value
    updates: Shape
    starts: Array  # of each index, along the last dimension
    numbers: list[Any]

    def text(self, *names: str) -> str:
        return ", ".join(f"{name} = {each}" for name, each in zip(names, self.numbers, strict=True))

    def parts(self, shape: Shape) -> list[tuple[Any, bool, Any]]:
        """Return for each index: its window moved inside, whether it was, and the part of the updates."""
        greatest_starts = np.array(shape) - self.window
        found = []
        for at in np.ndindex(*self.starts.shape[:-1]):
            low = np.clip(self.starts[at], 0, greatest_starts)
            rest = iter(at)
            part = tuple(slice(None) if i in self.numbers[0] else next(rest) for i in range(len(self.updates)))
            window = tuple(slice(int(i), int(i) + k) for i, k in zip(low, self.window, strict=True))
            found.append((window, bool(np.all(low == self.starts[at])), part))
        return found


def draw_places(p: Program, shape: Shape, disjoint: bool) -> Places:
    """Return indices of windows, of which some are partly or wholly outside."""
    must(prod(shape))
    rng, element = p.rng, pick(p.rng, INDICES)
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
    limit = pick(rng, (30, 200, 600))
    points = int(rng.integers(1, min(limit, max(1, 20_000 // prod(window) // groups)) + 1))
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
    full = np.zeros((*indices.shape[:-1], rank), np.int64)
    for number, i in enumerate(indexed):
        full[..., i] = indices[..., number]
    for number, i in zip(of_batch, batch, strict=True):
        full[..., i] = np.indices(indices.shape[:-1])[number]
    outer, vector = list(indices.shape[:-1]), int(rng.integers(indices.ndim))
    indices = np.moveaxis(indices, -1, vector)
    if len(indexed) == 1 and vector == len(outer):
        indices = indices[..., 0]
    inner = [window[i] for i in range(rank) if i not in batch and i not in dropped]
    places = sorted(map(int, rng.choice(len(outer) + len(inner), len(inner), replace=False)))
    of_batch = [i + (vector <= i) for i in of_batch]
    updates = tuple((inner if i in places else outer).pop(0) for i in range(len(inner) + len(outer)))
    must(prod(updates) <= MOST["usual"])
    numbers = [places, dropped, batch, of_batch, indexed, vector]
    return Places(window, p.argument(element, indices), updates, full, numbers)


def gather(name: str, p: Program) -> Value:
    value = p.any(EVERY, least=1, most=6)
    at = draw_places(p, value.shape, False)
    array = np.zeros(at.updates, value.array.dtype)
    for window, _, part in at.parts(value.shape):
        array[part] = value.array[window].reshape(array[part].shape)
    names = ("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims")
    numbers = f"#stablehlo.gather<{at.text(*names, 'start_index_map', 'index_vector_dim')}>"
    if name == "gather":
        return moved(p, name, [value, at.indices], array, dimension_numbers=numbers, slice_sizes=at.window)
    return moved(p, name, [value, at.indices, p.integers(at.window)], array, dimension_numbers=numbers)


def scattered(at: Places, reducer: str, array: Array, updates: Array) -> Array:
    result = array.copy()
    for window, is_inside, part in at.parts(array.shape):
        if is_inside:
            update, held = updates[part].reshape(at.window), result[window]
            result[window] = update if reducer == "set" else UFUNCS[reducer](held, update)
    return result


def scatter(p: Program) -> list[Value]:
    rng, disjoint = p.rng, pick(p.rng, (False, True))
    count = pick(rng, (1, 1, 1, 2, 3, 4))
    first = p.any(USUAL, least=1, most=6)
    element = first.element
    reducer, at = pick(rng, REDUCERS[element]), draw_places(p, first.shape, disjoint)
    reducers = [pick(rng, (reducer, "set")) if disjoint else reducer for _ in range(count)]

    def values(shape: Shape, known: list[Value]) -> list[Value]:
        if rng.random() < 0.25:
            return [p.constant(element, 1, shape) for _ in range(count)]
        others = [
            factors(p, element, shape, reducer, prod(at.starts.shape[:-1]) + 1)
            for _ in range(int(rng.integers(1, count + 1)) - len(known))
        ]
        return [pick(rng, [*known, *others]) for _ in range(count)]

    operands, updates = values(first.shape, [first]), values(at.updates, [])
    arrays = []
    for kind, one, other in zip(reducers, operands, updates, strict=True):
        arrays.append(scattered(at, kind, one.wide, other.wide))
        if element not in (*INTEGERS, "i1") and kind in ("add", "multiply"):
            must(one.is_finite and other.is_finite)
            must([np.all(each.wide == np.round(each.wide)) for each in (one, other)])
            sizes = [np.abs(each.wide.real) + np.abs(each.wide.imag) for each in (one, other)]
            sizes = [np.maximum(each, kind == "multiply") for each in sizes]
            must(scattered(at, kind, *sizes) <= greatest(element))
    names = ("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims")
    numbers = f"#stablehlo.scatter<{at.text(*names, 'scatter_dims_to_operand_dims', 'index_vector_dim')}>"
    attrs: dict[str, Any] = {
        "scatter_dimension_numbers": numbers,
        "unique_indices": disjoint and pick(rng, (False, True)),
    }
    given, elements = [*operands, at.indices, *updates], [element] * count
    cost = 4 * prod(at.updates) * count + prod(first.shape)
    return p.several("scatter", given, elements, arrays, region=combining(reducers, operands), cost=cost, **attrs)


def torch_index_select(p: Program) -> Value:
    value = p.any(USUAL, least=1, most=6)
    axis = int(p.rng.integers(value.rank))
    numbers = p.rng.integers(0, value.shape[axis], int(p.rng.integers(1, min(value.shape[axis], 100) + 1)))
    array = np.take(value.array, numbers, axis)
    must(array.size <= MOST["usual"])
    return moved(p, "torch_index_select", [value, p.argument("i32", numbers)], array, dim=axis, batch_dims=0)


def sort(p: Program) -> list[Value]:
    rng = p.rng
    value = p.any((*["f32"] * 9, "bf16", *(each for each in REAL if each in UNPACKED)), least=1, most=5)
    shape, size = value.shape, value.array.size
    must(value.is_finite and size <= 12_000)
    axis = len(shape) - 1 if rng.random() < 0.7 else int(rng.integers(len(shape)))
    direction = pick(rng, ("GT", "GT", "GT", "LT"))
    operands = [value]
    for _ in range(pick(rng, (1, 1, 1, 1, 2, 3))):
        other, along = pick(rng, ("i32", "i32", "i32", "i64", "ui32", "f32")), int(rng.integers(len(shape)))
        form = pick(rng, ("iota", "iota", "iota", "transposed", "broadcast", "broadcast", "shifted", "any"))
        if form == "any":
            operands.append(p.like(value, other))
        elif form == "transposed":
            order = rng.permutation(len(shape))
            tilted = iota(p, other, tuple(shape[i] for i in order), int(np.argsort(order)[along]))
            operands.append(transposed(p, tilted, np.argsort(order)))
        elif form == "broadcast":
            operands.append(broadcast(p, iota(p, other, shape[along : along + 1], 0), shape, [along]))
        else:
            made = iota(p, other, shape, along)
            name = pick(rng, ("add", "subtract", "multiply"))
            operands.append(elementwise(p, name, p.constant(other, 3, shape), made) if form == "shifted" else made)
    key = int(rng.integers(len(operands))) if rng.random() < 0.3 else 0
    operands[0], operands[key] = operands[key], operands[0]
    must(operands[key].is_finite)
    ranks = np.unique(operands[key].wide, return_inverse=True)[1].reshape(shape)
    order = np.argsort(ranks if direction == "LT" else -ranks, axis, kind="stable")
    arrays = [np.take_along_axis(each.array, order, axis) for each in operands]
    arguments = ", ".join(f"%{side}{i}: tensor<{each.element}>" for i, each in enumerate(operands) for side in "ab")
    region = comparing(direction, arguments, f"%a{key}, %b{key}", f"tensor<{value.element}>")
    cost = 3 * size * int(np.log2(shape[axis]) + 1)
    elements = [each.element for each in operands]
    is_cut = rng.random() < 0.6
    attrs: dict[str, Any] = {"dimension": axis, "is_stable": True, "cost": cost, "kept": not is_cut}
    results = p.several("sort", operands, elements, arrays, region=region, **attrs)
    if not is_cut:
        return results
    limits = [int(rng.integers(1, n + 1)) if i == axis else n for i, n in enumerate(shape)]
    return [sliced(p, each, [0] * len(shape), limits, [1] * len(shape)) for each in results]


# Ops with regions and calls


def branches(name: str, p: Program) -> Value:
    one = p.any(NUMBERS)
    other = p.like(one)
    options = ["add", "subtract", *(["maximum"] if one.element in REAL else [])]
    names = list(p.rng.permutation(options))[: 2 if name == "if" else 3]
    number = int(p.rng.integers(-1, len(names) + 1))
    by = p.argument("i1", np.array(number > 0)) if name == "if" else p.argument("i32", np.array(number))
    taken = (1 - (number > 0)) if name == "if" else number if 0 <= number < len(names) else -1
    wide = BINARY[names[taken]].function(one.wide, other.wide)
    regions = [
        f"{{\n%c = stablehlo.{each} {one.name}, {other.name} : {one}\nstablehlo.return %c : {one}\n}}" for each in names
    ]
    return p.emit(name, [by], one.element, wide, region=f"({', '.join(regions)})", uses=[one, other])


def called(name: str, p: Program) -> Value:
    one = p.any(NUMBERS)
    other, ufunc, label = p.like(one), pick(p.rng, ("add", "subtract")), f"@f{p.name()[1:]}"
    function = f"func.func private {label}(%a: {one}, %b: {one}) -> {one} {{\n"
    function += f"%c = stablehlo.{ufunc} %a, %b : {one}\nreturn %c : {one}\n}}"
    wide = BINARY[ufunc].function(one.wide, other.wide)
    array = exact(wide, one.element)
    result = Value(p.name(), one.element, one.shape, array, False, cost=array.size)
    to = f'stablehlo.composite "lib.f" {one.name}, {other.name} {{decomposition = {label}}}'
    to = to if name == "composite" else f"func.call {label}({one.name}, {other.name})"
    p.add(Node(f"{result.name} = {to} : ({one}, {one}) -> {one}", [one, other], [result], function))
    return result


def while_(p: Program) -> Value:
    """Update an array by parts of itself, several times."""
    base, times = p.any(USUAL, least=1, most=5), int(p.rng.integers(2, 6))
    seed, array = int(p.rng.integers(1 << 30)), base.array

    def body(number: int, array: Array) -> tuple[Program, Value]:
        inner = Program(np.random.default_rng(seed), count=1000)
        counter = Value("%i", "i32", (), np.array(number, np.int32))
        made = updated(inner, Value("%x", base.element, base.shape, array), counter)
        elementwise(inner, "add", counter, inner.constant("i32", 1))
        return inner, made

    for number in range(times):
        inner, made = body(number, array)
        array = made.array
    start, limit, name = p.constant("i32", 0), p.constant("i32", times), p.name()
    less = comparing("LT", "", f"%i, {limit.name}", "tensor<i32>").split("\n", 2)[2].removesuffix("})")
    lines = [
        f"{name}:2 = stablehlo.while(%i = {start.name}, %x = {base.name}) : tensor<i32>, {base}",
        f"cond {{\n{less}}} do {{",
        *(node.text for node in inner.nodes),
        f"stablehlo.return {inner.nodes[-1].results[0].name}, {made.name} : tensor<i32>, {base}\n}}",
    ]
    cost = times * sum(result.cost for node in inner.nodes for result in node.results)
    result = Value(f"{name}#1", base.element, base.shape, array, base.signs, base.error, cost)
    p.add(Node("\n".join(lines), [start, limit, base], [result]))
    return result


# Ops with results that are rounded


def cholesky(p: Program) -> Value:
    element, n = p.element_of(("f32", "f64")), int(p.rng.integers(1, 9))
    batch = pick(p.rng, ((), (3,), (2, 40)))
    half = np.tril(p.rng.integers(-2, 3, (*batch, n, n)), -1) + np.eye(n) * p.rng.integers(1, 4, (*batch, 1, n))
    value = p.argument(element, half @ half.swapaxes(-1, -2))
    is_lower = bool(p.rng.integers(2))
    wide = half if is_lower else half.swapaxes(-1, -2)
    # The specification leaves the other half open: it is not compared.
    made = p.emit("cholesky", [value], element, wide, error=tolerance(wide, element, 256), lower=is_lower, kept=False)
    shape = made.shape
    rows, columns = iota(p, "i32", shape, len(shape) - 2), iota(p, "i32", shape, len(shape) - 1)
    order = {"comparison_direction": f"#stablehlo<comparison_direction {'GE' if is_lower else 'LE'}>"}
    mask = p.emit("compare", [rows, columns], "i1", np.broadcast_to(wide_mask(n, is_lower), shape), **order)
    zero = p.constant(element, 0, shape)
    return p.emit("select", [mask, made, zero], element, wide, error=made.error)


def wide_mask(n: int, is_lower: bool) -> Array:
    return np.tri(n, dtype=bool) if is_lower else np.tri(n, dtype=bool).T


def triangular_solve(p: Program) -> Value:
    rng, element, n, m = p.rng, p.element_of(("f32", "f64")), int(p.rng.integers(1, 9)), int(p.rng.integers(1, 40))
    batch = pick(rng, ((), (3,)))
    is_lower, is_left, is_turned = (bool(rng.integers(2)) for _ in range(3))
    matrix = np.tril(rng.integers(-1, 2, (*batch, n, n)), -1) + np.eye(n) * rng.choice((1, 2), (*batch, 1, n))
    matrix = matrix if is_lower else matrix.swapaxes(-1, -2)
    solved = rng.integers(-3, 4, (*batch, n, m) if is_left else (*batch, m, n)).astype(float)
    applied = matrix.swapaxes(-1, -2) if is_turned else matrix
    right = applied @ solved if is_left else solved @ applied
    attrs: dict[str, Any] = {"left_side": is_left, "lower": is_lower, "unit_diagonal": False}
    attrs["transpose_a"] = f"#stablehlo<transpose {'TRANSPOSE' if is_turned else 'NO_TRANSPOSE'}>"
    given = [p.argument(element, matrix), p.argument(element, right)]
    return p.emit("triangular_solve", given, element, solved, error=tolerance(solved, element, 2**12), **attrs)


def fft(p: Program) -> Value:
    rng, form = p.rng, pick(p.rng, ("FFT", "IFFT", "RFFT", "IRFFT"))
    shape = [int(rng.integers(1, 40)) for _ in range(rng.integers(1, 4))]
    axes = list(range(int(rng.integers(len(shape))), len(shape)))
    part = pick(rng, ("f32", "f64"))
    length = [shape[i] for i in axes]
    real = rng.integers(-9, 10, shape).astype(float)
    value: Array = real if form == "RFFT" else real + 1j * rng.integers(-9, 10, shape)
    if form == "IRFFT":
        value = np.fft.rfftn(real, axes=axes).round()
        value = value.astype(np.complex64).astype(np.complex128)
    function: Any = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}[form]
    wide = function(value, length, axes)
    element = part if form == "IRFFT" else f"complex<{part}>"
    given = p.argument(part if form == "RFFT" else f"complex<{part}>", value)
    attrs: dict[str, Any] = {"fft_type": f"#stablehlo<fft_type {form}>", "fft_length": length, "cost": wide.size * 40}
    return p.emit("fft", [given], element, wide, error=tolerance(wide, "f32", 256), **attrs)


def batch_norm(name: str, p: Program) -> list[Value]:
    rng, element = p.rng, p.element_of(("f32", "f64"))
    shape = tuple(int(each) for each in rng.integers(1, 12, rng.integers(2, 5)))
    axis = int(rng.integers(len(shape)))
    value = p.argument(element, rng.integers(-9, 10, shape))
    others = [i for i in range(len(shape)) if i != axis]

    def along(array: Any) -> Array:
        return np.expand_dims(np.asarray(array), others)

    def of_features(least: int) -> Value:
        return p.argument(element, rng.integers(least, 5, shape[axis]))

    x, n = value.wide, prod(shape) // shape[axis]
    scale, offset = of_features(-4), of_features(-4)
    mean, variance = of_features(-4), of_features(1)
    arrays = []
    if name == "batch_norm_inference":
        operands = [value, scale, offset, mean, variance]
        arrays = [(x - along(mean.wide)) / np.sqrt(along(variance.wide) + 1) * along(scale.wide) + along(offset.wide)]
    elif name == "batch_norm_training":
        operands = [value, scale, offset]
        center, spread_ = x.mean(tuple(others)), x.var(tuple(others))
        scaled = (x - along(center)) / np.sqrt(along(spread_) + 1) * along(scale.wide)
        arrays = [scaled + along(offset.wide), center, spread_]
    else:
        given = p.argument(element, rng.integers(-4, 5, shape))
        operands, g = [value, scale, mean, variance, given], given.wide
        offset_grad = g.sum(tuple(others))
        centered = x - along(mean.wide)
        total = (g * centered).sum(tuple(others))
        scale_grad = total / np.sqrt(variance.wide + 1)
        inner = n * g - along(offset_grad) - centered * along(total / (variance.wide + 1))
        arrays = [along(scale.wide / np.sqrt(variance.wide + 1)) / n * inner, scale_grad, offset_grad]
    error = max(tolerance(each, element, 256) for each in arrays)
    attrs: dict[str, Any] = {"epsilon": "1.0 : f32", "feature_index": axis}
    return p.several(name, operands, [element] * len(arrays), arrays, error=error, **attrs)


# The table


def named(function: Callable[[str, Program], Any], *names: str) -> dict[str, Step]:
    return {name: partial(function, name) for name in names}


OPS: Final[Mapping[str, Step]] = {
    **named(unary, *UNARY),
    **named(rounded, *ROUNDED),
    **named(binary, *BINARY),
    **named(shift, "shift_left", "shift_right_arithmetic", "shift_right_logical"),
    **named(count_bits, "count_leading_zeros", "popcnt"),
    **named(part, "real", "imag"),
    **named(draw_iota, "iota", "dynamic_iota"),
    **named(draw_broadcast, "broadcast", "broadcast_in_dim", "dynamic_broadcast_in_dim"),
    **named(draw_slice, "slice", "real_dynamic_slice"),
    **named(reshape, "reshape", "dynamic_reshape"),
    **named(pad, "pad", "dynamic_pad"),
    **named(contraction, "dot", "dot_general", "einsum"),
    "convolution": convolution,
    **named(gather, "gather", "dynamic_gather"),
    **named(branches, "if", "case"),
    **named(called, "call", "composite"),
    **named(batch_norm, "batch_norm_grad", "batch_norm_inference", "batch_norm_training"),
    "atan2": atan2,
    "bitcast_convert": bitcast_convert,
    "cholesky": cholesky,
    "clamp": clamp,
    "compare": compare,
    "complex": make_complex,
    "concatenate": concatenate,
    "constant": constant,
    "convert": convert,
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "fft": fft,
    "get_dimension_size": get_dimension_size,
    "get_tuple_element": tuples,
    "is_finite": is_finite,
    "map": map_,
    "reduce": reduce,
    "reduce_precision": reduce_precision,
    "reduce_window": reduce_window,
    "reverse": reverse,
    "scatter": scatter,
    "select": select,
    "select_and_scatter": select_and_scatter,
    "sort": sort,
    "torch_index_select": torch_index_select,
    "transpose": transpose,
    "triangular_solve": triangular_solve,
    "while": while_,
}
_ONE_DEVICE: Final = "works between devices"
_OUTSIDE: Final = "exchanges values with what is outside of the program"
_ASYNCHRONOUS: Final = "starts an op of another thread, which no engine here runs"
_SHAPES: Final = "computes shapes before they are known, which an export has no more"
#: Ops that are not drawn, each with the reason.
UNDRAWN: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "collective_reduce"),
        _ONE_DEVICE,
    ),
    **dict.fromkeys(("cross-replica-sum", "partition_id", "reduce_scatter", "replica_id"), _ONE_DEVICE),
    **dict.fromkeys(("infeed", "outfeed", "recv", "send", "custom_call", "trace"), _OUTSIDE),
    **dict.fromkeys(("async_done", "async_start"), _ASYNCHRONOUS),
    **dict.fromkeys(("compute_reshape_shape", "cstr_reshapable"), _SHAPES),
    **dict.fromkeys(("after_all", "create_token"), "has a token as its result, which is no number"),
    **dict.fromkeys(("uniform_dequantize", "uniform_quantize"), "takes quantized types, which XLA does not"),
    **dict.fromkeys(("func", "return"), "is part of every program"),
    **dict.fromkeys(("exp2", "fma", "log2"), "is in no library that runs programs here"),
    "rng": "draws numbers anew at every run",
    "rng_bit_generator": "has an algorithm for each engine",
    "set_dimension_size": "has a bounded dimension as its result, which the interpreter does not take",
    "tuple": "is drawn with get_tuple_element",
    **dict.fromkeys(("dynamic_conv", "unary_einsum"), "is not taken by XLA"),
}
