"""Reader and writer of MLIR bytecode without MLIR.

The format is that of ``mlir/docs/BytecodeFormat.md`` in llvm/llvm-project; where the document is silent,
``mlir/lib/Bytecode/Reader/BytecodeReader.cpp`` decides. One module for each section, decode and encode side by side;
every length, count, index and offset is bounds-checked before use.
"""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.bytecode.codec import (
        OversizedShapeError,
        Value,
        bits_of,
        children,
        codes_beside,
        decode_entry,
        encode_entry,
        encoding_of_entry,
        entry_name,
        references,
    )
    from vhlo_tools.bytecode.container import (
        NEWEST_BYTECODE,
        PROPERTIES_SINCE,
        Container,
        DialectName,
        Dialects,
        OpName,
        Resource,
        ResourceGroup,
        ResourceKind,
        Section,
        decode_container,
    )
    from vhlo_tools.bytecode.editing import (
        AttributeLayout,
        Attributes,
        Tables,
        Values,
        change_attributes,
        collect_garbage,
        inline_resources,
        new_file,
        read_orders,
        release_alignment,
        write_orders,
    )
    from vhlo_tools.bytecode.elements import digest, element_texts, same_bytes, shortest_form
    from vhlo_tools.bytecode.entries import Entry, EntryTable, Properties, attributes_in
    from vhlo_tools.bytecode.entry_printing import Printer
    from vhlo_tools.bytecode.file import File, decode, encode, encode_chunks, is_compiled, table_of, without_collection
    from vhlo_tools.bytecode.ir import OPTIONAL_LOCATIONS_SINCE
    from vhlo_tools.bytecode.primitives import ByteReader, varint
    from vhlo_tools.bytecode.printing import print_program
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
    from vhlo_tools.bytecode.stripping import strip_locations
    from vhlo_tools.bytecode.traversal import (
        Frame,
        Place,
        SourceLocations,
        attributes_of,
        function_types,
        inherent_attributes,
        program_name,
        visit,
    )
else:
    __getattr__, __dir__ = lazy_exports(__name__)
