"""Tensors of a program that is being rewritten, with the operators of arithmetic.

What is written with them reads as the formula that it stands for, and builds one op of StableHLO for each operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vhlo_tools.portable.site import DIMENSION_BITS, Site

__all__ = ["Tensor", "concatenate", "iota", "loop", "select", "spread", "tensors"]


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor of static shape. Numbers among the operands of its operators are constants of its type.

    Attributes:
        site: Where ops are built.
        value: The value of MLIR.
    """

    site: Site
    value: Any

    @property
    def kind(self) -> Any:
        """The type of MLIR."""
        return self.value.type

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions.

        Raises:
            Unfit: If one is known at run time only.
        """
        return self.site.static(self.kind)

    @property
    def element(self) -> Any:
        """The type of the elements."""
        return self.kind.element_type

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
        """Return the bits of it moved right, with zeros from the left."""
        return self.apply("shift_right_logical", other)

    def apply(self, name: str, *others: Tensor | complex) -> Tensor:
        """Return what the op ``name`` gives, which is of the type of its operands."""
        operands = [self.value, *(self._operand(other) for other in others)]
        return self._made(name, operands, self.kind)

    def compare(self, direction: str, other: Tensor | complex) -> Tensor:
        """Return where it is ``EQ``, ``NE``, ``LT``, ``LE``, ``GT`` or ``GE`` to ``other``."""
        kind = self.site.tensor(self.shape, self.site.integer(1))
        held = self.site.attribute(f"#stablehlo<comparison_direction {direction}>")
        return self._made("compare", [self.value, self._operand(other)], kind, comparison_direction=held)

    def convert(self, element: Any) -> Tensor:
        """Return its numbers as elements of another type."""
        return Tensor(self.site, self.site.convert(self.value, element))

    def bits(self, element: Any) -> Tensor:
        """Return its bits as elements of another type of the same width."""
        kind = self.site.tensor(self.shape, element)
        return self if kind == self.kind else self._made("bitcast_convert", [self.value], kind)

    def part(self, name: str) -> Tensor:
        """Return the ``real`` or ``imag`` parts; those of numbers that are not complex are themselves."""
        if not self.site.is_complex(self.kind):
            return self
        kind = self.site.tensor(self.shape, self.element.element_type)
        return self._made(name, [self.value], kind)

    def conjugate(self) -> Tensor:
        """Return the complex conjugates; those of numbers that are not complex are themselves."""
        if not self.site.is_complex(self.kind):
            return self
        return self._made("complex", [self.part("real").value, self.part("imag").apply("negate").value], self.kind)

    # Shapes

    def reshape(self, *shape: int) -> Tensor:
        """Return it with other sizes."""
        return Tensor(self.site, self.site.reshape(self.value, shape))

    def broadcast(self, shape: Sequence[int], dimensions: Sequence[int] = ()) -> Tensor:
        """Return it in the shape ``shape``, of which its own dimensions are ``dimensions``."""
        kind = self.site.tensor(shape, self.element)
        held = self.site.integers(dimensions)
        return (
            self if kind == self.kind else self._made("broadcast_in_dim", [self.value], kind, broadcast_dimensions=held)
        )

    def slice(self, dimension: int, start: int, limit: int) -> Tensor:
        """Return a part of it along one dimension."""
        starts, limits = [0] * len(self.shape), list(self.shape)
        starts[dimension], limits[dimension] = start, limit
        bounds = {"start_indices": starts, "limit_indices": limits, "strides": [1] * len(limits)}
        kind = self.site.tensor([high - low for low, high in zip(starts, limits, strict=True)], self.element)
        return self._made(
            "slice", [self.value], kind, **{name: self.site.integers(each) for name, each in bounds.items()}
        )

    def entry(self, index: int) -> Tensor:
        """Return an element of a tensor of one dimension as a scalar."""
        return self.slice(0, index, index + 1).reshape()

    def reverse(self, *dimensions: int) -> Tensor:
        """Return it with the order along ``dimensions`` turned round."""
        return self._made("reverse", [self.value], self.kind, dimensions=self.site.integers(dimensions))

    def transpose(self, *order: int) -> Tensor:
        """Return it with its dimensions in another order."""
        kind = self.site.tensor([self.shape[each] for each in order], self.element)
        return self._made("transpose", [self.value], kind, permutation=self.site.integers(order))

    def take(self, starts: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
        """Return the part of it that begins at ``starts``, which are scalars."""
        kind = self.site.tensor(sizes, self.element)
        operands = [self.value, *(start.value for start in starts)]
        return self._made("dynamic_slice", operands, kind, slice_sizes=self.site.integers(sizes))

    def put(self, part: Tensor, starts: Sequence[Tensor]) -> Tensor:
        """Return it with ``part`` in place of what begins at ``starts``, which are scalars."""
        return self._made(
            "dynamic_update_slice", [self.value, part.value, *(start.value for start in starts)], self.kind
        )

    def reduce(self, name: str, dimensions: Sequence[int], initial: complex = 0) -> Tensor:
        """Return what the op ``name`` makes of all elements along ``dimensions``."""
        site = self.site
        scalar = site.tensor((), self.element)
        kept = [size for index, size in enumerate(self.shape) if index not in dimensions]
        (value,) = site.make_with_bodies(
            "stablehlo.reduce",
            [self.value, site.constant(scalar, initial)],
            [site.tensor(kept, self.element)],
            [((scalar, scalar), lambda one, other: [site.make(f"stablehlo.{name}", [one, other], scalar)])],
            dimensions=site.integers(dimensions),
        )
        return Tensor(site, value)

    def _operand(self, other: Tensor | complex) -> Any:
        return other.value if isinstance(other, Tensor) else self.site.constant(self.kind, other)

    def _made(self, name: str, operands: Sequence[Any], kind: Any, **attributes: Any) -> Tensor:
        return Tensor(self.site, self.site.make(f"stablehlo.{name}", operands, kind, **attributes))


def tensors(site: Site) -> list[Tensor]:
    """Return the operands of the op of a site."""
    return [Tensor(site, value) for value in site.op.operands]


def select(where: Tensor, one: Tensor | complex, other: Tensor | complex) -> Tensor:
    """Return ``one`` where it is true, and ``other`` elsewhere; one of them is a tensor."""
    typed = one if isinstance(one, Tensor) else other
    assert isinstance(typed, Tensor)
    site = where.site
    values = [each.value if isinstance(each, Tensor) else site.constant(typed.kind, each) for each in (one, other)]
    return Tensor(site, site.make("stablehlo.select", [where.value, *values], typed.kind))


def spread(value: Any, kind: Any, along: Sequence[int], sizes: Sequence[Any], site: Site) -> Any:
    """Return a tensor broadcast to a type, which may be dynamic.

    Args:
        value: The tensor.
        kind: The type.
        along: For each dimension of the tensor, that of the result.
        sizes: The sizes of the result as numbers, if it is dynamic.
        site: Where it is built.
    """
    name, operands = "stablehlo.broadcast_in_dim", [value]
    if None in site.shape(kind):
        name, operands = "stablehlo.dynamic_broadcast_in_dim", [value, site.joined(sizes, site.integer(DIMENSION_BITS))]
    return site.make(name, operands, kind, broadcast_dimensions=site.integers(along))


def iota(site: Site, shape: Sequence[int], element: Any, dimension: int = 0) -> Tensor:
    """Return the indices along ``dimension``."""
    kind = site.tensor(shape, element)
    return Tensor(site, site.make("stablehlo.iota", [], kind, iota_dimension=site.number(dimension)))


def concatenate(parts: Sequence[Tensor], dimension: int) -> Tensor:
    """Return ``parts`` one after the other along ``dimension``."""
    site, shape = parts[0].site, list(parts[0].shape)
    shape[dimension] = sum(part.shape[dimension] for part in parts)
    kind = site.tensor(shape, parts[0].element)
    values = [part.value for part in parts]
    return Tensor(site, site.make("stablehlo.concatenate", values, kind, dimension=site.number(dimension)))


def loop(site: Site, count: int, initial: Tensor, step: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Return ``initial`` after ``step`` was taken ``count`` times.

    Args:
        site: Where ops are built.
        count: How often.
        initial: The value before the first step.
        step: Builds the next value of the number of the step, a scalar ``i64``, and the value so far.
    """
    of_count = site.tensor((), site.integer(64))
    kinds = [of_count, initial.kind]

    def more(index: Any, _: Any) -> list[Any]:
        return [Tensor(site, index).compare("LT", count).value]

    def next_one(index: Any, value: Any) -> list[Any]:
        number = Tensor(site, index)
        return [(number + 1).value, step(number, Tensor(site, value)).value]

    start = [site.constant(of_count, 0), initial.value]
    return Tensor(site, site.make_with_bodies("stablehlo.while", start, kinds, [(kinds, more), (kinds, next_one)])[1])
