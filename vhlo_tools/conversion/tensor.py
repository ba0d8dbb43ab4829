"""Tensors as values with operators, which build ops, and quantized tensors among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from vhlo_tools.conversion.rewriter import DIMENSION_BITS, Rewriter
from vhlo_tools.records import dataclass

# Dimension numbers of gathers and scatters, read from and written as text of MLIR

_PART: Final = re.compile(r"\b(\w+) = (\[[^\]]*\]|\d+)")
_INTEGER: Final = re.compile(r"\d+")


def dimension_numbers(attribute: Any) -> dict[str, list[int]]:
    """The dimension of index vectors, ``index_vector_dim``, is a list of one."""
    found = {name: [int(each) for each in _INTEGER.findall(listed)] for name, listed in _PART.findall(str(attribute))}
    return {"index_vector_dim": [0]} | found


def dimension_numbers_text(kind: str, numbers: Mapping[str, Sequence[int]]) -> str:
    parts = [f"{name} = {list(each)}" for name, each in numbers.items() if name != "index_vector_dim"]
    (vector,) = numbers["index_vector_dim"]
    return f"#stablehlo.{kind}<{', '.join([*parts, f'index_vector_dim = {vector}'])}>"


# Tensors with arithmetic operators, for building replacement ops
#
# An expression of tensors reads like its formula, and builds one op of StableHLO for each operator.


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """Numbers among the operands of its operators are constants of its type and sizes."""

    rewriter: Rewriter
    value: Any

    @property
    def type(self) -> Any:
        return self.value.type

    @property
    def shape(self) -> tuple[int, ...]:
        """:class:`MatchFailure` if a size is dynamic."""
        return self.rewriter.static(self.type)

    @property
    def element(self) -> Any:
        return self.type.element_type

    # Elementwise

    def __add__(self, other: Tensor | complex) -> Tensor:
        return self.apply("add", other)

    def __sub__(self, other: Tensor | complex) -> Tensor:
        return self.apply("subtract", other)

    def __mul__(self, other: Tensor | complex) -> Tensor:
        return self.apply("multiply", other)

    def __truediv__(self, other: Tensor | complex) -> Tensor:
        return self.apply("divide", other)

    def __mod__(self, other: Tensor | complex) -> Tensor:
        return self.apply("remainder", other)

    def __and__(self, other: Tensor | int) -> Tensor:
        return self.apply("and", other)

    def __or__(self, other: Tensor | int) -> Tensor:
        return self.apply("or", other)

    def __xor__(self, other: Tensor | int) -> Tensor:
        return self.apply("xor", other)

    def __lshift__(self, other: Tensor | int) -> Tensor:
        return self.apply("shift_left", other)

    def __rshift__(self, other: Tensor | int) -> Tensor:
        """Zeros come from the left."""
        return self.apply("shift_right_logical", other)

    def apply(self, name: str, *others: Tensor | complex) -> Tensor:
        """The result has the type of the operands."""
        operands = [self.value, *(self._operand(other) for other in others)]
        return self._made(name, operands, self.type)

    def compare(self, direction: str, other: Tensor | complex) -> Tensor:
        return Tensor(self.rewriter, self.rewriter.compare(direction, self.value, self._operand(other)))

    def convert(self, element: Any) -> Tensor:
        return Tensor(self.rewriter, self.rewriter.convert(self.value, element))

    def bits(self, element: Any) -> Tensor:
        """The same bits, as elements of another type of the same width."""
        type_ = self.rewriter.tensor(self.rewriter.shape(self.type), element, self.type.encoding)
        return self if type_ == self.type else self._made("bitcast_convert", [self.value], type_)

    def part(self, name: str) -> Tensor:
        """``name`` is ``real``, ``imag`` or ``abs``; a tensor that is not complex is returned itself."""
        if not self.rewriter.is_complex(self.type):
            return self
        type_ = self.rewriter.tensor(self.rewriter.shape(self.type), self.element.element_type)
        return self._made(name, [self.value], type_)

    def conjugate(self) -> Tensor:
        if not self.rewriter.is_complex(self.type):
            return self
        return self._made("complex", [self.part("real").value, self.part("imag").apply("negate").value], self.type)

    # Shapes

    def reshape(self, *shape: int) -> Tensor:
        return Tensor(self.rewriter, self.rewriter.reshape(self.value, shape))

    def broadcast(self, shape: Sequence[int], dimensions: Sequence[int] = ()) -> Tensor:
        """Its own dimensions become ``dimensions``."""
        type_ = self.rewriter.tensor(shape, self.element)
        held = self.rewriter.integers(dimensions)
        if type_ == self.type:
            return self
        return self._made("broadcast_in_dim", [self.value], type_, broadcast_dimensions=held)

    def slice(self, dimension: int, start: int, limit: int) -> Tensor:
        starts, limits = [0] * len(self.shape), list(self.shape)
        starts[dimension], limits[dimension] = start, limit
        return Tensor(self.rewriter, self.rewriter.slice(self.value, starts, limits))

    def entry(self, index: int) -> Tensor:
        return self.slice(0, index, index + 1).reshape()

    def reverse(self, *dimensions: int) -> Tensor:
        return self._made("reverse", [self.value], self.type, dimensions=self.rewriter.integers(dimensions))

    def transpose(self, *order: int) -> Tensor:
        type_ = self.rewriter.tensor([self.shape[each] for each in order], self.element)
        return self._made("transpose", [self.value], type_, permutation=self.rewriter.integers(order))

    def take(self, starts: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
        """``starts`` are scalars."""
        return Tensor(self.rewriter, self.rewriter.dynamic_slice(self.value, [each.value for each in starts], sizes))

    def put(self, part: Tensor, starts: Sequence[Tensor]) -> Tensor:
        """``starts`` are scalars."""
        operands = [self.value, part.value, *(start.value for start in starts)]
        return self._made("dynamic_update_slice", operands, self.type)

    def reduce(self, name: str, dimensions: Sequence[int], initial: complex = 0) -> Tensor:
        rewriter = self.rewriter
        scalar = rewriter.tensor((), self.element)
        kept = [size for index, size in enumerate(self.shape) if index not in dimensions]
        (value,) = rewriter.make_several(
            "stablehlo.reduce",
            [self.value, rewriter.constant(scalar, initial)],
            [rewriter.tensor(kept, self.element)],
            [((scalar, scalar), lambda one, other: [rewriter.make(f"stablehlo.{name}", [one, other], scalar)])],
            dimensions=rewriter.integers(dimensions),
        )
        return Tensor(rewriter, value)

    def _operand(self, other: Tensor | complex) -> Any:
        return other.value if isinstance(other, Tensor) else constant_like(self.rewriter, self.value, other)

    def _made(self, name: str, operands: Sequence[Any], type_: Any, **attributes: Any) -> Tensor:
        return Tensor(self.rewriter, self.rewriter.make(f"stablehlo.{name}", operands, type_, **attributes))


def constant_like(rewriter: Rewriter, value: Any, number: complex) -> Any:
    """In the type and sizes of ``value``, which may be dynamic."""
    shape = rewriter.shape(value.type)
    if None not in shape:
        return rewriter.constant(value.type, number)
    scalar = rewriter.constant(rewriter.tensor((), value.type.element_type), number)
    sizes = [rewriter.dimension(value, index) for index in range(len(shape))]
    return spread(scalar, value.type, (), sizes, rewriter)


def tensors(rewriter: Rewriter) -> list[Tensor]:
    return [Tensor(rewriter, value) for value in rewriter.op.operands]


def select(where: Tensor, one: Tensor | complex, other: Tensor | complex) -> Tensor:
    """At least one of the values must be a tensor."""
    typed = one if isinstance(one, Tensor) else other
    assert isinstance(typed, Tensor)
    rewriter = where.rewriter
    values = [
        each.value if isinstance(each, Tensor) else constant_like(rewriter, typed.value, each) for each in (one, other)
    ]
    return Tensor(rewriter, rewriter.make("stablehlo.select", [where.value, *values], typed.type))


def spread(value: Any, type_: Any, along: Sequence[int], sizes: Sequence[Any], rewriter: Rewriter) -> Any:
    """``along`` has the result's dimension for each of ``value``; ``sizes`` are scalars, for a dynamic ``type_``."""
    held = rewriter.integers(along)
    if None not in rewriter.shape(type_):
        return rewriter.make("stablehlo.broadcast_in_dim", [value], type_, broadcast_dimensions=held)
    operands = [value, rewriter.joined(sizes, rewriter.integer(DIMENSION_BITS))]
    return rewriter.make("stablehlo.dynamic_broadcast_in_dim", operands, type_, broadcast_dimensions=held)


def iota(rewriter: Rewriter, shape: Sequence[int], element: Any, dimension: int = 0) -> Tensor:
    type_ = rewriter.tensor(shape, element)
    return Tensor(rewriter, rewriter.make("stablehlo.iota", [], type_, iota_dimension=rewriter.number(dimension)))


def concatenate(parts: Sequence[Tensor], dimension: int) -> Tensor:
    rewriter, shape = parts[0].rewriter, list(parts[0].shape)
    shape[dimension] = sum(part.shape[dimension] for part in parts)
    type_ = rewriter.tensor(shape, parts[0].element)
    return Tensor(rewriter, rewriter.concatenate([part.value for part in parts], type_, dimension))


def loop(rewriter: Rewriter, count: int, initial: Tensor, step: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """``step`` gets the number of the step, a scalar ``i64``, and the current value."""
    of_count = rewriter.tensor((), rewriter.integer(64))
    types = [of_count, initial.type]

    def more(index: Any, _: Any) -> list[Any]:
        return [Tensor(rewriter, index).compare("LT", count).value]

    def next_one(index: Any, value: Any) -> list[Any]:
        number = Tensor(rewriter, index)
        return [(number + 1).value, step(number, Tensor(rewriter, value)).value]

    start = [rewriter.constant(of_count, 0), initial.value]
    _, value = rewriter.make_several("stablehlo.while", start, types, [(types, more), (types, next_one)])
    return Tensor(rewriter, value)


# Quantized element types, and arithmetic on the integers in which quantized tensors are stored
#
# Source: quantized types, and ``dequantize`` and ``quantize`` in ``docs/spec.md`` of openxla/stablehlo.

_TYPE: Final = re.compile(
    r"!quant\.uniform<(?P<sign>[iu])(?P<bits>\d+)(?:<(?P<low>-?\d+):(?P<high>-?\d+)>)?:(?P<expressed>\w+)"
    r"(?::(?P<axis>\d+))?, \{?(?P<steps>[^{}]*)\}?>"
)


@dataclass(frozen=True, slots=True)
class Quantization:
    storage: str  # type of the integers
    low: int  # least integer
    high: int  # greatest integer
    expressed: str  # type of the numbers that the integers represent
    axis: int | None  # each slice along it has its own scale; None for one scale
    scales: tuple[float, ...]  # difference of the numbers that two successive integers represent
    zeros: tuple[int, ...]  # integers that represent zero


@cache
def quantization_of(text: str) -> Quantization | None:
    """``None`` if the type is not quantized, or of another form."""
    match = _TYPE.fullmatch(text)
    if match is None:
        return None
    bits, signed = int(match["bits"]), match["sign"] == "i"
    steps = [step.partition(":") for step in match["steps"].split(",")]
    return Quantization(
        storage=f"{'' if signed else 'u'}i{bits}",
        low=int(match["low"] or (-(2 ** (bits - 1)) if signed else 0)),
        high=int(match["high"] or 2 ** (bits - signed) - 1),
        expressed=match["expressed"],
        axis=int(match["axis"]) if match["axis"] else None,
        scales=tuple(float(scale) for scale, _, _ in steps),
        zeros=tuple(int(zero or 0) for _, _, zero in steps),
    )


def dequantized(value: Tensor, quantization: Quantization) -> Tensor:
    rewriter, expressed = value.rewriter, value.rewriter.type(quantization.expressed)
    # The difference to the zero point may need one bit more than the storage.
    distance = value.convert(rewriter.integer(64)) - _spread(
        value, quantization, quantization.zeros, rewriter.integer(64)
    )
    return distance.convert(expressed) * _spread(value, quantization, quantization.scales, expressed)


def quantized(value: Tensor, quantization: Quantization) -> Tensor:
    rewriter, element = value.rewriter, value.element
    steps = value / _spread(value, quantization, quantization.scales, element)
    moved = steps + _spread(value, quantization, quantization.zeros, element)
    least, greatest = (
        rewriter.constant(rewriter.tensor((), element), each) for each in (quantization.low, quantization.high)
    )
    within = Tensor(rewriter, rewriter.make("stablehlo.clamp", [least, moved.value, greatest], moved.type))
    return within.apply("round_nearest_even").convert(rewriter.type(quantization.storage))


def _spread(value: Tensor, quantization: Quantization, numbers: Sequence[float], element: Any) -> Tensor:
    """One number for all elements, or one for each slice, in the shape of ``value``, which may be dynamic."""
    rewriter, axis, shape = value.rewriter, quantization.axis, value.rewriter.shape(value.type)
    if axis is None:
        steps, along = rewriter.constant(rewriter.tensor((), element), numbers[0]), []
    else:
        parts = [rewriter.constant(rewriter.tensor((1,), element), number) for number in numbers]
        steps, along = rewriter.concatenate(parts, rewriter.tensor((len(numbers),), element)), [axis]
    sizes = [rewriter.dimension(value.value, index) for index in range(len(shape))] if None in shape else []
    return Tensor(rewriter, spread(steps, rewriter.tensor(shape, element), along, sizes, rewriter))


def stored_constant(rewriter: Rewriter, type_: Any) -> Any:
    """The type of the constant's attribute has no sign, which ``type_`` may have."""
    value = rewriter.op.attributes["value"]
    constant = rewriter.make("stablehlo.constant", [], value.type, value=value)
    return constant if value.type == type_ else rewriter.make("stablehlo.bitcast_convert", [constant], type_)
