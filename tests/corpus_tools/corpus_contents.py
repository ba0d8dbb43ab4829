"""What occurs in a file of MLIR bytecode, by name: it tells which files to keep so that a part shows what all shows."""

from __future__ import annotations

from collections.abc import Iterator

from support.walking import walk

from vhlo_tools.bytecode import Block, Entry, File, Operation, UseListOrder, decode
from vhlo_tools.bytecode.primitives import ByteReader
from vhlo_tools.files.mapping import view

SECTIONS_SINCE = 2


def contents(data: bytes) -> set[str]:
    """Return the names of all that occurs in a file, such as ``op vhlo.add_v1`` or ``location builtin 14 of an op``."""
    return set(names(decode(data)))


def names(file: File) -> Iterator[str]:
    """Yield the names of all that occurs in ``file``."""
    yield from (f"section {section.name}" for section in file.sections)
    for index, dialect in enumerate(file.dialects.names):
        yield f"dialect {file.dialect(index)}"
        if dialect.version is not None:
            yield f"dialect version of {file.dialect(index)}"
    yield from (f"attribute {code(file, entry)}" for entry in file.attributes)
    yield from (f"type {code(file, entry)}" for entry in file.types)
    for item in walk(file.ir):
        yield from names_of_block(file, item) if isinstance(item, Block) else names_of_op(file, item)


def code(file: File, entry: Entry) -> str:
    """Return the dialect of an entry and the code that it begins with."""
    return f"{file.dialect(entry.dialect)} {ByteReader(view(entry.data)).varint() if entry.custom else 'as text'}"


def names_of_op(file: File, op: Operation) -> Iterator[str]:
    """Yield what an op has."""
    yield f"op {file.op_name(op.name)}"
    yield f"location {code(file, file.attributes[op.location])} of an op"
    if op.attributes is not None:
        yield "attributes of an op"
    if op.properties is not None:
        yield "properties of an op"
    if op.successors:
        yield "successors of an op"
    yield from (use_list(order, "results") for order in op.use_lists)
    if op.regions:
        number, kind = "several" if len(op.regions) > 1 else "one", "isolated" if op.isolated else "open"
        lazy = op.isolated and file.version >= SECTIONS_SINCE
        yield f"{number}, {kind}{' in a section' if lazy else ''}"
    if any(not region.blocks for region in op.regions):
        yield "region without blocks"


def names_of_block(file: File, block: Block) -> Iterator[str]:
    """Yield what a block has."""
    for argument in block.arguments:
        if argument.location is None:
            yield "location left out of an argument"
        else:
            yield f"location {code(file, file.attributes[argument.location])} of an argument"
    yield from (use_list(order, "arguments") for order in block.use_lists)


def use_list(order: UseListOrder, of: str) -> str:
    """Return the name of an order of uses."""
    return f"use-list of {of}, as {'pairs' if order.pairs else 'permutation'}"
