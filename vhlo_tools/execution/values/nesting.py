"""Flatten nested values to leaves, and nest leaves, by the shapes of a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vhlo_tools.aliasing import Shape, ShapeIndex, Tuple, format_index
from vhlo_tools.errors import InvalidInputError


def leaf_values(value: Any, shape: Shape, which: str, index: ShapeIndex = ()) -> Iterator[tuple[ShapeIndex, Any]]:
    """``index`` is the position of ``value`` in the parameter."""
    if not isinstance(shape, Tuple):
        yield index, value
        return
    place = f"{which} at {format_index(index)}" if index else which
    if not isinstance(value, tuple | list):
        raise InvalidInputError(f"{place} is a {type(value).__qualname__}, but the program requires a tuple: {shape}")
    if len(value) != len(shape.elements):
        raise InvalidInputError(
            f"{place} has {len(value)} elements, but the program requires {len(shape.elements)}: {shape}"
        )
    for number, (each, element) in enumerate(zip(value, shape.elements, strict=True)):
        yield from leaf_values(each, element, which, (*index, number))


def nested_values(leaves: Iterator[Any], shapes: Sequence[Shape]) -> tuple[Any, ...]:
    return tuple(
        nested_values(leaves, shape.elements) if isinstance(shape, Tuple) else next(leaves) for shape in shapes
    )
