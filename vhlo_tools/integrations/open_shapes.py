"""Resolve input shapes that a model leaves open, which a compiler requires."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vhlo_tools.errors import InvalidInputError

#: The sizes of an input, ``None`` for an open dimension; ``None`` if the rank is unknown.
OpenShape = Sequence[int | None] | None


def fixed_shapes(
    inputs: Mapping[str, OpenShape], batch_size: int | None, shapes: Mapping[str, Sequence[int]], name: str
) -> list[tuple[int, ...]]:
    """Complete the declared shapes; ``batch_size`` is the first dimension of inputs that leave it open."""
    if unknown := set(shapes).difference(inputs):
        raise InvalidInputError(
            f"{name} has no input {', '.join(sorted(unknown))}: its inputs are {', '.join(inputs) or 'none'}"
        )
    return [_fixed(sizes, each, batch_size, shapes.get(each)) for each, sizes in inputs.items()]


def _fixed(sizes: OpenShape, name: str, batch_size: int | None, wanted: Sequence[int] | None) -> tuple[int, ...]:
    shown = (
        "any shape"
        if sizes is None
        else f"the shape ({', '.join('?' if each is None else str(each) for each in sizes)})"
    )
    if wanted is not None:
        fits = sizes is None or len(sizes) == len(wanted)
        if not fits or any(each not in (None, size) for each, size in zip(sizes or (), wanted, strict=False)):
            raise InvalidInputError(f"the input {name} has {shown}, which {tuple(wanted)} does not match")
        return tuple(wanted)
    known = list(sizes or ())
    if known and known[0] is None:
        known[0] = batch_size
    fixed = tuple(each for each in known if each is not None)
    if sizes is not None and len(fixed) == len(sizes):
        return fixed
    only_first = sizes is not None and None not in sizes[1:]
    remedy = "specify batch_size (--batch-size)" if only_first else f"specify its shape, as shapes={{{name!r}: ...}}"
    raise InvalidInputError(
        f"the input {name} has {shown}, but a program is compiled for a shape without unknown sizes: {remedy}"
    )
