"""Shapes as in XLA: arrays, tuples of shapes, and tokens.

Source: ``xla/shape.h`` and ``xla/shape_util.h`` in openxla/xla; the names of element types are those of HLO text
(``xla/primitive_util.cc``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field
from itertools import zip_longest
from typing import Final

from vhlo_tools.errors import AliasError
from vhlo_tools.limits import excess_of_shape
from vhlo_tools.records import dataclass

#: The position of a part of a shape: the element numbers from the outermost tuple inwards.
ShapeIndex = tuple[int, ...]

#: The HLO names of element types and their widths in bits, by their names in StableHLO.
_ELEMENTS: Final[dict[str, tuple[str, int]]] = {
    "i1": ("pred", 8),
    **{f"i{bits}": (f"s{bits}", bits) for bits in (2, 4, 8, 16, 32, 64)},
    **{f"ui{bits}": (f"u{bits}", bits) for bits in (2, 4, 8, 16, 32, 64)},
    "index": ("s64", 64),
    "f16": ("f16", 16),
    "bf16": ("bf16", 16),
    "f32": ("f32", 32),
    "f64": ("f64", 64),
    "f4E2M1FN": ("f4e2m1fn", 4),
    # A byte each, whereas elements of four bits and fewer are packed.
    "f6E2M3FN": ("f6e2m3fn", 8),
    "f6E3M2FN": ("f6e3m2fn", 8),
    "f8E3M4": ("f8e3m4", 8),
    "f8E4M3": ("f8e4m3", 8),
    "f8E4M3B11FNUZ": ("f8e4m3b11fnuz", 8),
    "f8E4M3FN": ("f8e4m3fn", 8),
    "f8E4M3FNUZ": ("f8e4m3fnuz", 8),
    "f8E5M2": ("f8e5m2", 8),
    "f8E5M2FNUZ": ("f8e5m2fnuz", 8),
    "f8E8M0FNU": ("f8e8m0fnu", 8),
    "complex<f32>": ("c64", 64),
    "complex<f64>": ("c128", 128),
}
#: The widths of elements in memory, by the names in HLO.
ELEMENT_BITS: Final = dict(_ELEMENTS.values())


@dataclass(frozen=True, slots=True)
class Array:
    """An array.

    Attributes:
        element: The type of its elements, in HLO syntax.
        sizes: Its sizes; ``None`` for a dynamic one.
        bounds: For each size, the bound if it is dynamic and has one, else ``None``; may be shorter.
        padded: The size in bytes by a layout that has tiles; ``None`` without.
    """

    element: str
    sizes: tuple[int | None, ...]
    bounds: tuple[int | None, ...] = ()
    padded: int | None = field(default=None, compare=False)

    @property
    def bytes(self) -> int | None:
        """Its size in bytes; ``None`` if that is unknown.

        Tiles of a layout count whole. Elements of four bits and fewer are packed, and XLA allocates the bound of a
        dynamic size that has one.
        """
        if self.padded is not None:
            return self.padded
        bits = ELEMENT_BITS.get(self.element)
        known = [size for size in self.sizes if size is not None]
        if len(known) != len(self.sizes):
            bounded = [bound if size is None else size for size, bound in self._bounded()]
            known = [size for size in bounded if size is not None]
        if bits is None or len(known) != len(self.sizes):
            return None
        return (math.prod(known) * bits + 7) // 8

    def _bounded(self) -> Iterator[tuple[int | None, int | None]]:
        yield from zip_longest(self.sizes, self.bounds[: len(self.sizes)])

    def __str__(self) -> str:
        texts = ("?" if bound is None else f"<={bound}" for _, bound in self._bounded())
        sizes = (text if size is None else str(size) for text, size in zip(texts, self.sizes, strict=True))
        return f"{self.element}[{','.join(sizes)}]"

    @classmethod
    def of_hlo(
        cls,
        element: str,
        sizes: tuple[int | None, ...],
        bounds: tuple[int | None, ...] = (),
        padded: int | None = None,
    ) -> Array:
        """Return an array with elements of a type in HLO syntax; ``bounds`` without any bound become empty.

        Raises:
            AliasError: If it has more dimensions or elements than any framework allows.
        """
        bounded = [bound if size is None else size for size, bound in zip_longest(sizes, bounds[: len(sizes)])]
        if (excess := excess_of_shape(bounded)) is not None:
            raise AliasError(f"an array of {element} has {excess}")
        return cls(element, sizes, bounds if any(bound is not None for bound in bounds) else (), padded)

    @classmethod
    def of_stablehlo(cls, element: str, sizes: tuple[int | None, ...], bounds: tuple[int | None, ...] = ()) -> Array:
        """Return an array with elements of a type in StableHLO syntax; otherwise like :meth:`of_hlo`."""
        return cls.of_hlo(_ELEMENTS[element][0] if element in _ELEMENTS else element, sizes, bounds)


@dataclass(frozen=True, slots=True)
class Tuple:
    """A tuple of shapes.

    Attributes:
        elements: The shapes.
    """

    elements: tuple[Shape, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.elements))})"


@dataclass(frozen=True, slots=True)
class Opaque:
    """A shape without elements: a token, or a type that is unknown here.

    Attributes:
        name: Its name in HLO.
    """

    name: str = "token[]"

    def __str__(self) -> str:
        return self.name


Shape = Array | Tuple | Opaque


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters and the result of a program.

    Attributes:
        parameters: The shapes of its parameters.
        result: The shape of its result: several results are a tuple.
        results: The number of results of the MLIR function with this signature; ``None`` if there is no such function.
    """

    parameters: tuple[Shape, ...]
    result: Shape
    results: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parameters))}) -> {self.result}"

    @classmethod
    def of_results(cls, parameters: tuple[Shape, ...], results: tuple[Shape, ...]) -> Signature:
        """Return the XLA signature of a function: a single result is the result itself, others form a tuple."""
        return cls(parameters, results[0] if len(results) == 1 else Tuple(results), len(results))


def subshape(shape: Shape, index: ShapeIndex) -> Shape | None:
    for number in index:
        if not isinstance(shape, Tuple) or not 0 <= number < len(shape.elements):
            return None
        shape = shape.elements[number]
    return shape


def leaves(shape: Shape, index: ShapeIndex = ()) -> Iterator[tuple[ShapeIndex, Shape]]:
    """Yield the shapes that are not tuples, with their indices."""
    if not isinstance(shape, Tuple):
        yield index, shape
        return
    for number, element in enumerate(shape.elements):
        yield from leaves(element, (*index, number))


def format_index(index: ShapeIndex) -> str:
    """Return an index in HLO syntax: ``{}``, ``{1}``, ``{0,2}``."""
    return f"{{{','.join(map(str, index))}}}"
