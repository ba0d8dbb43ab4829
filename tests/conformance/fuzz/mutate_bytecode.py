"""Mutation of MLIR bytecode through its decoder and encoder: tables, ops and sections stay files that can be read."""

from __future__ import annotations

import random
from collections.abc import Callable, Sized
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from typing import Any

from support.walking import walk

from fuzz.drawing import damage, hostile_string, near, number
from vhlo_tools.bytecode import (
    Block,
    DialectName,
    Entry,
    EntryTable,
    File,
    Operation,
    Properties,
    Region,
    decode,
    encode,
    varint as mlir_varint,
)
from vhlo_tools.bytecode.container import SECTION_NAMES, decode_container, encode_header, encode_section
from vhlo_tools.files.mapping import join, view
from vhlo_tools.spec import EntryKind

Edit = Callable[[random.Random, File, File], None]
#: More than any program has, and what an encoder that recurses can still write.
_DEEP = 200
_MOST = 1000
_LARGEST = 3000


def _place(chance: random.Random, table: Sized) -> int:
    return chance.randrange(len(table))


def _table(chance: random.Random, file: File) -> tuple[EntryKind, EntryTable]:
    return ("type", file.types) if chance.random() < 0.4 and file.types else ("attribute", file.attributes)


def _strings(chance: random.Random, file: File, other: File) -> None:
    at = _place(chance, file.strings)
    match chance.randrange(6):
        case 0:
            del file.strings[at]
        case 1:
            file.strings[at] = chance.choice(other.strings)
        case 2:
            file.strings.insert(at, hostile_string(chance))
        case 3:
            file.strings[at] = chance.choice(file.strings)
        case _:
            file.strings[at] = hostile_string(chance, file.strings[at])


def _dialects(chance: random.Random, file: File, other: File) -> None:
    names, ops = file.dialects.names, file.dialects.ops
    at = _place(chance, names)
    match chance.randrange(7):
        case 0:
            names[at] = replace(names[at], name=near(chance, names[at].name, len(file.strings) + 2))
        case 1:
            names[at] = replace(names[at], version=damage(chance, names[at].version or b"\3"))
        case 2:
            names[at] = replace(names[at], version=None)
        case 3:
            names.append(DialectName(chance.randrange(len(file.strings)), mlir_varint(number(chance))))
        case _ if ops:
            at = _place(chance, ops)
            ops[at] = chance.choice(
                (
                    replace(ops[at], name=near(chance, ops[at].name, len(file.strings) + 1)),
                    replace(ops[at], dialect=chance.randrange(len(names) + 1)),
                    replace(ops[at], registered=not ops[at].registered),
                    chance.choice(ops),
                )
            )


def _changed(chance: random.Random, value: Any) -> Any:
    """Return another value for a field of an attribute or type."""
    if isinstance(value, tuple):
        items = list(value)
        match chance.randrange(6):
            case 0:
                return ()
            case 1:
                return value * chance.choice((2, 3, 100, 1000))
            case 2:
                return value[:-1]
            case 3:
                return value[::-1]
            case _ if items:
                at = _place(chance, items)
                items[at] = _changed(chance, items[at])
        return tuple(items)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return near(chance, value) if chance.random() < 0.7 else -number(chance, 1 << 63)
    if value is None:
        return number(chance)
    return damage(chance, bytes(value))


def _entry_fields(chance: random.Random, file: File, other: File) -> None:
    kind, table = _table(chance, file)
    at = _place(chance, table)
    value = file.decode(kind, at)
    if value is None or not value.fields:
        table[at] = replace_data(table[at], damage(chance, bytes(table[at].data)))
        return
    fields = list(value.fields)
    which = _place(chance, fields)
    kind_of_field = value.encoding.fields[which].kind
    if isinstance(fields[which], int) and kind_of_field in ("attribute", "type", "string"):
        size = len({"attribute": file.attributes, "type": file.types}.get(kind_of_field, file.strings))
        # Within the table mostly: a reference to another entry, to itself, or in a circle.
        fields[which] = chance.choice((at, chance.randrange(size), chance.randrange(size), near(chance, size)))
    else:
        fields[which] = _changed(chance, fields[which])
    table[at] = file.encode(kind, replace(value, fields=tuple(fields)))


def replace_data(entry: Entry, data: bytes) -> Entry:
    return Entry(entry.dialect, entry.custom, data)


def _entry_bytes(chance: random.Random, file: File, other: File) -> None:
    _, table = _table(chance, file)
    at = _place(chance, table)
    entry = table[at]
    data = bytes(entry.data)
    match chance.randrange(8):
        case 0:
            table[at] = Entry(chance.randrange(len(file.dialects.names) + 1), entry.custom, data)
        case 1:
            table[at] = Entry(entry.dialect, not entry.custom, data)
        case 2:
            table[at] = Entry(entry.dialect, True, mlir_varint(number(chance, 64)) + data[1:])
        case 3:
            table[at] = Entry(entry.dialect, False, hostile_string(chance, b"unit") + b"\0")
        case 4:
            table[at] = chance.choice(table)
        case 5:
            table[at] = Entry(entry.dialect, entry.custom, b"")
        case 6:
            table.append(chance.choice(other.attributes))
        case _:
            table[at] = replace_data(entry, damage(chance, data))


def _nested_entries(chance: random.Random, file: File, other: File) -> None:
    """Add entries that refer to the one before: a chain, or with a width a tree of exponential size."""
    kind, table = _table(chance, file)
    lists = [
        value
        for index in range(len(table))
        if (value := file.decode(kind, index)) and any(kind in each.kind for each in value.encoding.fields)
    ]
    if not lists:
        return
    value = chance.choice(lists)
    which = next(index for index, field in enumerate(value.encoding.fields) if kind in field.kind)
    width = chance.choice((1, 1, 2, 10, 100))
    last = chance.randrange(len(table))
    for _ in range(chance.choice((3, 30, 30, 300, 3000)) // width + 2):
        inner: Any = (last,) * width if value.encoding.fields[which].is_list else last
        fields = (*value.fields[:which], inner, *value.fields[which + 1 :])
        table.append(file.encode(kind, replace(value, fields=fields)))
        last = len(table) - 1
    # Used from somewhere: an entry in use becomes the outermost.
    at = chance.randrange(len(table))
    table[at], table[last] = table[last], table[at]


def _properties(chance: random.Random, file: File, other: File) -> None:
    if not file.properties:
        return
    at = _place(chance, file.properties)
    data = bytes(file.properties[at].data)
    match chance.randrange(4):
        case 0:
            file.properties[at] = chance.choice(file.properties)
        case 1:
            numbers = bytearray(data)
            for _ in range(min(3, len(numbers))):
                numbers[chance.randrange(len(numbers))] = chance.randrange(len(file.attributes)) << 1 & 0xFF | 1
            file.properties[at] = Properties(bytes(numbers))
        case 2:
            file.properties[at] = Properties(data + mlir_varint(number(chance)))
        case _:
            file.properties[at] = Properties(damage(chance, data, 1))


def _blocks(file: File) -> list[Block]:
    return [each for each in walk(file.ir) if isinstance(each, Block)]


def _operations(file: File) -> list[Operation]:
    return [each for each in walk(file.ir) if isinstance(each, Operation)]


def _op_fields(chance: random.Random, file: File, other: File) -> None:
    op = chance.choice(_operations(file))
    match chance.randrange(9):
        case 0:
            op.name = chance.randrange(len(file.dialects.ops) + 1)
        case 1:
            op.location = chance.randrange(len(file.attributes) + 1)
        case 2:
            op.attributes = chance.choice((None, chance.randrange(len(file.attributes)), 0))
        case 3:
            op.properties = chance.choice((None, chance.randrange(len(file.properties) + 1)))
        case 4:
            op.results = chance.choice((op.results * 2, op.results[:-1], (chance.randrange(len(file.types)),), ()))
        case 5:
            op.operands = chance.choice((op.operands * 2, op.operands[:-1], op.operands[::-1]))
        case 6:
            values = 1 + max((value for each in _operations(file) for value in each.operands), default=0)
            op.operands = tuple(chance.randrange(values + 2) for _ in op.operands) or (chance.randrange(values),)
        case 7:
            op.successors = tuple(chance.randrange(3) for _ in range(chance.randrange(1, 4)))
        case _:
            op.isolated = not op.isolated


def _op_places(chance: random.Random, file: File, other: File) -> None:
    blocks = [each for each in _blocks(file) if each.operations]
    block, target = chance.choice(blocks), chance.choice(blocks)
    at = _place(chance, block.operations)
    op = block.operations[at]
    match chance.randrange(7):
        case 0:
            del block.operations[at]
        case 1:
            block.operations.insert(at, op)
        case 2:
            # A copy: the target may be within the op, which then would contain itself.
            target.operations.insert(chance.randrange(len(target.operations) + 1), deepcopy(op))
        case 3:
            block.operations[at:at] = [op] * chance.choice((2, 10, 10, 100, _MOST))
        case 4:
            block.operations.reverse()
        case 5:
            # What another program has at this place: its numbers mean other things here.
            block.operations[at] = chance.choice(_operations(other))
        case _:
            block.operations[at], block.operations[-1] = block.operations[-1], op


def _regions(chance: random.Random, file: File, other: File) -> None:
    op = chance.choice(_operations(file))
    match chance.randrange(5):
        case 0:
            inner = replace(op)
            for _ in range(chance.choice((1, 3, 30, _DEEP))):
                inner = Operation(op.name, op.location, regions=[Region([Block(operations=[inner])])])
            op.regions = [Region([Block(operations=[inner])])]
        case 1:
            op.regions = [*op.regions, *op.regions]
        case 2:
            op.regions = [*op.regions][:-1]
        case 3:
            op.regions = [*op.regions, Region([Block() for _ in range(chance.choice((0, 1, 3, 500)))])]
        case _:
            for region in op.regions:
                region.blocks += region.blocks


def _arguments(chance: random.Random, file: File, other: File) -> None:
    block = chance.choice(_blocks(file))
    if not block.arguments:
        return
    at = _place(chance, block.arguments)
    match chance.randrange(4):
        case 0:
            del block.arguments[at]
        case 1:
            block.arguments *= chance.choice((2, 2, 500))
        case 2:
            block.arguments[at] = block.arguments[at]._replace(type=chance.randrange(len(file.types)))
        case _:
            block.arguments[at] = block.arguments[at]._replace(location=chance.randrange(len(file.attributes)))


def _resources(chance: random.Random, file: File, other: File) -> None:
    if not file.resources:
        return
    at = _place(chance, file.resources)
    group = file.resources[at]
    if not group.resources:
        return
    resource = chance.choice(group.resources)
    changed = chance.choice(
        (
            replace(resource, key=chance.randrange(len(file.strings) + 1)),
            replace(resource, alignment=1 << chance.randrange(12)),
            replace(resource, data=damage(chance, bytes(resource.data))),
            replace(resource, data=b""),
        )
    )
    file.resources[at] = group.with_resources((*group.resources, changed))


def _header(chance: random.Random, file: File, other: File) -> None:
    major, minor = number(chance, 1 << 40), number(chance, 1 << 40)
    file.producer = chance.choice(
        (
            f"StableHLO_v{chance.choice((0, 1))}.{chance.randrange(25)}.0",
            f"StableHLO_v{major}.{minor}.0",
            f"StableHLO_v{'9' * chance.choice((5, 500, 4000))}.0.0",
            "StableHLO_v1.9.0" + hostile_string(chance).decode(errors="replace").replace("\0", ""),
            "StableHLO_v",
            "MLIR22.0.0git",
        )
    )


_EDITS: tuple[Edit, ...] = (
    *(_strings, _dialects, _entry_fields, _entry_fields, _entry_fields, _entry_bytes, _entry_bytes, _nested_entries),
    *(_properties, _properties, _op_fields, _op_fields, _op_places, _regions, _arguments, _resources, _header),
)


def _nested_ir(chance: random.Random, contents: bytes) -> bytes:
    """Return an IR section of ops in ops, deeper than an encoder could recurse."""
    levels = chance.choice((100, 1000, 10_000))
    head = mlir_varint(chance.randrange(3)) + b"\x10" + mlir_varint(0)
    isolated = chance.random() < 0.5
    if isolated:
        # A region that is isolated is a section of its own, with its size.
        inner = bytearray(mlir_varint(0))
        for _ in range(min(levels, 1000)):
            op = head + mlir_varint(1 << 1 | 1) + b"\x04" + mlir_varint(len(inner)) + inner
            inner = bytearray(mlir_varint(1) + mlir_varint(0) + mlir_varint(2)) + op
        return bytes(inner[2:])
    level = head + mlir_varint(1 << 1) + mlir_varint(1) + mlir_varint(0) + mlir_varint(2)
    return mlir_varint(2) + level * levels + contents[1:]


def _sections(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Return a file whose sections are changed, missing, doubled, or lie about their size."""
    container = decode_container(view(data))
    parts = [(each.name, data[each.offset : each.end], each.alignment) for each in container.sections]
    at = _place(chance, parts)
    name, contents, alignment = parts[at]
    version, lie = container.version, None
    match chance.randrange(11):
        case 0:
            del parts[at]
        case 1:
            parts.append(parts[at])
        case 2:
            chance.shuffle(parts)
        case 3:
            theirs = {each.name: other[each.offset : each.end] for each in decode_container(view(other)).sections}
            parts[at] = (name, theirs.get(name, b""), alignment)
        case 4:
            parts[at] = (chance.choice(SECTION_NAMES), contents, alignment)
        case 5:
            parts[at] = (name, contents, 1 << chance.randrange(16))
        case 6:
            version = number(chance, 9)
        case 7:
            lie = at
        case 8:
            place = next(index for index, part in enumerate(parts) if part[0] == "ir")
            parts[place] = ("ir", _nested_ir(chance, contents), 1)
        case _:
            parts[at] = (name, damage(chance, contents, 1), alignment)
    out = bytearray(encode_header(version, container.producer))
    for index, (name, contents, alignment) in enumerate(parts):
        section = join(encode_section(name, [contents], alignment=alignment, at=len(out)))
        if index == lie:
            section = section[:1] + mlir_varint(near(chance, len(contents))) + contents
        out += section
    return bytes(out)


def mutate_bytecode(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Return ``data``, an artifact or other bytecode, changed; parts of ``other`` may be put in."""
    way = chance.random()
    if way < 0.15:
        return damage(chance, data)
    try:
        if way < 0.35:
            return _sections(chance, data, other)
        file, theirs = decode(data), decode(other)
        file.load()
        theirs.load()
        for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
            chance.choice(_EDITS)(chance, file, theirs)
            if sum(1 for _ in islice(walk(file.ir), _LARGEST)) == _LARGEST:
                # Edits of what is large already would take all the time.
                break
        whole = encode(file)
    except Exception:
        # The edits are not valid, and the encoder need not write them.
        return damage(chance, data)
    return whole if chance.random() < 0.9 else damage(chance, whole, 1)
