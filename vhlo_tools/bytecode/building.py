"""Construct an empty bytecode file, to be filled by editing its parts."""

from __future__ import annotations

from collections.abc import Sequence

from vhlo_tools.bytecode.container import PROPERTIES_SINCE, encode_header, encode_section
from vhlo_tools.bytecode.dialects import DialectName, Dialects, encode_dialects
from vhlo_tools.bytecode.entries import EntryTable, encode_sizes
from vhlo_tools.bytecode.file import File, decode
from vhlo_tools.bytecode.ir_encoding import encode_ir
from vhlo_tools.bytecode.program import Block
from vhlo_tools.bytecode.properties import encode_properties
from vhlo_tools.bytecode.strings import encode_strings
from vhlo_tools.files import Chunk, join, view


def new_file(version: int, producer: str, dialects: Sequence[str]) -> File:
    names = Dialects([DialectName(index) for index in range(len(dialects))])
    nothing = EntryTable(view(b""), 0)
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
