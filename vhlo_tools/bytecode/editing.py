"""Editing of files: table entries, attributes of ops, numbers of values, and resources."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from vhlo_tools.bytecode.codec import Value, decode_entry, references
from vhlo_tools.bytecode.container import (
    PROPERTIES_SINCE,
    DialectName,
    Dialects,
    Resource,
    ResourceKind,
    encode_dialects,
    encode_header,
    encode_section,
)
from vhlo_tools.bytecode.entries import (
    Entry,
    EntryTable,
    Properties,
    attributes_in,
    encode_properties,
    encode_sizes,
    encode_strings,
)
from vhlo_tools.bytecode.entry_printing import Printer
from vhlo_tools.bytecode.file import File, decode, table_of
from vhlo_tools.bytecode.ir import encode_ir
from vhlo_tools.bytecode.primitives import varint
from vhlo_tools.bytecode.program import Block, Operation, Region, UseListOrder, blocks_in, heads_in
from vhlo_tools.bytecode.traversal import inherent_attributes
from vhlo_tools.errors import MalformedArtifactError, UnsupportedFeatureError
from vhlo_tools.files import Chunk, join, view
from vhlo_tools.findings import OPAQUE_PROPERTIES, Finding
from vhlo_tools.lazy import pattern
from vhlo_tools.spec import (
    Encoding,
    EntryKind,
    Field,
    PropertySlot,
    Structure,
    encodings_of,
    find_enum,
    foreign_encodings,
    property_slots,
    spellings_of,
)

# Add attributes, types and strings to the tables of a file, each once


class Tables:
    def __init__(self, file: File) -> None:
        self._file = file
        self._strings = {text: index for index, text in reversed(list(enumerate(file.strings)))}
        self._made: dict[tuple[EntryKind, int, bytes], int] = {}
        self._dictionaries: dict[tuple[tuple[str, int], ...], int] = {}

    def string(self, text: str) -> int:
        data = text.encode("utf-8", "surrogateescape")
        if data not in self._strings:
            self._strings[data] = len(self._file.strings)
            self._file.strings.append(data)
        return self._strings[data]

    def dictionary(self, pairs: Mapping[str, int]) -> int | None:
        """Return the index of a dictionary of attribute indices by name; ``None`` if it is empty."""
        if not pairs:
            return None
        key = tuple(sorted(pairs.items(), key=lambda pair: pair[0].encode("utf-8", "surrogateescape")))
        if key not in self._dictionaries:
            elements = tuple((self.builtin("string", self.string(name)), index) for name, index in key)
            self._dictionaries[key] = self.builtin("dictionary", elements)
        return self._dictionaries[key]

    def builtin(self, name: str, *fields: Any) -> int:
        return self.add("attribute", Value("builtin", _encoding("builtin", "attribute", name, len(fields)), fields))

    def vhlo(self, name: str, *fields: Any) -> int:
        return self.add("attribute", Value("vhlo", _encoding("vhlo", "attribute", name, len(fields)), fields))

    def builtin_type(self, name: str, *fields: Any) -> int:
        return self.add("type", Value("builtin", _encoding("builtin", "type", name, len(fields)), fields))

    def structure(self, kind: EntryKind, structure: Structure) -> int:
        """Return the index of an entry of VHLO, given as in ``dialect_specs/vhlo/defaults.toml``."""
        encoding = _encoding("vhlo", kind, str(structure[kind]))
        fields = tuple(self._field(encoding, field, structure) for field in encoding.fields)
        return self.add(kind, Value("vhlo", encoding, fields))

    def add(self, kind: EntryKind, value: Value) -> int:
        entry = self._file.encode(kind, value)
        key = (kind, entry.dialect, bytes(entry.data))
        if key not in self._made:
            table = table_of(self._file, kind)
            self._made[key] = len(table)
            table.append(Entry(entry.dialect, entry.custom, entry.data))
        return self._made[key]

    def _field(self, encoding: Encoding, field: Field, structure: Structure) -> Any:
        if field.enum is not None:
            enum = find_enum(field.enum)
            case = enum.case(str(structure["case"])) if enum else None
            if case is None:
                raise ValueError(f"{field.enum} has no case {structure['case']}")
            return case.value
        content = structure["type" if encoding.name == "type_v1" else field.name]
        if field.is_list:
            return tuple(self._plain(field.kind, each) for each in content)
        return self._plain(field.kind, content)

    def _plain(self, kind: str, content: Any) -> Any:
        match kind:
            case "attribute" | "attribute?" | "flagged attribute":
                return None if content is None else self.structure("attribute", content)
            case "pair":
                return tuple(self.structure("attribute", each) for each in content)
            case "type":
                return self.structure("type", content)
            case "string":
                return self.string(content)
            case "f64":
                return struct.unpack("<q", struct.pack("<d", content))[0]
            case "blob":
                return bytes.fromhex(content)
        return int(content)


def _encoding(dialect: str, kind: EntryKind, name: str, fields: int | None = None) -> Encoding:
    """Return the encoding called ``name``; if there are several, the one with ``fields`` fields."""
    named: Iterable[Encoding] = (
        encoding for spelling in spellings_of(dialect, kind) for encoding in spelling.encodings if encoding.name == name
    )
    return next(each for each in named if fields is None or len(each.fields) == fields)


# Location of the attributes of ops: inherent ones in properties since MLIR bytecode 5, earlier in one dictionary
#
# Source: ``BytecodeWriter.cpp`` and ``BytecodeReader.cpp`` in llvm/llvm-project, for the bit of an op's mask.

#: Indices of attributes, by name.
Attributes = Mapping[str, int]


def change_attributes(file: File, tables: Tables, op: Operation, changed: Attributes) -> set[int]:
    """Change inherent attributes of an op, wherever it stores them, and return the attributes that it no longer has."""
    # Some producers put all attributes into dictionaries, whatever the version of the format.
    layout = AttributeLayout(file, tables, in_properties=op.properties is not None)
    slots = property_slots(file.op_name(op.name))
    inherent, discardable = layout.read(op, slots)
    lost = {inherent[name] for name, index in changed.items() if name in inherent and inherent[name] != index}
    if op.attributes is not None:
        # The dictionary is written anew, even if its attributes are unchanged.
        lost.add(op.attributes)
    op.properties, op.attributes = layout.write({**inherent, **changed}, discardable, slots, op)
    return lost


class AttributeLayout:
    """Reader of attributes as stored in a file, and writer in the layout chosen by ``in_properties``."""

    def __init__(self, file: File, tables: Tables, *, in_properties: bool) -> None:
        self._file = file
        self._tables = tables
        self._was = file.has_properties
        self._is = in_properties
        self.moves: bool = self._was != self._is
        self._made: dict[bytes, int] = {}
        self._new: list[Properties] = [] if self.moves else file.properties

    def read(self, op: Operation, slots: Sequence[PropertySlot] | None) -> tuple[Attributes, Attributes]:
        """Return the inherent and the discardable attributes; ``slots`` of ``None``: the inherent ones are unknown."""
        held = self._dictionary(op.attributes)
        # Producers without properties put all attributes into the dictionary, also in newer versions of the format.
        names = {slot.name for slot in slots or ()}
        inherent = {name: index for name, index in held.items() if name in names}
        discardable = {name: index for name, index in held.items() if name not in names}
        return {**inherent, **(self._properties(op, slots) if self._was else {})}, discardable

    def write(
        self, inherent: Attributes, discardable: Attributes, slots: Sequence[PropertySlot] | None, op: Operation
    ) -> tuple[int | None, int | None]:
        """Return the indices of properties and of a dictionary; ``op`` is for messages only."""
        # MLIR also accepts inherent attributes in the dictionary, and the properties of ops of other dialects differ
        # between releases.
        if not self._is or slots is None or not self._name(op).startswith("vhlo."):
            return None, self._tables.dictionary({**discardable, **inherent})
        pieces = []
        for slot in slots:
            index = inherent.get(slot.name)
            if index is None:
                at = self._file.attributes[op.attributes or op.location]
                raise at.malformed(f"an op of {self._name(op)} has no attribute {slot.name}")
            pieces.append(varint(index))  # no attribute of an op of VHLO is optional
        if not pieces:
            return None, self._tables.dictionary(discardable)
        data = b"".join(pieces)
        if data not in self._made:
            self._made[data] = len(self._new)
            self._new.append(Properties(data))
        return self._made[data], self._tables.dictionary(discardable)

    def finish(self) -> None:
        self._file.properties = self._new
        self._file.has_properties = self._is

    def _dictionary(self, index: int | None) -> dict[str, int]:
        if index is None:
            return {}
        # A name need not be UTF-8, and must be written back unchanged.
        held = self._file.dictionary(index, errors="surrogateescape")
        if held is None:
            raise self._file.attributes[index].malformed(
                f"attribute {index} is used as the dictionary of an op, but is not a dictionary"
            )
        return dict(held)

    def _properties(self, op: Operation, slots: Sequence[PropertySlot] | None) -> Attributes:
        if op.properties is None:
            return {}
        if slots is None:
            return self._default(op)
        try:
            return attributes_in(self._file.properties[op.properties], slots, len(self._file.attributes))
        except MalformedArtifactError:
            if self._name(op).startswith("vhlo."):
                raise
            # Other dialects have no compatibility guarantee: releases differ in the properties of their ops.
            return self._default(op)

    def _default(self, op: Operation) -> Attributes:
        """Read properties in the default form, of ops that define none: a dictionary."""
        properties, slot = self._file.properties[op.properties or 0], PropertySlot("", optional=False)
        try:
            return self._dictionary(attributes_in(properties, [slot], len(self._file.attributes))[""])
        except MalformedArtifactError:
            pass
        name = self._name(op)
        finding = Finding(
            feature=OPAQUE_PROPERTIES,
            level="error",
            kind="dialect",
            message=f"the properties of {name} have an unknown encoding and cannot be moved to a dictionary, which "
            f"StableHLO below 0.15.0 requires",
            op=name,
            remedy="choose 0.15.0 or later, or the engine mlir",
        )
        raise UnsupportedFeatureError(f"the attributes of {name} cannot be moved", [finding])

    def _name(self, op: Operation) -> str:
        return self._file.op_name(op.name)


# Overwrite table entries that edited ops no longer use, because older readers would not know them
#
# MLIR reads entries only on use, but tools that look at the tables should not find entries that the program does not
# use.

_Key = tuple[EntryKind, int]

_KINDS: Final[tuple[EntryKind, EntryKind]] = ("attribute", "type")
# These contain only strings and each other, and are the bulk of a table: references to them are not searched for.
_PLAIN: Final = frozenset({"callsite", "file_line_col", "file_line_col_range", "name", "string", "unknown"})


def collect_garbage(file: File, tables: Tables, dropped: Iterable[int]) -> None:
    """Overwrite attributes that ops have ``dropped``, and entries that only these contain.

    Indices are kept, so nothing is renumbered. All entries stay if another dialect may refer to them in unknown ways.
    """
    closure = _closure(file, {("attribute", index) for index in dropped})
    values = {key: file.decode(*key) for key in closure}
    candidates = {
        key for key, value in values.items() if not (value and value.dialect == "builtin" and value.name in _PLAIN)
    }
    held = _held_by_others(file, candidates)
    if held is None:
        return
    dead = candidates - _closure(file, candidates & held)
    nothing: dict[EntryKind, Entry] = {
        "attribute": file.attributes[tables.builtin("unknown")],
        "type": file.types[tables.builtin_type("none")],
    }
    for kind, index in dead:
        table_of(file, kind)[index] = nothing[kind]


def _closure(file: File, found: set[_Key]) -> set[_Key]:
    pending, closed = list(found), set(found)
    while pending:
        kind, index = pending.pop()
        value = file.decode(kind, index)
        new = _held(value) - closed if value else set()
        closed |= new
        pending += new
    return closed


def _held(value: Value) -> set[_Key]:
    return {(kind, index) for kind in _KINDS for index in references(value, kind)}


def _held_by_others(file: File, candidates: set[_Key]) -> set[_Key] | None:
    """Return the entries used by anything other than ``candidates``; ``None`` if unknown."""
    held: set[_Key] = set()
    dialects = [file.dialect(index) for index in range(len(file.dialects.names))]
    plain = frozenset(
        code << 1 | 1 for code, each in encodings_of("builtin", "attribute").items() if each.name in _PLAIN
    )
    for kind in _KINDS:
        skipped = [plain if kind == "attribute" and name == "builtin" else frozenset() for name in dialects]
        table = table_of(file, kind)
        for index in table.others(skipped):
            entry = table[index]
            if not entry.custom or (kind, index) in candidates:
                continue
            value = decode_entry(file, kind, entry)
            if value is None and kind == "attribute":
                value = decode_entry(file, kind, entry, foreign_encodings(dialects[entry.dialect]))
            if value is None:
                return None
            held |= _held(value)
    for block in blocks_in(file.program):
        held.update(("type", argument.type) for argument in block.arguments)
    for head in heads_in(file.program):
        held.update(("type", index) for index in head.results)
        if head.attributes is not None:
            held.add(("attribute", head.attributes))
        held.update(("attribute", index) for index in inherent_attributes(file, head).values())
    return held


# Renumber the values of a function when ops and block arguments are added or removed
#
# In bytecode an op refers to its operands by numbers, which count all values in scope: those of its isolated region,
# outermost first, and in a region those of its blocks before those in the regions of its ops. :class:`Values` assigns a
# token to every value, and in the end replaces tokens by the new numbers.

_NOWHERE: Final = -1


class Values:
    """Tokens of the values in the regions of an op.

    Operands in the regions are tokens until :meth:`number` is called.
    """

    def __init__(self, op: Operation, outer: int) -> None:
        self._op = op
        self._outer = outer
        self._tokens = outer
        # By id() of ops and blocks, which the caller keeps alive.
        self._of: dict[int, list[int]] = {}
        self._name(op, list(range(outer)))

    def of(self, holder: Operation | Block) -> list[int]:
        """Return the tokens of an op's results or a block's arguments; the list may be changed."""
        return self._of.setdefault(id(holder), [])

    def number(self) -> None:
        """Replace tokens by numbers; every op and argument must have its tokens by now."""
        numbers = [_NOWHERE] * self._tokens
        numbers[: self._outer] = range(self._outer)
        self._number(self._op, numbers, self._outer)

    def _new(self, holder: Operation | Block, number: int) -> list[int]:
        tokens = self._of[id(holder)] = list(range(self._tokens, self._tokens + number))
        self._tokens += number
        return tokens

    def _name(self, op: Operation, reach: list[int]) -> None:
        for region in op.regions:
            start = len(reach)
            for block in region.blocks:
                if block.arguments:
                    reach += self._new(block, len(block.arguments))
                for each in block.operations:
                    if each.results:
                        reach += self._new(each, len(each.results))
            for each in _ops(region):
                if each.operands:
                    each.operands = tuple([reach[number] for number in each.operands])
                if each.regions:
                    self._name(each, [] if each.isolated else reach)
            del reach[start:]

    def _number(self, op: Operation, numbers: list[int], count: int) -> None:
        for region in op.regions:
            at, defined = count, list[int]()
            for block in region.blocks:
                defined += self._of.get(id(block), ())
                for each in block.operations:
                    defined += self._of.get(id(each), ())
            for token in defined:
                numbers[token] = at
                at += 1
            for each in _ops(region):
                if each.operands:
                    each.operands = tuple([numbers[token] for token in each.operands])
                    if _NOWHERE in each.operands:
                        raise ValueError("a value is used outside its scope")
                if each.regions:
                    self._number(each, numbers, 0 if each.isolated else at)
            for token in defined:
                numbers[token] = _NOWHERE


def _ops(region: Region) -> list[Operation]:
    return [op for block in region.blocks for op in block.operations]


def read_orders(block: Block) -> list[UseListOrder]:
    """Return use-list orders that all have the number of the argument."""
    return [order._replace(value=order.value or 0) for order in block.use_lists]


def write_orders(block: Block, orders: Iterable[UseListOrder]) -> None:
    """Set use-list orders; the number of a single argument is not written."""
    alone = len(block.arguments) == 1
    block.use_lists = tuple([order._replace(value=None) if alone else order for order in orders])


# Construct an empty bytecode file, to be filled by editing its parts


def new_file(version: int, producer: str, dialects: Sequence[str]) -> File:
    names = Dialects([DialectName(index) for index in range(len(dialects))])
    nothing = EntryTable(view(b""), 0, 0)
    contents: dict[str, Chunk] = {
        "dialect": encode_dialects(names, version),
        "attr_type": b"",
        "attr_type_offset": encode_sizes(nothing, nothing),
        "ir": encode_ir(Block(), version),
        "string": encode_strings([name.encode() for name in dialects]),
    }
    if version >= PROPERTIES_SINCE:
        contents["properties"] = encode_properties([])
    sections = (join(encode_section(name, [content])) for name, content in contents.items())
    file = decode(b"".join([encode_header(version, producer), *sections]))
    file.load()
    return file


# Inline the values of ``dense_resource`` attributes, because artifacts cannot contain resources
#
# No MLIR binding exposes the contents of a resource; in a bytecode file they are in a section of their own.

_BITS: Final = pattern(r"\d+")
# An index is an integer of 64 bits.
_INDEX_BITS: Final = 64
# The digits for a byte that is zero, or is not.
_DIGITS: Final = b"0" + b"1" * 255


def inline_resources(file: File) -> None:
    """Convert every ``dense_resource`` attribute to ``dense``, without copying except booleans: eight to a byte.

    Elided resources remain, as do those of vectors, which no artifact contains.
    """
    handles = [resource for group in file.resources if not group.external for resource in group.resources]
    encoding = next(each for each in encodings_of("builtin", "attribute").values() if each.name == "dense")
    printer = Printer(file)
    kept = False
    for index, entry in enumerate(file.attributes):
        value = file.decode("attribute", index)
        if value is None or value.name != "dense_resource":
            continue
        if value.field("key") >= len(handles):
            raise entry.malformed(f"the file refers to resource {value.field('key')}, but has {len(handles)} resources")
        resource = handles[value.field("key")]
        name, kind = file.string(resource.key), file.decode("type", value.field("type"))
        if resource.left_out or resource.kind is not ResourceKind.BLOB or kind is None or kind.name != "tensor":
            kept = True
            continue
        data = _elements(printer, entry, value.field("type"), name, resource)
        empty = file.encode("attribute", Value("builtin", encoding, (value.field("type"), b"")))
        # The size is the last number of an empty attribute.
        head = bytes(empty.data)[:-1] + varint(len(data))
        file.attributes[index] = Entry(entry.dialect, True, head, rest=data)
    others = any(not group.external and file.dialect(group.owner) != "builtin" for group in file.resources)
    if not kept and not others:
        # Nothing refers to the resources any more, and the reader would copy them.
        file.resources[:] = [group for group in file.resources if group.external]


def release_alignment(file: File) -> None:
    """MLIR rejects a file with aligned resources that is not at an aligned address."""
    file.resources[:] = [
        group.with_resources([resource.unaligned() for resource in group.resources]) for group in file.resources
    ]


def _elements(printer: Printer, entry: Entry, index: int, name: str, resource: Resource) -> Chunk:
    text, shape, element = printer.builtin_tensor(index)
    match = _BITS.search(element)
    if not element or (match is None and element != "index") or any(size < 0 for size in shape):
        raise entry.malformed(f"the resource {name} has the type {text[:100]}, which cannot have values")
    bits = int(match[0]) if match else _INDEX_BITS
    size = (bits + 7) // 8 * (2 if element.startswith("complex") else 1)
    number = math.prod(shape)
    if len(resource.data) == number * size:
        if element != "i1" or not number:
            return resource.data
        # Booleans of one byte each become eight to a byte, lowest bit first.
        digits = bytes(resource.data)[::-1].translate(_DIGITS)
        return int(digits, 2).to_bytes((number + 7) // 8, "little")
    if element == "i1" and len(resource.data) == (number + 7) // 8:
        return resource.data
    found = len(resource.data)
    raise entry.malformed(f"the resource {name} contains {found} bytes, but {text[:100]} requires {number * size}")
