"""Constants of an artifact: their list, their values, and their uses."""

from __future__ import annotations

import hashlib
import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import Final, Literal

from vhlo_tools.artifact.artifact import Artifact
from vhlo_tools.bytecode import (
    Block,
    File,
    Head,
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
    value = file.decode("attribute", index)
    if value is None or value.name != "tensor_v1":
        raise file.attributes[index].malformed(f"attribute {index} is the value of a constant, but is not a tensor")
    text, shape, element = printer.builtin_tensor(value.field("type"))
    size = element_size(element) if element and min(shape, default=0) >= 0 else None
    number = math.prod(shape)
    data = view(value.field("data"))
    if size is None:
        wrong = f"a constant has the type {text[:100]}, which cannot have values"
    elif number * size > _MOST_BYTES:
        wrong = f"a constant has the type {text[:100]}, which has too many elements"
    elif form := _form_of(data, number, size, element):
        return StoredTensor(element, size, shape, form, data)
    else:
        wrong = f"{len(data)} bytes are not elements of {text[:100]}"
    raise file.attributes[index].malformed(wrong)


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


@dataclass(frozen=True, slots=True)
class FoundConstant:
    """A constant op."""

    place: Place
    position: tuple[int, ...]  # numbers of region, block and op, from the top of the program inwards
    value: int  # index of the attribute that is the value
    plain: bool  # whether the op has no other attributes


@dataclass(slots=True)
class ConstantRun:
    """Constant ops of a block, between which no op has regions: in columns, because there may be very many."""

    block: Block
    around: Place | None  # the op around the block
    start: tuple[int, ...]  # numbers of region and block, from the top of the program inwards
    numbers: Sequence[int]  # positions of the ops in the block
    values: Sequence[int]  # of each, the index of the attribute that is its value
    plain: Sequence[int]  # of each, whether it has no other attributes
    results: Sequence[int]  # of each, the number of its result
    uses: Sequence[int] = ()  # of each, the number of operands that use the result

    def found(self) -> Iterator[FoundConstant]:
        for number, value, plain in zip(self.numbers, self.values, self.plain, strict=True):
            yield FoundConstant(self.place(number), (*self.start, number), value, bool(plain))

    def place(self, number: int) -> Place:
        block = self.block
        op = block.rows.operation(number) if block.is_columnar else block.operations[number]
        return Place(op, number, self.start[-2], self.around)


@dataclass(frozen=True, slots=True)
class RegionOp:
    """An op with regions."""

    place: Place
    position: tuple[int, ...]  # as in FoundConstant
    reach: int  # number of values from outside that are in the scope of the regions


def find_constants(file: File, *, for_editing: bool = False) -> tuple[list[ConstantRun], list[RegionOp]]:
    """Return the constants, and the ops with regions, in the order of the text.

    ``for_editing``, the ops of the program become objects, which those that are returned are.
    """
    for block in blocks_in(file.ir) if for_editing else ():
        block.operations = block.operations
    survey = _UseSurvey(file)
    survey.region(Region([file.program]), 0, array("I"), (), None)
    return sorted(survey.runs, key=lambda each: (*each.start, each.numbers[0])), survey.holders


class _UseSurvey:
    def __init__(self, file: File) -> None:
        self.file = file
        self.holders: list[RegionOp] = []
        self.runs: list[ConstantRun] = []
        self.names = frozenset(
            index for index in range(len(file.dialects.ops)) if file.op_name(index) == "vhlo.constant_v1"
        )

    def region(
        self, region: Region, number: int, uses: array[int], around: tuple[int, ...], place: Place | None
    ) -> None:
        """Traverse a region; ``uses`` has the number of uses of each value in scope."""
        start, own = len(uses), list[ConstantRun]()
        columns: list[Rows] = []
        for index, block in enumerate(region.blocks):
            # Asked for once: of a block whose ops have become objects, they are a copy.
            rows = block.rows
            columns.append(rows)
            first = len(uses) + len(block.arguments)
            uses.frombytes(bytes(uses.itemsize * (len(block.arguments) + rows.values)))
            own += self.constants(block, rows, first, (*around, number, index), place)
        self.runs += own
        for index, (block, rows) in enumerate(zip(region.blocks, columns, strict=True)):
            if self.runs:
                for operand in rows.operands:
                    uses[operand] += 1
            for position in [position for position, extra in rows.extras.items() if extra.regions]:
                op = rows.operation(position) if block.is_columnar else block.operations[position]
                at_holder, holder = (*around, number, index, position), Place(op, position, number, place)
                inner = array("I") if op.isolated else uses
                self.holders.append(RegionOp(holder, at_holder, len(inner)))
                for inner_number, each in enumerate(op.regions):
                    self.region(each, inner_number, inner, at_holder, holder)
        for run in own:
            run.uses = array("I", map(uses.__getitem__, run.results))
        del uses[start:]

    def constants(
        self, block: Block, rows: Rows, first: int, start: tuple[int, ...], place: Place | None
    ) -> Iterator[ConstantRun]:
        heads, table, counts = rows.heads, rows.kinds.table, rows.kinds.result_counts
        held = {head: self.value_of(table[head]) for head in dict.fromkeys(heads) if table[head].name in self.names}
        if not held:
            return
        results = array("I", accumulate(map(counts.__getitem__, heads), initial=first))
        numbers = array("I", [number for number, head in enumerate(heads) if head in held])
        holders = sorted(number for number, extra in rows.extras.items() if extra.regions)
        at = 0
        for end in (*(bisect_left(numbers, holder) for holder in holders), len(numbers)):
            run, at = numbers[at:end], end
            values, plain = array("I"), bytearray()
            for number in run:
                value, others = held[heads[number]]
                if value is None or (number in rows.extras and rows.extras[number].regions):
                    location = self.file.attributes[rows.locations[number]]
                    raise location.malformed("a constant has no value, or not one result")
                values.append(value)
                plain.append(not others)
            if run:
                yield ConstantRun(block, place, start, run, values, plain, array("I", map(results.__getitem__, run)))

    def value_of(self, head: Head) -> tuple[int | None, int]:
        """Return the attribute that is the value, if the op is as it should be, and the number of others."""
        attributes = attributes_of(self.file, head)
        value = attributes.get("value") if len(head.results) == 1 and not head.operands else None
        return value, len(attributes) - 1


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
        return _type_of(self.shape, self.element_type)


@lru_cache
def _type_of(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


@without_collection()
def list_constants(artifact: Artifact, *, min_size: int = 0) -> list[Constant]:
    """In the order of the text."""
    return [
        first
        if path is first.path
        else Constant(
            path,
            first.shape,
            first.element_type,
            first.bytes,
            first.bytes_in_file,
            first.splat,
            first.digest,
            uses,
            first.path,
        )
        for path, first, uses in grouped_constants(artifact, min_size=min_size)
    ]


@without_collection()
def grouped_constants(artifact: Artifact, *, min_size: int = 0) -> list[tuple[str, Constant, int]]:
    """Return the path and the uses of each constant in the order of the text, with the first that has its value.

    Very many may have one.
    """
    file, printer = artifact.file, Printer(artifact.file)
    listed = []
    # By the index of the attribute that is the value; ``None`` if it is too small.
    known: dict[int, Constant | None] = {}
    for run, paths in _named(file, artifact.name, find_constants(file)[0]):
        for path, value, uses in zip(paths, run.values, run.uses, strict=True):
            if value not in known:
                tensor = read_tensor(file, printer, value)
                known[value] = _constant(path, tensor, uses) if tensor.bytes >= min_size else None
            if first := known[value]:
                listed.append((path, first, uses))
    return listed


def _constant(path: str, tensor: StoredTensor, uses: int) -> Constant:
    return Constant(path, tensor.shape, tensor.element, tensor.bytes, len(tensor.data), *tensor.identify(), uses)


def named_constants(
    file: File, name: str, runs: Iterable[ConstantRun]
) -> Iterator[tuple[str, FoundConstant, StoredTensor]]:
    """Yield constants with unique paths and with values."""
    tensors: dict[int, StoredTensor] = {}
    printer = Printer(file)
    for run, paths in _named(file, name, runs):
        for path, found in zip(paths, run.found(), strict=True):
            if found.value not in tensors:
                tensors[found.value] = read_tensor(file, printer, found.value)
            yield path, found, tensors[found.value]


def _named(file: File, name: str, runs: Iterable[ConstantRun]) -> Iterator[tuple[ConstantRun, list[str]]]:
    """Yield constants with unique paths."""
    places = SourceLocations(file, name)
    taken: set[str] = set()
    for run in runs:
        before, number, after = places.path(run.place(run.numbers[0])).rpartition(str(run.numbers[0]))
        paths = [f"{before}{number and each}{after}" for each in run.numbers]
        if not taken.isdisjoint(paths):
            # Blocks, and functions of nested modules, are not part of paths.
            paths = [
                f"{path}#{'.'.join(map(str, (*run.start, each)))}" if path in taken else path
                for path, each in zip(paths, run.numbers, strict=True)
            ]
        taken.update(paths)
        yield run, paths
