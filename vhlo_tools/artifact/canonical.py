"""What stands in two files, as numbers: the same number where the same stands, whatever their tables look like."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

from vhlo_tools.artifact.elements import digest, same_bytes, shortest_form
from vhlo_tools.bytecode import Block, Entry, File, Operation, Value, attributes_in, decode_entry
from vhlo_tools.bytecode.codec import bits_of
from vhlo_tools.bytecode.reader import ByteReader
from vhlo_tools.compat.places import attributes_of
from vhlo_tools.dialect import EntryKind, Field, PropertySlot, foreign_encodings, property_slots
from vhlo_tools.errors import MalformedArtifactError

__all__ = ["Canon", "Numbers"]

_DEEPEST: Final = 100
# Shorter blobs are keys as they are; longer ones are compared with those of the same length and the same ends.
_SHORT: Final = 256
_MOST_COMPARED: Final = 4
_DICTIONARIES: Final = ("dictionary", "dict_v1")
_KNOWN: Final = ("builtin", "vhlo")

#: The attributes of ops that name functions.
SYMBOLS: Final = frozenset({"callee", "called_computations", "decomposition"})


class Numbers:
    """Numbers for things that are equal or not, shared by the files that are compared."""

    def __init__(self) -> None:
        self._of: dict[Hashable, int] = {}
        # By their length and their ends.
        self._blobs: dict[tuple[int, bytes, bytes], list[memoryview]] = {}
        self._digests: dict[tuple[int, bytes, bytes], dict[str, int]] = {}

    def of(self, key: Hashable) -> int:
        """Return the number of ``key``."""
        return self._of.setdefault(key, len(self._of))

    def of_blob(self, data: memoryview) -> Hashable:
        """Return a key for ``data``, which is read only as far as it takes to tell it from others."""
        if len(data) <= _SHORT:
            return bytes(data)
        bucket = (len(data), bytes(data[:_SHORT]), bytes(data[-_SHORT:]))
        known = self._blobs.setdefault(bucket, [])
        if len(known) < _MOST_COMPARED:
            position = next((index for index, each in enumerate(known) if same_bytes(each, data)), len(known))
        else:
            # Much alike, as masks are: each is read once, and not once for each of the others.
            digests = self._digests.setdefault(bucket, {})
            if not digests:
                digests.update((digest(each), index) for index, each in enumerate(known))
            position = digests.setdefault(digest(data), len(digests))
        if position == len(known):
            known.append(data)
        return (*bucket, position)


class Canon:
    """The contents of one file, by numbers.

    Args:
        file: The file.
        numbers: The numbers, shared with the other file.

    Attributes:
        renamed: Functions that are called otherwise in the other file, with the name that counts for both.
    """

    def __init__(self, file: File, numbers: Numbers) -> None:
        self.file = file
        self.numbers = numbers
        self.renamed: dict[int, int] = {}
        self.names = [file.op_name(index) for index in range(len(file.dialects.ops))]
        self._name_numbers = [numbers.of(("op", name)) for name in self.names]
        self._entries: dict[tuple[EntryKind, int], int] = {}
        self._types: dict[tuple[int, ...], Hashable] = {}
        self._attributes: dict[tuple[int, int | None, int | None], Mapping[str, int]] = {}
        self._attribute_keys: dict[tuple[int, int | None, int | None, bool], int] = {}
        self._blocks: dict[tuple[int, bool], list[int]] = {}
        self._depth = 0

    # Attributes and types

    def attribute(self, index: int) -> int:
        """Return the number of an attribute; locations are attributes."""
        return self._entry("attribute", index)

    def type(self, index: int) -> int:
        """Return the number of a type."""
        return self._entry("type", index)

    def string(self, text: bytes) -> int:
        """Return the number that the string attribute ``text`` of VHLO has."""
        return self.numbers.of(("attribute", "vhlo", "string_v1", (("value", text),)))

    def _entry(self, kind: EntryKind, index: int) -> int:
        key = (kind, index)
        found = self._entries.get(key)
        if found is None:
            entry = (self.file.attributes if kind == "attribute" else self.file.types)[index]
            if self._depth > _DEEPEST:
                raise entry.malformed(f"{kind}s nest deeper than {_DEEPEST}, or in a circle")
            self._depth += 1
            try:
                value = self.decode(kind, index)
                own = (self._opaque(entry),) if value is None else self._value(value)
            finally:
                self._depth -= 1
            content = (kind, self.file.dialect(entry.dialect), *own)
            found = self._entries[key] = self.numbers.of(content)
        return found

    def decode(self, kind: EntryKind, index: int) -> Value | None:
        """Return an attribute or a type taken apart, those of the dialects beside VHLO too."""
        value = self.file.decode(kind, index)
        entry = (self.file.attributes if kind == "attribute" else self.file.types)[index]
        foreign = foreign_encodings(self.file.dialect(entry.dialect)) if value is None and kind == "attribute" else None
        return decode_entry(self.file, kind, entry, foreign) if foreign else value

    def _opaque(self, entry: Entry) -> Hashable:
        return entry.custom, self._of_own_making(memoryview(entry.data)) if entry.custom else bytes(entry.data)

    def _of_own_making(self, data: memoryview) -> Hashable:
        """Return a key for what nothing is known of: its bytes, and what they may refer to.

        The same bytes mean another thing where the tables differ. What is the same may be told apart for that, but what
        is not the same is never taken for it.
        """
        if len(data) > _SHORT:
            return self.numbers.of_blob(data)
        reader, referred = ByteReader(data, section="attr_type"), list[int]()
        try:
            while reader.remaining:
                index = reader.varint()
                if index < len(self.file.attributes):
                    referred.append(self.attribute(index))
        except MalformedArtifactError:
            # Numbers that happen to be read as a reference to itself, or that are none.
            pass
        return bytes(data), tuple(referred)

    def _value(self, value: Value) -> tuple[Hashable, ...]:
        if value.name in ("tensor_v1", "dense") and any(field.kind == "blob" for field in value.encoding.fields):
            return value.name, self.type(value.field("type")), self.numbers.of_blob(self.elements(value))
        if value.name in ("file_line_col", "file_line_col_range"):
            # A place without an end is written either way, by versions of MLIR.
            ranged = value.name == "file_line_col_range"
            numbers = value.field("lines_and_columns") if ranged else (value.field("line"), value.field("column"))
            return "file_line_col", self.attribute(value.field("file")), tuple(numbers)
        fields = zip(value.encoding.fields, value.fields, strict=True)
        return value.name, tuple((field.name, self._field(field, content)) for field, content in fields)

    def elements(self, value: Value) -> memoryview:
        """Return the elements of a dense tensor in their shortest form."""
        tensor = self.file.decode("type", value.field("type"))
        data = memoryview(value.field("data"))
        if tensor is None or tensor.name not in ("tensor_v1", "tensor", "vector"):
            return data
        element = self.file.decode("type", tensor.field("element"))
        parts = 1
        index = tensor.field("element")
        if element is not None and element.name in ("complex_v1", "complex"):
            parts, index = 2, element.field("element")
        return shortest_form(data, tensor.field("shape"), parts * bits_of(self.file, index))

    def _field(self, field: Field, content: Any) -> Hashable:
        if not field.is_list:
            return self._plain(field.kind, content)
        items = [self._plain(field.kind, each) for each in content]
        # The pairs of a dictionary have no order of their own.
        return frozenset(items) if field.kind == "pair" else tuple(items)

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
                return self.numbers.of_blob(memoryview(content))
            case "resource":
                return self._resource(content)
        plain: Hashable = content
        return plain

    def _resource(self, index: int) -> Hashable:
        held = [each for group in self.file.resources if not group.external for each in group.resources]
        if index >= len(held):
            return index
        return self.file.strings[held[index].key], self.numbers.of_blob(memoryview(held[index].data))

    # Ops

    def attributes_of(self, op: Operation) -> Mapping[str, int]:
        """Return the attributes of an op by name, its properties among them."""
        key = (op.name, op.properties, op.attributes)
        if key not in self._attributes:
            self._attributes[key] = {**self._foreign_properties(op), **attributes_of(self.file, op)}
        return self._attributes[key]

    def _foreign_properties(self, op: Operation) -> dict[str, int]:
        """Return the properties of an op of another dialect: those that are known, or MLIR's default, a dictionary."""
        if op.properties is None or self.names[op.name].partition(".")[0] in _KNOWN:
            return {}
        properties, size = self.file.properties[op.properties], len(self.file.attributes)
        slots = property_slots(self.names[op.name])
        try:
            if slots is not None:
                return attributes_in(properties, slots, size)
            return self.dictionary(attributes_in(properties, [PropertySlot("", optional=False)], size)[""])
        except MalformedArtifactError:
            return {}

    def dictionary(self, index: int) -> dict[str, int]:
        """Return a dictionary by the names in it; anything else is empty."""
        value = self.file.decode("attribute", index)
        if value is None or value.name not in _DICTIONARIES:
            return {}
        return {self._text(key): each for key, each in value.field("elements")}

    def opaque_properties(self, op: Operation) -> bytes | None:
        """Return the properties of an op of another dialect that writes them in a form of its own."""
        foreign = op.properties is not None and self.names[op.name].partition(".")[0] not in _KNOWN
        if not foreign or self._foreign_properties(op):
            return None
        return bytes(self.file.properties[op.properties or 0].data)

    def opaque_key(self, op: Operation) -> Hashable:
        """Return a key for such properties."""
        own = self.opaque_properties(op)
        return None if own is None else self._of_own_making(memoryview(own))

    def _text(self, index: int) -> str:
        value = self.file.decode("attribute", index)
        if value is None or value.name not in ("string", "string_v1"):
            raise self.file.attributes[index].malformed(f"attribute {index} is no string, although it is used as one")
        return self.file.string(value.field("value"))

    def types(self, indices: tuple[int, ...]) -> Hashable:
        """Return a key for a list of types."""
        if indices not in self._types:
            self._types[indices] = tuple(map(self.type, indices))
        found: Hashable = self._types[indices]
        return found

    def named(self, name: str, index: int) -> int:
        """Return the number of the attribute ``name`` of an op, with functions as they are called on both sides."""
        number = self.attribute(index)
        if not self.renamed or name not in SYMBOLS:
            return number
        value = self.file.decode("attribute", index)
        if value is not None and value.name in ("array", "array_v1"):
            names = [self.attribute(each) for each in value.field("elements")]
            if any(each in self.renamed for each in names):
                return self.numbers.of(("renamed", tuple(self.renamed.get(each, each) for each in names)))
        return self.renamed.get(number, number)

    def attributes_key(self, op: Operation, *, blind: bool = False) -> int:
        """Return the number of all attributes of an op; ``blind`` to the names of functions that it calls."""
        key = (op.name, op.properties, op.attributes, blind)
        if key not in self._attribute_keys:
            held = self.attributes_of(op).items()
            pairs = frozenset(
                (name, self.named(name, index)) for name, index in held if not (blind and name in SYMBOLS)
            )
            opaque = self.opaque_key(op)
            self._attribute_keys[key] = self.numbers.of(("attributes", pairs, opaque))
        return self._attribute_keys[key]

    def op(self, op: Operation, *, blind: bool = False) -> int:
        """Return the number of an op with all that is in it, but without its operands and locations."""
        inner: Hashable = ()
        if op.regions:
            inner = tuple(
                tuple((self._arguments(block), tuple(self.block(block, blind=blind))) for block in region.blocks)
                for region in op.regions
            )
        name = self._name_numbers[op.name]
        attributes = self.attributes_key(op, blind=blind)
        return self.numbers.of((name, attributes, self.types(op.results), len(op.operands), op.successors, inner))

    def block(self, block: Block, *, blind: bool = False) -> list[int]:
        """Return the numbers of the ops of a block. Blocks live as long as their file, and are looked at once."""
        key = (id(block), blind)
        if key not in self._blocks:
            self._blocks[key] = [self.op(op, blind=blind) for op in block.operations]
        return self._blocks[key]

    def forget_blocks(self) -> None:
        """Look at ops afresh, after :attr:`renamed` has changed."""
        self._blocks.clear()
        self._attribute_keys.clear()

    def _arguments(self, block: Block) -> Hashable:
        return self.types(tuple(argument.type for argument in block.arguments))
