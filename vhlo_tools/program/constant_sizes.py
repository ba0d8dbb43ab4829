"""Validation of the sizes of constants: MLIR reads values of any size, and crashes when it prints or folds them.

Source: ``DenseElementsAttr::isValidRawBuffer`` in ``mlir/lib/IR/BuiltinAttributes.cpp`` of llvm/llvm-project, which the
reader of VHLO does not call. Elements take whole bytes, except booleans, which are packed unless all are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from math import prod
from typing import Final, NamedTuple

from vhlo_tools.bytecode import File, Value, bits_of, decode_entry
from vhlo_tools.dialect import encodings_of
from vhlo_tools.errors import MalformedArtifactError

__all__ = ["refuse_constants_of_other_sizes"]

_CONSTANT: Final = "tensor_v1"
_COMPLEX: Final = "complex_v1"


class _Sizes(NamedTuple):
    """The sizes that the values of a constant may have, in bytes.

    Attributes:
        splat: That of one value for all elements.
        whole: That of a value for each.
    """

    splat: int
    whole: int


def refuse_constants_of_other_sizes(file: File) -> None:
    """Raise if a constant of VHLO has values of another size than its type says.

    Types that have no known size, and damaged entries, are left to the library, which reports them.

    Raises:
        MalformedArtifactError: If there is one.
    """
    found: MalformedArtifactError | None = None
    with suppress(MalformedArtifactError):
        found = next(_mismatches(file), None)
    if found is not None:
        raise found


def _mismatches(file: File) -> Iterator[MalformedArtifactError]:
    code = next(each.code for each in encodings_of("vhlo", "attribute").values() if each.name == _CONSTANT)
    dialects = {index for index in range(len(file.dialects.names)) if file.dialect(index) == "vhlo"}
    sizes: dict[int, _Sizes | None] = {}
    for entry in file.attributes:
        if not entry.custom or entry.dialect not in dialects or not len(entry.data):
            continue
        # A code of one byte is its number and a 1; most entries are something else.
        first = entry.data[0]
        if first & 1 and first >> 1 != code:
            continue
        value = decode_entry(file, "attribute", entry)
        if value is None or value.name != _CONSTANT:
            continue
        type_, size = value.field("type"), len(value.field("data"))
        if type_ not in sizes:
            sizes[type_] = _sizes(file, file.decode("type", type_))
        expected = sizes[type_]
        if expected is not None and size not in expected:
            yield entry.malformed(
                f"a constant has {size} bytes of values, but its type has {expected.whole}, or {expected.splat} if all "
                f"elements are equal"
            )


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
