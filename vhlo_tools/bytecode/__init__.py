"""MLIR bytecode, read and written without MLIR.

The format is that of ``mlir/docs/BytecodeFormat.md`` in llvm/llvm-project; where the document is silent,
``mlir/lib/Bytecode/Reader/BytecodeReader.cpp`` decides. One module for each section, decode and encode side by side;
every length, count, index and offset is bounded before it is believed.
"""

from vhlo_tools.bytecode.codec import Value, decode_entry, encode_entry, entry_name, references
from vhlo_tools.bytecode.container import (
    MAGIC,
    NEWEST_BYTECODE,
    PROPERTIES_SINCE,
    Chunk,
    Container,
    Section,
    decode_container,
)
from vhlo_tools.bytecode.dialects import DialectName, Dialects, OpName
from vhlo_tools.bytecode.entries import Entry
from vhlo_tools.bytecode.file import File, decode, encode, encode_chunks
from vhlo_tools.bytecode.ir import Block, BlockArgument, Operation, Region, UseListOrder, walk
from vhlo_tools.bytecode.properties import Properties, attributes_in
from vhlo_tools.bytecode.resources import Resource, ResourceGroup, ResourceKind
from vhlo_tools.bytecode.stripping import strip_locations
from vhlo_tools.bytecode.visiting import Place, visit

__all__ = [
    "MAGIC",
    "NEWEST_BYTECODE",
    "PROPERTIES_SINCE",
    "Block",
    "BlockArgument",
    "Chunk",
    "Container",
    "DialectName",
    "Dialects",
    "Entry",
    "File",
    "OpName",
    "Operation",
    "Place",
    "Properties",
    "Region",
    "Resource",
    "ResourceGroup",
    "ResourceKind",
    "Section",
    "UseListOrder",
    "Value",
    "attributes_in",
    "decode",
    "decode_container",
    "decode_entry",
    "encode",
    "encode_chunks",
    "encode_entry",
    "entry_name",
    "references",
    "strip_locations",
    "visit",
    "walk",
]
