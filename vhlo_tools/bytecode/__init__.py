"""The MLIR bytecode container, read without MLIR.

The format is that of ``mlir/docs/BytecodeFormat.md`` in llvm/llvm-project; where the document is silent,
``mlir/lib/Bytecode/Reader/BytecodeReader.cpp`` decides. One module for each section; every length, count, index and
offset is bounded before it is believed.
"""

from vhlo_tools.bytecode.container import MAGIC, NEWEST_BYTECODE, Container, Section, decode_container
from vhlo_tools.bytecode.dialects import DialectEntry, OpName, decode_dialects
from vhlo_tools.bytecode.strings import decode_strings

__all__ = [
    "MAGIC",
    "NEWEST_BYTECODE",
    "Container",
    "DialectEntry",
    "OpName",
    "Section",
    "decode_container",
    "decode_dialects",
    "decode_strings",
]
