"""Constants of an artifact: their list, their values, and their uses."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import Final, Literal

from vhlo_tools.artifact.artifact import Artifact
from vhlo_tools.bytecode import (
    File,
    Place,
    Printer,
    Region,
    Rows,
    SourceLocations,
    attributes_of,
    blocks_in,
    digest,
    same_bytes,
    shortest_form,
    without_collection,
)
from vhlo_tools.errors import InvalidInputError
from vhlo_tools.files import Chunk, View, slices, view
from vhlo_tools.records import dataclass
from vhlo_tools.spec import spellings_of

# Names of element types in numpy and in safetensors

# Only the safetensors names that all of its readers know; its 8-bit float of this name is the one without infinities.
_NAMES: Final[dict[str, tuple[str, str | None]]] = {
    "i1": ("bool", "BOOL"),
    "i2": ("int2", None),
    "i4": ("int4", None),
    "i8": ("int8", "I8"),
    "i16": ("int16", "I16"),
    "i32": ("int32", "I32"),
    "i64": ("int64", "I64"),
    "index": ("int64", "I64"),
    "ui2": ("uint2", None),
    "ui4": ("uint4", None),
    "ui8": ("uint8", "U8"),
    "ui16": ("uint16", "U16"),
    "ui32": ("uint32", "U32"),
    "ui64": ("uint64", "U64"),
    "f16": ("float16", "F16"),
    "bf16": ("bfloat16", "BF16"),
    "f32": ("float32", "F32"),
    "f64": ("float64", "F64"),
    "f4E2M1FN": ("float4_e2m1fn", None),
    "f6E2M3FN": ("float6_e2m3fn", None),
    "f6E3M2FN": ("float6_e3m2fn", None),
    "f8E3M4": ("float8_e3m4", None),
    "f8E4M3": ("float8_e4m3", None),
    "f8E4M3B11FNUZ": ("float8_e4m3b11fnuz", None),
    "f8E4M3FN": ("float8_e4m3fn", "F8_E4M3"),
    "f8E4M3FNUZ": ("float8_e4m3fnuz", None),
    "f8E5M2": ("float8_e5m2", "F8_E5M2"),
    "f8E5M2FNUZ": ("float8_e5m2fnuz", None),
    "f8E8M0FNU": ("float8_e8m0fnu", None),
    "complex<f32>": ("complex64", "C64"),
    "complex<f64>": ("complex128", None),
}

# Element types with another name in VHLO.
_VHLO_NAMES: Final = {"i1": "bool_v1", "tf32": "tf31_v1"}


def numpy_name(element: str) -> str | None:
    return _NAMES.get(element, (None, None))[0]


def element_named(name: str) -> str:
    """Return the StableHLO type of a name in numpy or ml_dtypes."""
    for element, (each, _) in _NAMES.items():
        if each == name and element != "index":
            return element
    raise InvalidInputError(f"numpy's {name} is not an element type of StableHLO")


def safetensors_name(element: str) -> str | None:
    """Return the name in safetensors; ``None`` if not all of its readers have it."""
    return _NAMES.get(element, (None, None))[1]


@lru_cache
def element_size(element: str) -> int | None:
    """Return the size in bytes; ``None`` for a type that constants cannot have."""
    if element.startswith("complex<"):
        element = element[len("complex<") : -1]
        part = None if element.startswith("complex<") else element_size(element)
        return 2 * part if part else None
    name = str(structure_of(element)["type"])
    bits = next((each.bits for each in spellings_of("vhlo", "type") if each.name == name), None)
    return max(1, bits // 8) if bits else None


def structure_of(element: str) -> dict[str, object]:
    """Return the VHLO type, in the form of ``dialect_specs/vhlo/defaults.toml``."""
    if element.startswith("complex<"):
        return {"type": "complex_v1", "element": structure_of(element[len("complex<") : -1])}
    return {"type": _VHLO_NAMES.get(element, f"{element}_v1")}


# Value of a constant: its elements in their stored form, read in pieces

#: ``whole``: every element; ``splat``: one for all of them; ``packed``: one-bit elements, eight to a byte.
Form = Literal["whole", "splat", "packed"]

_BLOCK: Final = 1 << 16
# A program that has more bytes is hostile.
_MOST_BYTES: Final = 1 << 62
# Beyond this number, `shortest_form` leaves bits packed.
_MOST_BOOLEANS: Final = 1 << 24
_BITS_OF_BYTE: Final = tuple(bytes(byte >> bit & 1 for bit in range(8)) for byte in range(256))


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """The value of a constant.

    Attributes:
        element: The type of its elements, in StableHLO syntax.
        size: The size of an element in bytes; one of fewer than eight bits takes a byte.
        shape: Its shape.
        form: The form of the elements in ``data``.
        data: The bytes, a view into a file.
    """

    element: str
    size: int
    shape: tuple[int, ...]
    form: Form
    data: View

    @property
    def number(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """The size of all elements in bytes."""
        return self.number * self.size

    def chunks(self) -> Iterator[Chunk]:
        """Yield all elements in pieces, one-bit elements as a byte each."""
        if self.form == "whole":
            yield self.data
        elif self.form == "packed":
            left = self.number
            for piece in slices(self.data):
                for at in range(0, len(piece), _BLOCK):
                    block = b"".join([_BITS_OF_BYTE[byte] for byte in piece[at : at + _BLOCK]])[:left]
                    left -= len(block)
                    yield block
        else:
            one = bytes(self.data) if self.element != "i1" else bytes([self.data[0] & 1])
            block, left = one * max(1, _BLOCK // self.size), self.bytes
            while left > 0:
                yield block[:left]
                left -= len(block)

    def identify(self) -> tuple[bool, str]:
        """Return whether one element represents all of several, and a SHA-256 that equal tensors share."""
        if self.form != "packed" or self.number <= _MOST_BOOLEANS:
            short = shortest_form(self.data, self.shape, 1 if self.element == "i1" else 8 * self.size)
            return len(short) == self.size and self.number > 1, digest(short)
        found, first, same = hashlib.sha256(), self.data[0] & 1, True
        for chunk in self.chunks():
            for piece in slices(chunk):
                found.update(piece)
                same = same and bytes(piece).count(first) == len(piece)
        return same, digest(memoryview(bytes([first]))) if same else found.hexdigest()

    def holds(self, data: View) -> bool:
        """Return whether ``data`` equals the concatenation of :meth:`chunks`."""
        if len(data) != self.bytes:
            return False
        at = 0
        for chunk in self.chunks():
            if not same_bytes(view(chunk), data[at : at + len(chunk)]):
                return False
            at += len(chunk)
        return True


def read_tensor(file: File, printer: Printer, index: int) -> StoredTensor:
    entry = file.attributes[index]
    value = file.decode("attribute", index)
    if value is None or value.name != "tensor_v1":
        raise entry.malformed(f"attribute {index} is the value of a constant, but is not a tensor")
    text, shape, element = printer.builtin_tensor(value.field("type"))
    is_usable = element and all(size >= 0 for size in shape)
    size = element_size(element) if is_usable else None
    if size is None:
        raise entry.malformed(f"a constant has the type {text[:100]}, which cannot have values")
    number = math.prod(shape)
    if number * size > _MOST_BYTES:
        raise entry.malformed(f"a constant has the type {text[:100]}, which has too many elements")
    data = view(value.field("data"))
    form = _form_of(data, number, size, element)
    if form is None:
        raise entry.malformed(f"{len(data)} bytes are not elements of {text[:100]}")
    return StoredTensor(element, size, shape, form, data)


def _form_of(data: View, number: int, size: int, element: str) -> Form | None:
    """Return the form of ``number`` elements by the length of ``data``; ``None`` if it matches no form.

    Source: ``DenseElementsAttr::isValidRawBuffer``. Bits are packed, or in old files a byte each; for up to eight of
    them, a byte of equal bits is a splat.
    """
    if element == "i1" and number and len(data) == 1:
        return "packed" if 1 < number <= 8 and data[0] not in (0x00, 0xFF) else "splat"
    if len(data) == number * size:
        return "whole"
    if len(data) == size:
        return "splat"
    return "packed" if element == "i1" and len(data) == (number + 7) // 8 else None


def pack(data: View) -> View:
    """Pack bits of a byte each eight to a byte; a large result is a mapped temporary file."""
    if len(data) <= _MOST_BOOLEANS:
        return memoryview(b"".join(_packed(data)))
    with TemporaryFile() as file:
        file.writelines(_packed(data))
        file.flush()
        return memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))


def _packed(data: View) -> Iterator[bytes]:
    for piece in slices(data):
        for at in range(0, len(piece), _BLOCK):
            block = bytes(piece[at : at + _BLOCK])
            if block.strip(b"\0\1"):
                raise ValueError("a byte is neither 0 nor 1")
            # The first of eight bits is the lowest: reversed, the bits are the binary digits of a number.
            digits = block[::-1].translate(_DIGITS)
            yield int(digits, 2).to_bytes((len(block) + 7) // 8, "little")


_DIGITS: Final = b"01" + bytes(254)


# Locations and use counts of the constants of a program


@dataclass(slots=True)
class FoundConstant:
    """A constant op."""

    place: Place
    position: tuple[int, ...]  # numbers of region, block and op, from the top of the program inwards
    value: int  # index of the attribute that is the value
    plain: bool  # whether the op has no other attributes
    uses: int = 0  # number of operands that use the result


@dataclass(frozen=True, slots=True)
class RegionOp:
    """An op with regions."""

    place: Place
    position: tuple[int, ...]  # as in FoundConstant
    reach: int  # number of values from outside that are in the scope of the regions


def find_constants(file: File, *, for_editing: bool = False) -> tuple[list[FoundConstant], list[RegionOp]]:
    """Return the constants, and the ops with regions, in the order of the text.

    ``for_editing``, the ops of the program become objects, which those that are returned are.
    """
    for block in blocks_in(file.ir) if for_editing else ():
        block.operations = block.operations
    survey = _UseSurvey(file)
    survey.region(Region([file.program]), 0, array("I"), (), None)
    return sorted(survey.found, key=lambda each: each.position), survey.holders


class _UseSurvey:
    def __init__(self, file: File) -> None:
        self.file = file
        self.holders: list[RegionOp] = []
        self.found: list[FoundConstant] = []
        # The value of a constant with these properties and attributes, and whether it has no others.
        self.held: dict[tuple[int, int | None, int | None], tuple[int | None, bool]] = {}
        self.names = frozenset(
            index for index in range(len(file.dialects.ops)) if file.op_name(index) == "vhlo.constant_v1"
        )

    def region(
        self, region: Region, number: int, uses: array[int], around: tuple[int, ...], place: Place | None
    ) -> None:
        """Traverse a region; ``uses`` has the number of uses of each value in scope."""
        start, known = len(uses), len(self.found)
        columns: list[Rows] = []
        values: list[int] = []
        for index, block in enumerate(region.blocks):
            # Asked for once: of a block whose ops have become objects, they are a copy.
            rows = block.rows
            columns.append(rows)
            first = len(uses) + len(block.arguments)
            uses.frombytes(bytes(uses.itemsize * (len(block.arguments) + rows.values)))
            heads = {head for head in {*rows.heads} if rows.kinds.table[head].name in self.names}
            if heads:
                counts = rows.kinds.result_counts
                at = array("I", accumulate(map(counts.__getitem__, rows.heads), initial=first))
                for position in [position for position, head in enumerate(rows.heads) if head in heads]:
                    op = rows.operation(position) if block.is_columnar else block.operations[position]
                    self.found.append(
                        self.constant(Place(op, position, number, place), (*around, number, index, position))
                    )
                    values.append(at[position])
        constants = self.found[known:]
        for index, (block, rows) in enumerate(zip(region.blocks, columns, strict=True)):
            if self.found:
                for operand in rows.operands:
                    uses[operand] += 1
            for position in [position for position, extra in rows.extras.items() if extra.regions]:
                op = rows.operation(position) if block.is_columnar else block.operations[position]
                at_holder, holder = (*around, number, index, position), Place(op, position, number, place)
                inner = array("I") if op.isolated else uses
                self.holders.append(RegionOp(holder, at_holder, len(inner)))
                for inner_number, each in enumerate(op.regions):
                    self.region(each, inner_number, inner, at_holder, holder)
        for constant, value in zip(constants, values, strict=True):
            constant.uses = uses[value]
        del uses[start:]

    def constant(self, place: Place, position: tuple[int, ...]) -> FoundConstant:
        op = place.op
        key = (op.name, op.properties, op.attributes)
        if key not in self.held:
            attributes = attributes_of(self.file, op)
            self.held[key] = (attributes.get("value"), len(attributes) == 1)
        value, plain = self.held[key]
        if value is None or len(op.results) != 1 or op.operands or op.regions:
            raise self.file.attributes[op.location].malformed("a constant has no value, or not one result")
        return FoundConstant(place, position, value, plain)


# List of the constants of an artifact


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a program.

    Attributes:
        path: Its path in the program, from its function inwards, as in :func:`vhlo_tools.diff`.
        shape: The shape of its value.
        element_type: The type of its elements, in StableHLO syntax.
        bytes: The size of all elements in bytes, of which each takes at least one.
        bytes_in_file: Their size in the file, where one may represent all, and bits are packed.
        splat: Whether one element represents, or could represent, all of several.
        digest: The SHA-256 of the elements as hexadecimal digits; equal constants have equal digests.
        uses: The number of operands that use it.
        shared_with: The path of the first constant with the same stored elements; ``None`` if this is the first.
    """

    path: str
    shape: tuple[int, ...]
    element_type: str
    bytes: int
    bytes_in_file: int
    splat: bool
    digest: str
    uses: int
    shared_with: str | None = None

    @property
    def type(self) -> str:
        """Its type, in StableHLO syntax."""
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element_type}>"


@without_collection()
def list_constants(artifact: Artifact, *, min_size: int = 0) -> list[Constant]:
    """In the order of the text."""
    listed = []
    first: dict[int, str] = {}
    # Of each value: its size, whether it is a splat, and its digest. Very many constants may share one.
    known: dict[int, tuple[int, bool, str]] = {}
    for path, found, tensor in named_constants(artifact.file, artifact.name, find_constants(artifact.file)[0]):
        shared = first.setdefault(found.value, path)
        if found.value not in known:
            size = tensor.bytes
            known[found.value] = (size, *(tensor.identify() if size >= min_size else (False, "")))
        size, splat, digest = known[found.value]
        if size >= min_size:
            other = None if shared is path else shared
            held = len(tensor.data)
            listed.append(Constant(path, tensor.shape, tensor.element, size, held, splat, digest, found.uses, other))
    return listed


def named_constants(
    file: File, name: str, constants: Iterable[FoundConstant]
) -> list[tuple[str, FoundConstant, StoredTensor]]:
    """Return constants with unique paths and with values."""
    places, printer = SourceLocations(file, name), Printer(file)
    tensors: dict[int, StoredTensor] = {}
    taken: set[str] = set()
    result = []
    for found in constants:
        if found.value not in tensors:
            tensors[found.value] = read_tensor(file, printer, found.value)
        path = places.path(found.place)
        if path in taken:
            # Blocks, and functions of nested modules, are not part of paths.
            path = f"{path}#{'.'.join(map(str, found.position))}"
        taken.add(path)
        result.append((path, found, tensors[found.value]))
    return result
