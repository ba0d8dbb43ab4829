"""Validation of the sizes of constants: MLIR reads values of any size, and crashes when it prints or folds them.

Source: ``DenseElementsAttr::isValidRawBuffer`` in ``mlir/lib/IR/BuiltinAttributes.cpp`` of llvm/llvm-project, which the
reader of VHLO does not call. Elements take whole bytes, except booleans, which are packed unless all are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Final, NamedTuple

from vhlo_tools.bytecode import File, Value, bits_of, encode_chunks
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.files import Chunk

_CONSTANT: Final = "tensor_v1"
_COMPLEX: Final = "complex_v1"

#: Shorter values are passed on: to leave them out would cost more than to read them.
_LONG: Final = 1 << 12


class _Sizes(NamedTuple):
    """The sizes that the values of a constant may have, in bytes."""

    splat: int  # one value for all elements
    whole: int  # a value for each element


def refuse_constants_of_other_sizes(file: File) -> None:
    """Types of unknown size, and damaged entries, are left to the library, which reports them."""
    found: MalformedArtifactError | None = None
    with suppress(MalformedArtifactError):
        for at, _, values, expected in _constants(file):
            if expected is not None and len(values) not in expected:
                found = file.attributes[at].malformed(
                    f"a constant has {len(values)} bytes of values, but its type has {expected.whole}, or "
                    f"{expected.splat} if all elements are equal"
                )
                break
    if found is not None:
        raise found


def without_values(file: File) -> list[Chunk] | None:
    """Edits ``file``, so that each long constant is one zero; ``None`` if it has none.

    The reader of VHLO copies values of any size and looks at none of them, so what it does with a file can be tried
    without them, if sizes were checked (:func:`refuse_constants_of_other_sizes`).
    """
    with suppress(MalformedArtifactError):
        for at, value, values, expected in _constants(file):
            if expected is not None and len(values) > max(_LONG, expected.splat):
                fields = (value.field("type"), bytes(expected.splat))
                file.attributes[at] = file.encode("attribute", replace(value, fields=fields))
        return encode_chunks(file) if file.attributes.is_edited else None
    return None


def _constants(file: File) -> Iterator[tuple[int, Value, Chunk, _Sizes | None]]:
    """Each with its index among the attributes, its values, and their sizes if these are known."""
    sizes: dict[int, _Sizes | None] = {}
    for index in file.called("attribute", "vhlo", _CONSTANT):
        value = file.decode("attribute", index)
        if value is None:
            continue
        type_ = value.field("type")
        if type_ not in sizes:
            sizes[type_] = _sizes(file, file.decode("type", type_))
        yield index, value, value.field("data"), sizes[type_]


def _sizes(file: File, type_: Value | None) -> _Sizes | None:
    if type_ is None or type_.name != _CONSTANT:
        return None
    shape, index, parts = type_.field("shape"), type_.field("element"), 1
    element = file.decode("type", index)
    if element is not None and element.name == _COMPLEX:
        index, parts = element.field("element"), 2
        element = file.decode("type", index)
    if element is None or element.dialect != "vhlo" or element.encoding.fields or any(size < 0 for size in shape):
        return None
    bits, count = bits_of(file, index), prod(shape)
    if bits == 1 and parts == 1:
        return _Sizes(1, (count + 7) // 8)
    size = parts * ((bits + 7) // 8)
    return _Sizes(size, size * count)
