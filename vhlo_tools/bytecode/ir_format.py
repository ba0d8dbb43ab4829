"""Constants of the IR section: bits of the op mask, and the versions of the format that have each part.

Source: «IR Section» in ``mlir/docs/BytecodeFormat.md``, and ``BytecodeReader.cpp`` for dependencies on the version of
the format: sections around isolated regions since 2, use-list orders since 3, optional locations of block arguments
since 4, properties since 5.
"""

from __future__ import annotations

from typing import Final

from vhlo_tools.bytecode.container import SECTION_NAMES

SECTIONS_SINCE: Final = 2
USE_LISTS_SINCE: Final = 3
OPTIONAL_LOCATIONS_SINCE: Final = 4

#: The bits of an op's mask.
HAS_ATTRIBUTES: Final = 0x01
HAS_RESULTS: Final = 0x02
HAS_OPERANDS: Final = 0x04
HAS_SUCCESSORS: Final = 0x08
HAS_REGIONS: Final = 0x10
HAS_USE_LISTS: Final = 0x20
HAS_PROPERTIES: Final = 0x40
KNOWN: Final = 0x7F

#: The mark of a section with regions.
IR: Final = SECTION_NAMES.index("ir")

#: So many ops are read, and operands written, at once: their numbers are objects until they are in a column.
AT_ONCE: Final = 1 << 15
