"""Numbering of the contents of two files: equal contents have equal numbers; alignment of sequences."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from vhlo_tools.bytecode import (
    Block,
    ByteReader,
    Extra,
    File,
    Head,
    Heads,
    Operation,
    Value,
    attributes_in,
    attributes_of,
    bits_of,
    decode_entry,
    digest,
    same_bytes,
    shortest_form,
    table_of,
)
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.files import View, slices, view
from vhlo_tools.spec import EntryKind, PropertySlot, foreign_encodings, property_slots

# Align two sequences by the shortest edit script
#
# Source: E. W. Myers, «An O(ND) Difference Algorithm and Its Variations», 1986. Its time grows with the number of edits
# and not with the square of the length, like that of :mod:`difflib` if few elements are unique: a program consists of
# the same few ops many times over.

#: Positions of corresponding elements, in order.
Pairs = list[tuple[int, int]]

_MOST_EDITS: Final = 1000


def align(one: Sequence[Hashable], other: Sequence[Hashable], *, most_edits: int = _MOST_EDITS) -> Pairs | None:
    """Return the positions of common elements, in order; ``None`` if more than ``most_edits`` differ."""
    start, end = 0, 0
    shorter = min(len(one), len(other))
    while start < shorter and one[start] == other[start]:
        start += 1
    while end < shorter - start and one[-1 - end] == other[-1 - end]:
        end += 1
    # An element of one side only is an edit in any case; searching for it would cost the square of the number of edits.
    there, here = set(other[start : len(other) - end]), set(one[start : len(one) - end])
    left = [i for i in range(start, len(one) - end) if one[i] in there]
    right = [j for j in range(start, len(other) - end) if other[j] in here]
    middle = _path([one[i] for i in left], [other[j] for j in right], most_edits)
    if middle is None:
        return None
    return [
        *((i, i) for i in range(start)),
        *((left[i], right[j]) for i, j in middle),
        *((len(one) - i, len(other) - i) for i in range(end, 0, -1)),
    ]


def _path(one: Sequence[Hashable], other: Sequence[Hashable], most_edits: int) -> Pairs | None:
    length, width = len(one), len(other)
    # The furthest position in `one` by diagonal for a number of edits; and a copy before each number of edits.
    reach = {1: 0}
    history: list[dict[int, int]] = []
    for edits in range(min(length + width, most_edits) + 1):
        history.append(reach.copy())
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])
            x = reach[diagonal + 1] if down else reach[diagonal - 1] + 1
            y = x - diagonal
            while x < length and y < width and one[x] == other[y]:
                x, y = x + 1, y + 1
            reach[diagonal] = x
            if x >= length and y >= width:
                return _back(history, length, width)
    return None


def _back(history: list[dict[int, int]], x: int, y: int) -> Pairs:
    pairs: Pairs = []
    for edits in range(len(history) - 1, -1, -1):
        reach, diagonal = history[edits], x - y
        down = diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])
        before = diagonal + 1 if down else diagonal - 1
        start_x = reach[before]
        start_y = start_x - before
        while x > max(start_x, 0) and y > max(start_y, 0):
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = start_x, start_y
    return pairs[::-1]


def common_prefix(one: array[int], other: array[int]) -> int:
    """Compare slices as wholes, for speed."""
    same, size = 0, min(len(one), len(other))
    step = size
    while step:
        if same + step <= size and one[same : same + step] == other[same : same + step]:
            same += step
        else:
            step //= 2
    return same


def common_suffix(one: array[int], other: array[int], most: int) -> int:
    """Like :func:`common_prefix`, from the end, and ``most`` elements at most."""
    return common_prefix(one[len(one) - most :][::-1], other[len(other) - most :][::-1])


def paired(one: Sequence[int], other: Sequence[int]) -> Pairs:
    """Pair positions by their order if the lengths are equal, else by equality of elements."""
    if len(one) == len(other):
        return [(i, i) for i in range(len(one))]
    return align(one, other) or []


# Numbering of the contents of two files: equal contents have equal numbers, whatever the layout of the tables

_DEEPEST: Final = 100
# Shorter blobs are keys themselves; longer ones are compared with those of the same length and the same ends.
_SHORT: Final = 256
_MOST_COMPARED: Final = 4
_DICTIONARIES: Final = ("dictionary", "dict_v1")
_KNOWN: Final = ("builtin", "vhlo")
_PLAIN: Final = Extra()

#: The attributes of ops that name functions.
SYMBOLS: Final = frozenset({"callee", "called_computations", "decomposition"})


class ValueNumbering:
    """Numbers of hashable keys and of blobs, shared by the files that are compared."""

    def __init__(self) -> None:
        self._of: dict[Hashable, int] = {}
        # By length, beginning and end.
        self._blobs: dict[tuple[int, bytes, bytes], list[View]] = {}
        self._digests: dict[tuple[int, bytes, bytes], dict[str, int]] = {}

    def of(self, key: Hashable) -> int:
        return self._of.setdefault(key, len(self._of))

    def of_blob(self, data: View) -> Hashable:
        """Return a key for ``data``, which is read only as far as necessary to distinguish it from others."""
        if len(data) <= _SHORT:
            return bytes(data)
        bucket = (len(data), bytes(data[:_SHORT]), bytes(data[-_SHORT:]))
        known = self._blobs.setdefault(bucket, [])
        if len(known) < _MOST_COMPARED:
            position = next((index for index, each in enumerate(known) if same_bytes(each, data)), len(known))
        else:
            # Many similar blobs, such as masks: each is read once, instead of once for each of the others.
            digests = self._digests.setdefault(bucket, {})
            if not digests:
                digests.update((digest(each), index) for index, each in enumerate(known))
            position = digests.setdefault(digest(data), len(digests))
        if position == len(known):
            known.append(data)
        return (*bucket, position)


class FileNumbering:
    """The contents of one file, by numbers that are shared with the other file."""

    def __init__(self, file: File, numbers: ValueNumbering) -> None:
        self.file = file
        self.numbers = numbers
        self._renamed: dict[int, int] = {}
        self.names: list[str] = [file.op_name(index) for index in range(len(file.dialects.ops))]
        self._name_numbers = [numbers.of(("op", name)) for name in self.names]
        self._entries: dict[tuple[EntryKind, int], int] = {}
        self._types: dict[tuple[int, ...], Hashable] = {}
        self._attributes: dict[tuple[int, int | None, int | None], Mapping[str, int]] = {}
        self._attribute_keys: dict[tuple[int, int | None, int | None, bool], int] = {}
        # By id() of blocks, and of the heads of a program, which the file keeps alive.
        self._blocks: dict[tuple[int, bool], array[int]] = {}
        self._kinds: dict[tuple[int, bool], tuple[Heads, dict[int, int]]] = {}
        self._depth = 0

    # Attributes and types

    def name(self, op: Operation | Head) -> str:
        """The name has its dialect and version."""
        return self.names[op.name]

    def attribute(self, index: int) -> int:
        """Locations are attributes."""
        return self._entry("attribute", index)

    def type(self, index: int) -> int:
        return self._entry("type", index)

    def string(self, text: bytes) -> int:
        """Return the number of a VHLO string attribute with the value ``text``."""
        return self.numbers.of(("attribute", "vhlo", "string_v1", (("value", text),)))

    def _entry(self, kind: EntryKind, index: int) -> int:
        key = (kind, index)
        found = self._entries.get(key)
        if found is None:
            entry = table_of(self.file, kind)[index]
            if self._depth > _DEEPEST:
                raise entry.malformed(f"{kind}s nest deeper than {_DEEPEST} levels, or in a cycle")
            self._depth += 1
            try:
                value = self.decode(kind, index)
                if value is not None:
                    own = self._value(value)
                elif entry.custom:
                    own = (True, self._of_own_making(view(entry.data)))
                else:
                    own = (False, bytes(entry.data))
            finally:
                self._depth -= 1
            content = (kind, self.file.dialect(entry.dialect), *own)
            found = self._entries[key] = self.numbers.of(content)
        return found

    def decode(self, kind: EntryKind, index: int) -> Value | None:
        """Decode also an attribute of a specified dialect beside VHLO."""
        value = self.file.decode(kind, index)
        entry = table_of(self.file, kind)[index]
        foreign = foreign_encodings(self.file.dialect(entry.dialect)) if value is None and kind == "attribute" else None
        return decode_entry(self.file, kind, entry, foreign) if foreign else value

    def _of_own_making(self, data: View) -> Hashable:
        """Return a key for bytes in an unknown encoding: the bytes, and everything to which they may refer.

        Equal bytes have different meanings with different tables. Up to 256 bytes are compared together with the table
        entries whose indices they may contain, longer ones together with the whole tables; equal contents may then have
        different keys, but different contents never have equal ones.
        """
        if len(data) > _SHORT:
            return self.numbers.of_blob(data), self._tables
        reader, referred = ByteReader(data, section="attr_type"), list[Hashable]()
        try:
            while reader.remaining:
                number = reader.varint()
                # A reference to an optional attribute has a flag in its lowest bit.
                for index in (number, number >> 1):
                    referred.append(self.file.strings[index] if index < len(self.file.strings) else None)
                    referred.append(self.type(index) if index < len(self.file.types) else None)
                    referred.append(self.attribute(index) if index < len(self.file.attributes) else None)
        except MalformedArtifactError:
            # Numbers that look like a reference to the entry itself, or bytes that are no numbers.
            pass
        return bytes(data), tuple(referred)

    @cached_property
    def _tables(self) -> bytes:
        """A digest of all entries and strings."""
        found = hashlib.sha256()
        for entry in (*self.file.attributes, *self.file.types):
            found.update(f"{entry.dialect} {entry.custom} {len(entry.data)} {len(entry.rest)} ".encode())
            for piece in (*slices(view(entry.data)), *slices(view(entry.rest))):
                found.update(piece)
        for text in self.file.strings:
            found.update(f"{len(text)} ".encode() + text)
        return found.digest()

    def _value(self, value: Value) -> tuple[Hashable, ...]:
        if value.name in ("tensor_v1", "dense") and any(field.kind == "blob" for field in value.encoding.fields):
            return value.name, self.type(value.field("type")), self.numbers.of_blob(self.elements(value))
        if value.name in ("file_line_col", "file_line_col_range"):
            # Versions of MLIR write a location without an end in either form.
            ranged = value.name == "file_line_col_range"
            numbers = value.field("lines_and_columns") if ranged else (value.field("line"), value.field("column"))
            return "file_line_col", self.attribute(value.field("file")), tuple(numbers)
        parts: list[Hashable] = []
        for field, content in zip(value.encoding.fields, value.fields, strict=True):
            if field.is_list:
                items = [self._plain(field.kind, each) for each in content]
                # The pairs of a dictionary are unordered.
                parts.append((field.name, frozenset(items) if field.kind == "pair" else tuple(items)))
            else:
                parts.append((field.name, self._plain(field.kind, content)))
        return value.name, tuple(parts)

    def elements(self, value: Value) -> View:
        """Return the elements of a dense tensor in the form of :func:`shortest_form`."""
        tensor = self.file.decode("type", value.field("type"))
        data = view(value.field("data"))
        if tensor is None or tensor.name not in ("tensor_v1", "tensor", "vector"):
            return data
        element = self.file.decode("type", tensor.field("element"))
        parts = 1
        index = tensor.field("element")
        if element is not None and element.name in ("complex_v1", "complex"):
            parts, index = 2, element.field("element")
        return shortest_form(data, tensor.field("shape"), parts * bits_of(self.file, index))

    def _plain(self, kind: str, content: Any) -> Hashable:
        match kind:
            case "type":
                return self.type(content)
            case "attribute" | "attribute?" | "flagged attribute":
                return None if content is None else self.attribute(content)
            case "pair":
                return self.attribute(content[0]), self.attribute(content[1])
            case "string":
                text: bytes = self.file.strings[content]
                return text
            case "blob":
                return self.numbers.of_blob(view(content))
            case "resource":
                held = [each for group in self.file.resources if not group.external for each in group.resources]
                if content < len(held):
                    return self.file.strings[held[content].key], self.numbers.of_blob(view(held[content].data))
        plain: Hashable = content
        return plain

    # Ops

    def attributes_of(self, op: Operation | Head) -> Mapping[str, int]:
        """Attributes in the properties of the op are included."""
        key = (op.name, op.properties, op.attributes)
        if key not in self._attributes:
            self._attributes[key] = {**self._foreign_properties(op), **attributes_of(self.file, op)}
        return self._attributes[key]

    def _foreign_properties(self, op: Operation | Head) -> Mapping[str, int]:
        """Return the known properties of an op of another dialect, or MLIR's default form, a dictionary."""
        if op.properties is None or self.names[op.name].partition(".")[0] in _KNOWN:
            return {}
        properties, size = self.file.properties[op.properties], len(self.file.attributes)
        slots = property_slots(self.names[op.name])
        try:
            if slots is not None:
                return attributes_in(properties, slots, size)
            return self.file.dictionary(attributes_in(properties, [PropertySlot("", optional=False)], size)[""]) or {}
        except MalformedArtifactError:
            return {}

    def opaque_properties(self, op: Operation | Head) -> bytes | None:
        """Return the properties of an op of another dialect in an unknown form."""
        foreign = op.properties is not None and self.names[op.name].partition(".")[0] not in _KNOWN
        if not foreign or self._foreign_properties(op):
            return None
        return bytes(self.file.properties[op.properties or 0].data)

    def opaque_key(self, op: Operation | Head) -> Hashable:
        own = self.opaque_properties(op)
        return None if own is None else self._of_own_making(view(own))

    def types(self, indices: tuple[int, ...]) -> Hashable:
        if indices not in self._types:
            self._types[indices] = tuple(map(self.type, indices))
        found: Hashable = self._types[indices]
        return found

    def named(self, name: str, index: int) -> int:
        """Return the number of the attribute ``name`` of an op, with renamed functions replaced."""
        number = self.attribute(index)
        if not self._renamed or name not in SYMBOLS:
            return number
        names = [self.attribute(each) for each in self.file.elements(index) or ()]
        if any(each in self._renamed for each in names):
            return self.numbers.of(("renamed", tuple(self._renamed.get(each, each) for each in names)))
        return self._renamed.get(number, number)

    def attributes_key(self, op: Operation | Head, *, blind: bool = False) -> int:
        """Return one number for all attributes; if ``blind``, without the names of functions that the op calls."""
        key = (op.name, op.properties, op.attributes, blind)
        if key not in self._attribute_keys:
            held = self.attributes_of(op).items()
            pairs = frozenset(
                (name, self.named(name, index)) for name, index in held if not (blind and name in SYMBOLS)
            )
            opaque = self.opaque_key(op)
            self._attribute_keys[key] = self.numbers.of(("attributes", pairs, opaque))
        return self._attribute_keys[key]

    def op(self, head: Head, extra: Extra, *, blind: bool = False) -> int:
        """Return the number of an op with its regions, but without its operands and locations."""
        inner = tuple(
            tuple(
                (self.types(tuple([each.type for each in block.arguments])), self.block(block, blind=blind).tobytes())
                for block in region.blocks
            )
            for region in extra.regions
        )
        name = self._name_numbers[head.name]
        attributes = self.attributes_key(head, blind=blind)
        return self.numbers.of((name, attributes, self.types(head.results), head.operands, extra.successors, inner))

    def block(self, block: Block, *, blind: bool = False) -> array[int]:
        """The numbers are computed once: blocks live as long as their file."""
        key = (id(block), blind)
        if key not in self._blocks:
            rows = block.rows
            kinds, numbers = self._kinds.setdefault((id(rows.kinds), blind), (rows.kinds, {}))
            for head in [each for each in {*rows.heads} if each not in numbers]:
                numbers[head] = self.op(kinds.table[head], _PLAIN, blind=blind)
            found = array("I", map(numbers.__getitem__, rows.heads))
            for position, extra in rows.extras.items():
                found[position] = self.op(kinds.table[rows.heads[position]], extra, blind=blind)
            self._blocks[key] = found
        return self._blocks[key]

    def rename(self, renamed: dict[int, int]) -> None:
        """Use other numbers for functions: by the number of a name, that of its name in the other file."""
        self._renamed = renamed
        self._blocks.clear()
        self._kinds.clear()
        self._attribute_keys.clear()
