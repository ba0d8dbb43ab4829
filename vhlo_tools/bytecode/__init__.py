"""Reader and writer of MLIR bytecode without MLIR.

The format is that of ``mlir/docs/BytecodeFormat.md`` in llvm/llvm-project; where the document is silent,
``mlir/lib/Bytecode/Reader/BytecodeReader.cpp`` decides. One module for each section, decode and encode side by side;
every length, count, index and offset is bounds-checked before use.
"""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.bytecode.building import new_file
    from vhlo_tools.bytecode.codec import Value, bits_of, decode_entry, encode_entry, entry_name, references
    from vhlo_tools.bytecode.compilation import is_compiled
    from vhlo_tools.bytecode.container import (
        NEWEST_BYTECODE,
        PROPERTIES_SINCE,
        Chunk,
        Container,
        Section,
        decode_container,
    )
    from vhlo_tools.bytecode.dialects import DialectName, Dialects, OpName
    from vhlo_tools.bytecode.editing.attribute_layout import AttributeLayout, Attributes, change_attributes
    from vhlo_tools.bytecode.editing.garbage import collect_garbage
    from vhlo_tools.bytecode.editing.tables import Tables
    from vhlo_tools.bytecode.editing.value_numbers import Values, read_orders, write_orders
    from vhlo_tools.bytecode.elements import digest, element_texts, same_bytes, shortest_form
    from vhlo_tools.bytecode.entries import Entry, EntryTable
    from vhlo_tools.bytecode.file import File, decode, encode, encode_chunks, without_collection
    from vhlo_tools.bytecode.ir_format import OPTIONAL_LOCATIONS_SINCE
    from vhlo_tools.bytecode.paths import Frame, Places, attributes_of, function_types, program_name
    from vhlo_tools.bytecode.printing import Printer, inherent_attributes, print_program
    from vhlo_tools.bytecode.program import (
        Block,
        BlockArgument,
        Extra,
        Head,
        Heads,
        Operation,
        Region,
        Rows,
        UseListOrder,
        blocks_in,
        heads_in,
    )
    from vhlo_tools.bytecode.properties import Properties, attributes_in
    from vhlo_tools.bytecode.reader import ByteReader
    from vhlo_tools.bytecode.resource_inlining import inline_resources, release_alignment
    from vhlo_tools.bytecode.resources import Resource, ResourceGroup, ResourceKind
    from vhlo_tools.bytecode.stripping import strip_locations
    from vhlo_tools.bytecode.visiting import Place, visit
    from vhlo_tools.bytecode.writer import varint
else:
    __getattr__, __dir__ = lazy_exports(__name__)
