"""Compare what engines compute of all values of narrow types, and special values of wide ones, with exact results.

One program has all ops of a type of elements: of each value, or of each pair of values. `element_values.toml` says what
StableHLO leaves open, and lists what ends otherwise than right; anything else makes the exit code 1.

Expected are, in exact arithmetic of this module: results of integers, comparisons and bits; results of floats, rounded
once to nearest, ties to even. Those of `add`, `subtract`, `multiply`, `divide` and `sqrt` are rounded from 64 bits of
precision, which changes no result of up to 31 bits; for f64 they are numpy's. Transcendental functions may be some
units in the last place away (`ULP`), complex numbers 8 epsilons of their size. A NaN is equal to any other.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.element_types import EVERY_TYPE
from support.raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.api import EngineChoice
from vhlo_tools.bindings import get_provider

Array = np.ndarray[Any, Any]
Judge = Callable[..., Any]

FILE: Final = Path(__file__).with_suffix(".toml")
ENGINES: Final[tuple[EngineChoice, ...]] = ("reference", "xla")
PACKAGES: Final = {"reference": "jaxlib", "xla": "jaxlib", "iree": "iree-base-compiler"}
VALUES: Final = 256
WIDE: Final = np.longdouble
#: The formats that `reduce_precision` is tried with: bits of exponents and mantissas.
FORMATS: Final = ((8, 23), (5, 10), (8, 7), (5, 2), (4, 3), (3, 4), (3, 1), (2, 1), (1, 0))

# Elements as numbers


@dataclass(frozen=True)
class Element:
    """A type of elements, its values as bits, and how numbers become values of it."""

    name: str

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = np.dtype(EVERY_TYPE[self.name])
        return dtype

    @property
    def kind(self) -> str:
        return (
            {"i": "signed", "u": "unsigned", "c": "complex"}.get(self.name[0], "float") if self.name != "i1" else "i1"
        )

    @property
    def bits(self) -> int:
        digits = self.name.lstrip("uifbcomplex<").rstrip(">")
        return int(digits.partition("E")[0])

    @property
    def least(self) -> int:
        return -(2 ** (self.bits - 1)) if self.kind == "signed" else 0

    @property
    def greatest(self) -> int:
        return int(2 ** (self.bits - (self.kind == "signed"))) - 1

    def values(self) -> Array:
        """All values of up to 8 bits, and otherwise special ones."""
        if self.kind == "i1":
            return np.array([False, True])
        if self.kind == "complex":
            parts = [0.0, 0.5, -0.75, 1.0, -1.0, 2.0, -3.0, 0.1, -1e-3, 7.25, -10.0, 1e-5, 1e3, -0.3, 5.5, -2.5]
            return np.array([complex(one, other) for one in parts for other in parts], self.dtype)
        if self.bits <= 8:
            if self.kind == "float":
                return np.arange(2**self.bits, dtype=np.uint8).view(self.dtype)
            return np.arange(self.least, self.greatest + 1).astype(self.dtype)
        codes = self._special_integers() if self.kind != "float" else self._special_floats()
        drawn = np.random.default_rng(self.bits).integers(0, 2**self.bits, VALUES, dtype=np.uint64, endpoint=False)
        unsigned = f"u{self.bits // 8}"
        every = dict.fromkeys([code % 2**self.bits for code in codes] + [int(each) for each in drawn])
        return np.array(list(every)[:VALUES], unsigned).view(self.dtype)

    def _special_integers(self) -> list[int]:
        step = max(1, self.bits // 16)
        powers = [2**power for power in (*range(0, self.bits, step), self.bits - 2, self.bits - 1)]
        # Near the middle between two floats of so many bits of mantissa.
        powers += [
            2**power + 2 ** (power - bits - 1)
            for bits in (0, 1, 7, 10, 23)
            for power in (self.bits - 2, bits + 3)
            if bits + 3 < self.bits
        ]
        return [sign * power + by for power in powers for by in (0, -1, 1) for sign in (1, -1)]

    def _special_floats(self) -> list[int]:
        info = {"bf16": (8, 7), "f16": (5, 10), "f32": (8, 23), "f64": (11, 52)}[self.name]
        exponent, mantissa = info
        bias, one = 2 ** (exponent - 1) - 1, 1 << mantissa
        infinity = (2**exponent - 1) << mantissa
        powers = [
            (bias + power) * one
            for power in (0, 1, -1, 2, -2, 3, 4, 6, 7, 8, mantissa, mantissa + 1, bias // 2, -bias // 2)
        ]
        halves = [
            (bias + 1) * one + one // 4,
            (bias + 1) * one + one // 2,
            bias * one + one // 2,
            (bias + 2) * one + one // 8,
        ]
        halves += [bias * one + (one >> bits + 1) for bits in (1, 2, 3, 4, 7, 10, 23) if bits < mantissa]
        ends = [
            0,
            1,
            2,
            one // 2,
            one - 1,
            one,
            one + 1,
            infinity - 1,
            infinity - 2,
            infinity,
            infinity + one // 2,
            infinity + one // 2 + 1,
        ]
        magnitudes = [*ends, *(each + by for each in (*powers, *halves) for by in (0, 1, -1))]
        return [each + sign for each in magnitudes for sign in (0, 1 << (self.bits - 1))]

    def numbers(self, values: Array) -> Array:
        """Exactly: integers of Python, or floats of extended precision."""
        if self.kind == "complex":
            return values.astype(np.clongdouble)
        return values.astype(WIDE) if self.kind == "float" else np.array([int(each) for each in values], object)

    def rounded(self, numbers: Any) -> Array:
        """Integers wrap; floats are rounded to nearest, ties to even."""
        if self.kind == "complex":
            return np.asarray(numbers).astype(self.dtype)
        if self.kind == "i1":
            return np.asarray(numbers).astype(bool)
        if self.kind != "float":
            wrapped = [(int(each) - self.least) % 2**self.bits + self.least for each in numbers]
            return np.array(wrapped, f"{'i' if self.kind == 'signed' else 'u'}8").astype(self.dtype)
        wide: Array = np.asarray(numbers).astype(WIDE)
        return self._nearest(wide) if self.bits < 32 else np.asarray(wide.astype(self.dtype))

    @np.errstate(invalid="ignore")
    def _nearest(self, numbers: Array) -> Array:
        unsigned = np.uint8 if self.bits <= 8 else np.uint16
        is_scale = self.name == "f8E8M0FNU"
        codes = np.arange(2 ** (self.bits - (not is_scale)), dtype=unsigned)
        table = codes.view(self.dtype).astype(WIDE)
        table = table[np.isfinite(table)]
        grid = np.append(table, 2 * table[-1] - table[-2] if not is_scale else 2 * table[-1])
        middles = (grid[1:] + grid[:-1]) / 2
        sizes = np.abs(numbers)
        below, above = np.searchsorted(middles, sizes, "left"), np.searchsorted(middles, sizes, "right")
        # The significand of a power of two is odd where it has one bit.
        nearest = np.where((below != above) & ((below % 2 == 0) & (not is_scale)), below, above)
        of_scale_or_signed = np.isnan(numbers) | (is_scale & (numbers <= 0))
        special = self._special()
        overflow = nearest == len(table)
        result = np.where(overflow, special["overflow"], np.minimum(nearest, len(table) - 1)).astype(np.int64)
        negative = np.signbit(numbers) & ~(("UZ" in self.name) & (result == 0))
        result = np.where(negative & (result != special["nan"]), result | (1 << (self.bits - 1)), result)
        result = np.where(of_scale_or_signed, special["nan"], result)
        return result.astype(unsigned).view(self.dtype)

    @np.errstate(invalid="ignore")
    def _special(self) -> dict[str, int]:
        unsigned = np.uint8 if self.bits <= 8 else np.uint16
        every = np.arange(2**self.bits, dtype=unsigned).view(self.dtype).astype(np.float64)
        nans, infinities = np.flatnonzero(np.isnan(every)), np.flatnonzero(every == np.inf)
        if not len(nans):  # what has no infinity saturates, and a NaN becomes minus zero
            return {"nan": 1 << (self.bits - 1), "overflow": int(np.argmax(every))}
        return {"nan": int(nans[0]), "overflow": int((infinities if len(infinities) else nans)[0])}

    def is_subnormal(self, values: Array) -> Array:
        """Below the normal numbers of the type or of f32, in which narrow ones are computed."""
        if self.kind != "float":
            return np.zeros(values.shape, bool)
        least = {"f64": 2.0**-1022, "f16": 2.0**-14}.get(self.name, 2.0**-126)
        with np.errstate(invalid="ignore"):
            sizes = np.abs(values.astype(WIDE))
        return (sizes <= least) & (sizes > 0)

    def order(self, values: Array) -> Array:
        """By integers of which neighbours differ by one; every NaN is the same."""
        if self.kind != "float":
            return np.array([int(each) for each in values], object)
        unsigned = f"u{max(1, self.bits // 8)}"
        codes = values.view(unsigned).astype(object)
        sign = 0 if self.name == "f8E8M0FNU" else 1 << (self.bits - 1)
        ordered = np.array([~(int(code) & ~sign) if int(code) & sign else int(code) for code in codes], object)
        return np.where(np.isnan(values), 2 ** (self.bits + 2), ordered)


ELEMENTS: Final = {name: Element(name) for name in EVERY_TYPE}

# Ops


@dataclass(frozen=True)
class Op:
    """An op on values of one type, and what is expected of it."""

    name: str  # the op, and what distinguishes it: a direction, a format
    text: str  # in generic form, with ``{T}`` and ``{R}`` for types and ``%a``, ``%b``, ``%c`` for operands
    judge: Judge  # of numbers to numbers, or to values with ``of_values``
    operands: int = 1
    result: str | None = None  # the type of elements of the result, if it is another
    of_values: bool = False  # whether the judge gets elements and the type
    ulp: int = 0


def _division(one: int, other: int) -> int:
    return (abs(one) // abs(other)) * (1 if (one < 0) == (other < 0) else -1) if other else 0


def _each(function: Callable[..., Any]) -> Judge:
    judge: Judge = np.frompyfunc(function, function.__code__.co_argcount, 1)
    return judge


def _round_away(numbers: Array) -> Array:
    whole = np.trunc(numbers)
    return np.where(np.abs(numbers - whole) >= 0.5, whole + np.copysign(1, numbers), np.copysign(whole, numbers))


def _power(one: int, other: int) -> int:
    if other < 0:
        return 0
    return pow(one, other, 2**64)


def _maximum(one: Array, other: Array) -> Array:
    return np.where(np.isnan(one) | np.isnan(other), np.nan, np.maximum(one, other))


def _minimum(one: Array, other: Array) -> Array:
    return np.where(np.isnan(one) | np.isnan(other), np.nan, np.minimum(one, other))


def _logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


INTEGER_BINARY: Final[dict[str, Judge]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": _each(_division),
    "remainder": _each(lambda a, b: a - b * _division(a, b)),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": _each(_power),
    "and": _each(lambda a, b: a & b),
    "or": _each(lambda a, b: a | b),
    "xor": _each(lambda a, b: a ^ b),
}
FLOAT_BINARY: Final[dict[str, Judge]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "remainder": np.fmod,
    "maximum": _maximum,
    "minimum": _minimum,
    "power": lambda a, b: np.where(
        np.abs(b) >= 2.0**62, np.power(a.astype(np.float64), b.astype(np.float64)), np.power(a, b)
    ),
    "atan2": np.arctan2,
}
FLOAT_UNARY: Final[dict[str, Judge]] = {
    "abs": np.abs,
    "negate": np.negative,
    "sign": lambda x: np.where(x == 0, x, np.sign(x)),
    "ceil": np.ceil,
    "floor": np.floor,
    "round_nearest_afz": _round_away,
    "round_nearest_even": np.rint,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "log_plus_one": np.log1p,
    "logistic": _logistic,
    "sine": np.sin,
    "cosine": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
}
#: Where numpy takes differences of numbers near one.
COMPLEX: Final[dict[str, Judge]] = {
    "exponential_minus_one": lambda z: (
        np.expm1(z.real) * np.cos(z.imag) - 2 * np.sin(z.imag / 2) ** 2 + 1j * np.exp(z.real) * np.sin(z.imag)
    ),
    "log_plus_one": lambda z: (
        np.where(np.abs(z) < 0.5, np.log1p(z.real * (2 + z.real) + z.imag**2) / 2, np.log(np.hypot(1 + z.real, z.imag)))
        + 1j * np.arctan2(z.imag, 1 + z.real)
    ),
}
COMPLEX_UNARY: Final = (
    "negate",
    "sqrt",
    "exponential",
    "log",
    "sine",
    "cosine",
    "tanh",
    "exponential_minus_one",
    "log_plus_one",
)
COMPLEX_BINARY: Final = ("add", "subtract", "multiply", "divide")
COMPARISONS: Final = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal
}  # fmt: skip
#: Units in the last place that approximations may be away: of narrow types, of f32, of f64.
ULP: Final[dict[str, tuple[int, int, int]]] = dict.fromkeys(
    (
        *("rsqrt", "cbrt", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "sine", "cosine"),
        *("tan", "tanh", "power", "atan2"),
    ),
    (1, 4, 4),
)


def _unary(name: str) -> str:
    return f'"stablehlo.{name}"(%a) : ({{T}}) -> {{R}}'


def _binary(name: str) -> str:
    return f'"stablehlo.{name}"(%a, %b) : ({{T}}, {{T}}) -> {{R}}'


def ops_of(element: Element) -> Iterator[Op]:
    name, kind = element.name, element.kind
    if kind == "float":
        at = 2 if name == "f64" else 1 if name == "f32" else 0
        judges = FLOAT_UNARY, FLOAT_BINARY
        if name == "f64":
            native = {each: _native(function) for each, function in FLOAT_BINARY.items() if each in COMPLEX_BINARY}
            judges = {**FLOAT_UNARY, "sqrt": _native(np.sqrt)}, {**FLOAT_BINARY, **native}
        for op, judge in judges[0].items():
            yield Op(op, _unary(op), judge, ulp=ULP.get(op, (0, 0, 0))[at])
        for op, judge in judges[1].items():
            yield Op(op, _binary(op), judge, 2, ulp=ULP.get(op, (0, 0, 0))[at])
        yield Op("is_finite", _unary("is_finite"), np.isfinite, result="i1")
        for exponent, mantissa in FORMATS:
            bits = f"exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32"
            text = f'"stablehlo.reduce_precision"(%a) <{{{bits}}}> : ({{T}}) -> {{R}}'
            yield Op(f"reduce_precision e{exponent}m{mantissa}", text, _reduced(exponent, mantissa))
    elif kind == "complex":
        part = name[8:-1]
        for op in COMPLEX_UNARY:
            yield Op(op, _unary(op), COMPLEX.get(op, FLOAT_UNARY[op]), ulp=8)
        for op in COMPLEX_BINARY:
            yield Op(op, _binary(op), FLOAT_BINARY[op], 2, ulp=8)
        for op, judge in {"maximum": np.maximum, "minimum": np.minimum}.items():
            yield Op(op, _binary(op), judge, 2)
        yield Op("real", _unary("real"), np.real, result=part)
        yield Op("imag", _unary("imag"), np.imag, result=part)
        yield Op("abs", _unary("abs"), np.abs, result=part, ulp=2)
    else:
        for op, judge in INTEGER_BINARY.items():
            yield Op(op, _binary(op), judge, 2)
        mask = 2**element.bits - 1
        yield Op("not", _unary("not"), _each(lambda a: mask ^ (a & mask)))
        yield Op("negate", _unary("negate"), lambda a: -a)
        yield Op("abs", _unary("abs"), np.abs)
        yield Op("sign", _unary("sign"), _each(lambda a: (a > 0) - (a < 0)))
        yield Op("popcnt", _unary("popcnt"), _each(lambda a: (a & mask).bit_count()))
        yield Op(
            "count_leading_zeros",
            _unary("count_leading_zeros"),
            _each(lambda a: element.bits - (a & mask).bit_length()),
        )

        def inside(number: int) -> bool:
            return 0 <= number < element.bits

        yield Op("shift_left", _binary("shift_left"), _each(lambda a, b: a << b if inside(b) else 0), 2)
        yield Op(
            "shift_right_logical",
            _binary("shift_right_logical"),
            _each(lambda a, b: (a & mask) >> b if inside(b) else 0),
            2,
        )

        def signed(code: int) -> int:
            return code - mask - 1 if code > mask // 2 else code

        yield Op(
            "shift_right_arithmetic",
            _binary("shift_right_arithmetic"),
            _each(lambda a, b: signed(a) >> b if inside(b) else 0),
            2,
        )
    types = {"float": ("FLOAT", "TOTALORDER"), "signed": ("SIGNED",), "complex": ("FLOAT",)}.get(kind, ("UNSIGNED",))
    for of in types:
        for direction, judge in COMPARISONS.items():
            text = f"stablehlo.compare {direction}, %a, %b, {of} : ({{T}}, {{T}}) -> {{R}}"
            total = (
                (lambda a, b, judge=judge: judge(_total(element, a), _total(element, b)))
                if of == "TOTALORDER"
                else judge
            )
            yield Op(f"compare {direction} {of}", text, total, 2, "i1", of == "TOTALORDER")
    yield Op("clamp", '"stablehlo.clamp"(%b, %a, %c) : ({T}, {T}, {T}) -> {R}', _clamp, 3)
    yield Op(
        "select",
        "%p = stablehlo.compare NE, %a, %b : ({T}, {T}) -> {P}\n{N} = stablehlo.select %p, %a, %c : {P}, {R}",
        lambda a, b, c: np.where(a != b, a, c),
        3,
    )
    for other in ELEMENTS.values():
        if kind != "complex" and other.kind != "complex":
            text = '"stablehlo.convert"(%a) : ({T}) -> {R}'
            yield Op(f"convert to {other.name}", text, _converted(element, other), result=other.name)
        if "complex" not in (kind, other.kind) and other.bits == element.bits and "i1" not in (kind, other.kind):
            text = '"stablehlo.bitcast_convert"(%a) : ({T}) -> {R}'
            yield Op(
                f"bitcast_convert to {other.name}", text, _bitcast(element, other), result=other.name, of_values=True
            )
    yield Op(
        "constant", '"stablehlo.constant"() <{value = dense<{VALUES}> : {R}}> : () -> {R}', lambda a: a, of_values=True
    )


#: Where reductions start: what changes nothing, if the type has it.
NEUTRAL: Final = {"add": 0, "multiply": 1, "and": -1, "or": 0, "xor": 0}


def ops_of_tensors(element: Element) -> Iterator[Op]:
    """Reductions of two elements, products of a column and a row, sorts, counts, quantized tensors."""
    binary = {"float": FLOAT_BINARY, "complex": {}}.get(element.kind, INTEGER_BINARY)
    product: Judge = np.multiply
    if element.name == "f64":
        product = _native(np.multiply)
        binary = {**FLOAT_BINARY, "add": _native(np.add), "multiply": product}
    pair = """%p_0 = "stablehlo.reshape"(%a) : ({T}) -> tensor<1x{K}x{E}>
%p_1 = "stablehlo.reshape"(%b) : ({T}) -> tensor<1x{K}x{E}>
%p_2 = stablehlo.concatenate %p_0, %p_1, dim = 0 : (tensor<1x{K}x{E}>, tensor<1x{K}x{E}>) -> tensor<2x{K}x{E}>
"""
    scalars = "(tensor<{E}>, tensor<{E}>) -> tensor<{E}>"
    for op in ("add", "multiply", "maximum", "minimum", "and", "or", "xor"):
        if op not in binary or (element.name == "f8E8M0FNU" and op == "add"):
            continue
        if op in NEUTRAL:
            start = element.rounded(np.array([NEUTRAL[op]]))
        else:
            values = element.values()
            values = values[~np.isnan(values.astype(np.float64))]
            order = element.order(values)
            start = values[[int(np.argmin(order) if op == "maximum" else np.argmax(order))]]
        text = f"""{pair}%p_3 = stablehlo.constant dense<{_literal(element, start)}> : tensor<1x{{E}}>
%p_4 = "stablehlo.reshape"(%p_3) : (tensor<1x{{E}}>) -> tensor<{{E}}>
{{N}} = "stablehlo.reduce"(%p_2, %p_4) <{{dimensions = array<i64: 0>}}> ({{
^bb0(%x: tensor<{{E}}>, %y: tensor<{{E}}>):
%z = "stablehlo.{op}"(%x, %y) : {scalars}
"stablehlo.return"(%z) : (tensor<{{E}}>) -> ()
}}) : (tensor<2x{{K}}x{{E}}>, tensor<{{E}}>) -> {{R}}"""
        yield Op(f"reduce {op}", text, binary[op], 2)
    count = len(element.values())
    dimensions = "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]"
    yield Op(
        "dot_general",
        f"""%p_0 = "stablehlo.reshape"(%u) : (tensor<{count}x{{E}}>) -> tensor<{count}x1x{{E}}>
%p_1 = "stablehlo.reshape"(%u) : (tensor<{count}x{{E}}>) -> tensor<1x{count}x{{E}}>
%p_2 = "stablehlo.dot_general"(%p_0, %p_1) <{{dot_dimension_numbers = #stablehlo.dot<{dimensions}>}}>
  : (tensor<{count}x1x{{E}}>, tensor<1x{count}x{{E}}>) -> tensor<{count}x{count}x{{E}}>
{{N}} = "stablehlo.reshape"(%p_2) : (tensor<{count}x{count}x{{E}}>) -> {{R}}""",
        product,
        2,
        ulp=8 if element.kind == "complex" else 0,
    )
    if element.kind == "complex":
        return
    of = {"float": "TOTALORDER", "signed": "SIGNED"}.get(element.kind, "UNSIGNED")
    yield Op(
        "sort",
        f"""{{N}} = "stablehlo.sort"(%a) <{{dimension = 0 : i64, is_stable = true}}> ({{
^bb0(%x: tensor<{{E}}>, %y: tensor<{{E}}>):
%z = stablehlo.compare LT, %x, %y, {of} : (tensor<{{E}}>, tensor<{{E}}>) -> tensor<i1>
"stablehlo.return"(%z) : (tensor<i1>) -> ()
}}) : ({{T}}) -> {{R}}""",
        lambda values: values[
            np.argsort(_total(element, values) if element.kind == "float" else element.order(values))
        ],
        of_values=True,
    )
    yield Op("iota", '"stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> {R}', lambda a: np.arange(len(a)))
    if element.kind == "float" and element.bits > 8:
        for storage, least, greatest in (
            ("i4", -8, 7),
            ("u4", 0, 15),
            ("i8", -128, 127),
            ("u8", 0, 255),
            ("i16", -(2**15), 2**15 - 1),
        ):
            quantized = f"tensor<{{K}}x!quant.uniform<{storage}:{{E}}, 0.5:3>>"
            text = f"""%p_0 = "stablehlo.uniform_quantize"(%a) : ({{T}}) -> {quantized}
{{N}} = "stablehlo.uniform_dequantize"(%p_0) : ({quantized}) -> {{R}}"""
            yield Op(f"quantize {storage}", text, _quantized(element, least, greatest))
        if element.bits >= 32:
            text = '"stablehlo.complex"(%a, %b) : ({T}, {T}) -> {R}'
            yield Op("complex", text, lambda a, b: a + 1j * b, 2, f"complex<{element.name}>")


def _quantized(element: Element, least: int, greatest: int) -> Judge:
    """The specification adds the zero point to the quotient in the type of the operand, which rounds the sum."""

    def judge(numbers: Array) -> Any:
        shifted = element.numbers(element.rounded(numbers / 0.5 + 3))
        return (np.rint(np.clip(shifted, least, greatest)) - 3) * 0.5

    return judge


def _native(function: Any) -> Judge:
    return lambda *numbers: function(*(each.astype(np.float64) for each in numbers))


def _clamp(a: Array, b: Array, c: Array) -> Any:
    if a.dtype == object:
        return np.minimum(np.maximum(a, b), c)
    return _minimum(_maximum(a, b), c)


def _total(element: Element, values: Array) -> Array:
    codes = values.view(f"u{max(1, element.bits // 8)}").astype(object)
    sign = 0 if element.name == "f8E8M0FNU" else 1 << (element.bits - 1)
    # The NaN of a type without a negative zero has its bits, and is negative.
    nan = sign if "UZ" in element.name else -1
    return np.array(
        [-2 * sign if code == nan else ~(code & ~sign) if code & sign else code for code in map(int, codes)], object
    )


def _converted(element: Element, other: Element) -> Judge:
    def judge(numbers: Array) -> Any:
        if other.kind == "i1":
            return numbers != 0
        if element.kind == "float" and other.kind in ("signed", "unsigned"):
            inside = np.isfinite(numbers) & (np.trunc(numbers) >= other.least) & (np.trunc(numbers) <= other.greatest)
            return [int(each) if ok else 0 for each, ok in zip(numbers, inside, strict=True)]
        return numbers

    return judge


def _bitcast(element: Element, other: Element) -> Judge:
    def judge(values: Array) -> Any:
        if element.bits % 8 == 0:
            return values.view(other.dtype)
        mask = 2**element.bits - 1
        codes = (
            values.view(np.uint8) & mask if element.kind == "float" else values.astype(np.int8).view(np.uint8) & mask
        )
        if other.kind == "float":
            return codes.view(other.dtype)
        return other.rounded(codes)

    return judge


def _reduced(exponent: int, mantissa: int) -> Judge:
    """In the format, which has no subnormal numbers."""
    bias = 2 ** (exponent - 1) - 1

    def judge(numbers: Array) -> Array:
        fraction, power = np.frexp(numbers)
        fine, shift = np.frexp(np.rint(np.ldexp(fraction, mantissa + 1)))
        power += shift - mantissa - 1
        fine = np.ldexp(fine, power)
        fine = np.where(power - 1 > bias, np.copysign(np.inf, numbers), fine)
        fine = np.where(power - 1 < 1 - bias, np.copysign(0, numbers), fine)
        return np.where(np.isfinite(numbers) & (numbers != 0), fine, numbers)

    return judge


# Programs


@cache
def _library() -> tuple[RawLibrary, Any]:
    raw = RawLibrary(get_provider())
    context = raw.context()
    context.attach_diagnostic_handler(lambda _: True)
    return raw, context


def parsed(text: str) -> bool:
    """Whether the verifier takes a program."""
    raw, context = _library()
    try:
        raw.ir.Module.parse(text, context=context)
    except raw.ir.MLIRError:
        return False
    return True


@dataclass(frozen=True)
class Case:
    """An op of a type, its inputs and what is expected."""

    op: Op
    element: Element

    @property
    def result(self) -> Element:
        return ELEMENTS[self.op.result or self.element.name]

    def lines(self, number: int, inputs: Sequence[Array]) -> tuple[str, str]:
        count = len(inputs[self.op.operands > 1])
        kind, result, predicate = (f"tensor<{count}x{each}>" for each in (self.element.name, self.result.name, "i1"))
        text = self.op.text if "{N}" in self.op.text else "{N} = " + self.op.text
        words = {"{N}": f"%r{number}", "%p": f"%p{number}", "{T}": kind, "{R}": result, "{P}": predicate}
        for old, new in {**words, "{K}": str(count), "{E}": self.element.name}.items():
            text = text.replace(old, new)
        if "{VALUES}" in text:
            text = text.replace("{VALUES}", _literal(self.element, inputs[0]))
        return (text.replace("%a", "%u") if self.op.operands == 1 else text), result

    def expected(self, inputs: Sequence[Array]) -> Array:
        values = inputs[:1] if self.op.operands == 1 else inputs[1 : 1 + self.op.operands]
        with np.errstate(all="ignore"):
            if self.op.of_values:
                return np.asarray(self.op.judge(*values)).astype(self.result.dtype, copy=False)
            return self.result.rounded(self.op.judge(*(self.element.numbers(each) for each in values)))


def _literal(element: Element, values: Array) -> str:
    if element.kind in ("float", "complex"):
        return f'"0x{values.tobytes().hex()}"'
    return f"[{', '.join(str(int(each)) if element.bits > 1 else str(bool(each)).lower() for each in values)}]"


def inputs_of(element: Element) -> list[Array]:
    """The values, and the two or three operands of all pairs."""
    values = element.values()
    one, other = (each.ravel() for each in np.meshgrid(values, values, indexing="ij"))
    return [values, one, other, np.roll(one, len(one) // 3 + 1)]


def program_of(cases: Sequence[Case], inputs: Sequence[Array]) -> str:
    element = cases[0].element.name
    lines, kinds = zip(*(case.lines(number, inputs) for number, case in enumerate(cases)), strict=True)
    arguments = ", ".join(f"%{name}: tensor<{len(each)}x{element}>" for name, each in zip("uabc", inputs, strict=True))
    returned = ", ".join(f"%r{number}" for number in range(len(cases)))
    head = f"func.func @main({arguments}) -> ({', '.join(kinds)}) {{\n"
    return head + "\n".join(lines) + f"\nreturn {returned} : {', '.join(kinds)}\n}}\n"


def run(cases: Sequence[Case], inputs: Sequence[Array], engine: EngineChoice) -> Iterator[tuple[Case, Array | str]]:
    """All in one program, or where an engine does not run that, in halves."""
    try:
        results = vt.run(program_of(cases, inputs), list(inputs), engine=engine)
    except vt.VhloToolsError as error:
        if len(cases) == 1:
            yield cases[0], str(error)
            return
        for half in (cases[: len(cases) // 2], cases[len(cases) // 2 :]):
            yield from run(half, inputs, engine)
        return
    yield from zip(cases, results, strict=True)


# Outcomes


@dataclass(frozen=True)
class Outcome:
    """How an op of a type ended on an engine."""

    op: str
    element: str
    engine: str
    outcome: str  # ``right``, ``refused`` or ``wrong``
    values: int  # how many results there are
    known: str = ""  # why it is not right, if that is listed
    wrong: int = 0  # how many values
    open: Mapping[str, int] = field(default_factory=dict)  # how many others are not as expected, by the reason listed
    ulp: int = 0  # how far the farthest is, of those that are right
    reason: str = ""  # the first wrong value, or the error

    @property
    def is_unexpected(self) -> bool:
        return self.outcome != "right" and not self.known


@dataclass(frozen=True)
class Rule:
    """What StableHLO leaves open, where ``values`` names which, or what is known to end otherwise than right."""

    reason: str
    ops: Sequence[str]
    elements: Sequence[str] = ("*",)
    engines: Sequence[str] = ("*",)
    values: str = ""
    outcome: str = ""

    def fits(self, case: Case, engine: str) -> bool:
        asked = ((case.op.name, self.ops), (case.element.name, self.elements), (engine, self.engines))
        return all(any(fnmatchcase(word, pattern) for pattern in patterns) for word, patterns in asked)


def read_rules() -> list[Rule]:
    return [Rule(**each) for each in tomllib.loads(FILE.read_text())["rule"]]


def _is_below_normal(case: Case, values: Sequence[Array], expected: Array) -> Any:
    return np.logical_or.reduce(
        [case.element.is_subnormal(each) for each in values] + [case.result.is_subnormal(expected)]
    )


def _is_outside(case: Case, values: Sequence[Array], _: Array) -> Array:
    numbers, to = case.element.numbers(values[0]), case.result
    if case.element.kind == "float":
        with np.errstate(invalid="ignore"):
            numbers = np.trunc(numbers)
        return ~(np.isfinite(numbers) & (numbers >= to.least) & (numbers <= to.greatest))
    return np.array([not to.least <= each <= to.greatest for each in numbers])


#: Which values a rule is about, of a case, its operands and what is expected.
VALUES_OF_RULES: Final[dict[str, Callable[[Case, Sequence[Array], Array], Array]]] = {
    "zero divisor": lambda _, values, __: values[1] == 0,
    "overflow": lambda case, values, _: (values[0] == case.element.least) & (case.element.numbers(values[1]) == -1),
    "shift of all bits": lambda case, values, _: np.array(
        [not 0 <= each < case.element.bits for each in case.element.numbers(values[1])]
    ),
    "negative exponent": lambda case, values, _: case.element.numbers(values[1]) < 0,
    "outside the type": _is_outside,
    "zero": lambda case, _, expected: expected == 0,
    "subnormal": _is_below_normal,
    "below the format": lambda case, values, _: (
        np.abs(case.element.numbers(values[0])) < 2.0 ** (2 - 2 ** (int(case.op.name[18]) - 1))
    ),
    "next to zero": lambda _, __, expected: np.abs(expected.astype(np.float64)) <= 2.0**-14,
    "least": lambda _, __, expected: expected.astype(np.float64) == 2.0**-127,
    "nan": lambda _, values, __: np.logical_or.reduce([np.isnan(each.astype(np.float64)) for each in values]),
}


@np.errstate(invalid="ignore")
def judged(case: Case, found: Array | str, inputs: Sequence[Array], engine: str, rules: Sequence[Rule]) -> Outcome:
    expected = case.expected(inputs)
    names = case.op.name, case.element.name, engine
    known = {each.outcome: each.reason for each in reversed(rules) if each.fits(case, engine)}
    if isinstance(found, str):
        return Outcome(*names, "refused", len(expected), known.get("refused", ""), reason=found)
    values = inputs[:1] if case.op.operands == 1 else inputs[1 : 1 + case.op.operands]
    if case.result.kind == "complex":
        with np.errstate(all="ignore"):
            size = np.maximum(np.abs(expected), np.finfo(expected.dtype).tiny)
            apart = np.nan_to_num(np.abs(found - expected) / size / np.finfo(expected.dtype).eps, nan=1e9, posinf=1e9)
        far = np.where(np.isfinite(expected), np.ceil(apart), 0).astype(np.int64)
    else:
        far = np.abs(case.result.order(np.asarray(found)) - case.result.order(expected))
        if case.op.ulp and case.result.kind == "float":
            # An approximation of zero may have either sign.
            far = np.where((found == 0) & (expected == 0), 0, far)
    is_wrong = far > case.op.ulp
    left_open = {}
    for rule in rules:
        if rule.values and is_wrong.any() and rule.fits(case, engine):
            is_open = is_wrong & VALUES_OF_RULES[rule.values](case, values, expected)
            if is_open.any():
                left_open[rule.reason] = int(is_open.sum())
            is_wrong &= ~is_open
    farthest = int(max(far[far <= case.op.ulp], default=0))
    counts: dict[str, Any] = {"wrong": int(is_wrong.sum()), "open": left_open, "ulp": farthest}
    if not is_wrong.any():
        return Outcome(*names, "right", len(expected), **counts)
    at = int(np.argmax(is_wrong))
    operands = ", ".join(str(each[at]) for each in values)
    said = f"of {operands}: {found[at]}, expected {expected[at]}"
    return Outcome(*names, "wrong", len(expected), known.get("wrong", ""), **counts, reason=said)


@cache
def cases_of(element: Element) -> list[Case]:
    """Of the ops that the verifier takes for the type."""
    inputs = inputs_of(element)
    return [
        case
        for case in (Case(op, element) for op in (*ops_of(element), *ops_of_tensors(element)))
        if parsed(program_of([case], inputs))
    ]


def outcomes(
    elements: Sequence[str], engines: Sequence[EngineChoice], rules: Sequence[Rule], ops: Sequence[str] = ("*",)
) -> Iterator[Outcome]:
    for name in elements:
        inputs = inputs_of(ELEMENTS[name])
        cases = [case for case in cases_of(ELEMENTS[name]) if any(fnmatchcase(case.op.name, each) for each in ops)]
        for engine in engines:
            for case, found in run(cases, inputs, engine):
                yield judged(case, found, inputs, engine, rules)


def main() -> int:
    """Run all; 1 if an outcome is unexpected."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--elements", default=",".join(ELEMENTS), help="of which types (default: all)")
    parser.add_argument("--ops", default="*", help="which ops; patterns, separated by commas")
    parser.add_argument("--engines", default=",".join(ENGINES), help="of which engines (default: %(default)s)")
    parser.add_argument("--record", type=Path, help="where numbers and causes of these engines are kept as JSON")
    options = parser.parse_args()
    engines: tuple[EngineChoice, ...] = tuple(options.engines.split(","))
    rules = read_rules()
    found: list[Outcome] = []
    for element in options.elements.split(","):
        for engine in engines:
            since = time.monotonic()
            ended = list(outcomes([element], [engine], rules, options.ops.split(",")))
            counted = Counter(each.outcome for each in ended)
            print(f"{element} on {engine}: {dict(counted)}, {time.monotonic() - since:.1f} s", flush=True)
            found += ended
    unexpected = [each for each in found if each.is_unexpected]
    for each in unexpected:
        print(
            f"unexpected: {each.op} of {each.element} on {each.engine} {each.outcome} {each.wrong}: {each.reason[:300]}"
        )
    if options.record:
        kept = json.loads(options.record.read_text()) if options.record.exists() else {}
        options.record.write_text(json.dumps(merged(kept, record(found, engines)), indent=1) + "\n")
    print(f"{len(found)} outcomes; {len(unexpected)} are unexpected")
    return int(bool(unexpected))


def merged(kept: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with what another one has of other engines."""
    if not kept:
        return dict(new)
    ulp = {op: max(each.get("ulp", {}).get(op, 0) for each in (kept, new)) for op in {**kept["ulp"], **new["ulp"]}}
    return {
        **{name: {**kept[name], **new[name]} for name in ("with", "engines")},
        "ulp": dict(sorted(ulp.items())),
        **{
            name: [each for each in kept[name] if each["engine"] not in new["with"]] + new[name]
            for name in ("open", "causes")
        },
    }


def record(found: Sequence[Outcome], engines: Sequence[str]) -> dict[str, Any]:
    """Return how many ops ended how on each engine, by type, and the causes, with how many ops and values each has."""
    causes = Counter((each.engine, each.outcome, each.known) for each in found if each.outcome != "right")
    left_open: Counter[tuple[str, str]] = Counter()
    for each in found:
        for reason, count in each.open.items():
            left_open[each.engine, reason] += count
    return {
        "with": {each: f"{PACKAGES[each]} {version(PACKAGES[each])}" for each in engines},
        "engines": {
            engine: {
                "ops": len(of_engine := [each for each in found if each.engine == engine]),
                "values": sum(each.values for each in of_engine if each.outcome != "refused"),
                **{word: sum(each.outcome == word for each in of_engine) for word in ("right", "refused", "wrong")},
            }
            for engine in engines
        },
        "ulp": {
            op: max(each.ulp for each in found if each.op == op)
            for op in sorted({each.op for each in found if each.ulp and "complex" not in each.element})
        },
        "open": [
            {"engine": engine, "reason": reason, "values": count}
            for (engine, reason), count in sorted(left_open.items())
        ],
        "causes": [
            {"engine": engine, "outcome": outcome, "reason": reason, "ops": count}
            for (engine, outcome, reason), count in sorted(causes.items())
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
