"""What occurs in a file of MLIR bytecode: a walk over all of it that names each kind of thing and knows no more of it.

It tells which files to keep so that a part of a corpus shows what all of it shows. The layout is that of
``mlir/docs/BytecodeFormat.md``, and of ``BytecodeReader.cpp`` where it depends on the version.
"""

from __future__ import annotations

from vhlo_tools.bytecode import Container, DialectEntry, decode_container, decode_dialects, decode_strings
from vhlo_tools.bytecode.container import read_section
from vhlo_tools.bytecode.reader import ByteReader

__all__ = ["contents"]

# The codes of the builtin dialect: ``mlir/IR/BuiltinDialectBytecode.td``.
ATTRIBUTES = (
    *(
        "ArrayAttr",
        "DictionaryAttr",
        "StringAttr",
        "StringAttrWithType",
        "FlatSymbolRefAttr",
        "SymbolRefAttr",
        "TypeAttr",
    ),
    *("UnitAttr", "IntegerAttr", "FloatAttr", "CallSiteLoc", "FileLineColLoc", "FusedLoc", "FusedLocWithMetadata"),
    *("NameLoc", "UnknownLoc", "DenseResourceElementsAttr", "DenseArrayAttr", "DenseIntOrFPElementsAttr"),
    *("DenseStringElementsAttr", "SparseElementsAttr", "DistinctAttr", "FileLineColRange"),
)
TYPES = (
    *("IntegerType", "IndexType", "FunctionType", "BFloat16Type", "Float16Type", "Float32Type", "Float64Type"),
    *("Float80Type", "Float128Type", "ComplexType", "MemRefType", "MemRefTypeWithMemSpace", "NoneType"),
    *("RankedTensorType", "RankedTensorTypeWithEncoding", "TupleType", "UnrankedMemRefType"),
    *("UnrankedMemRefTypeWithMemSpace", "UnrankedTensorType", "VectorType", "VectorTypeWithScalableDims"),
)
LAZY_REGIONS_SINCE, USE_LISTS_SINCE, ELIDED_LOCATIONS_SINCE, PROPERTIES_SINCE = 2, 3, 4, 5
ATTRIBUTE, RESULT, OPERAND, SUCCESSOR, REGION, USE_LIST, PROPERTIES = (1 << bit for bit in range(7))


def contents(data: bytes) -> set[str]:
    """Return the names of all that occurs in a file, such as ``op vhlo.add_v1`` or ``location NameLoc of an op``."""
    return Walk(data).found


class Walk:
    """A walk over a file; ``found`` is what was met."""

    def __init__(self, data: bytes) -> None:
        self.data = memoryview(data)
        self.container: Container = decode_container(self.data)
        self.version = self.container.version
        self.dialects = decode_dialects(self.data, self.container, decode_strings(self.data, self.container))
        self.ops = [f"{dialect.name}.{op.name}" for dialect in self.dialects for op in dialect.ops]
        self.found = {f"section {section.name}" for section in self.container.sections}
        self.found |= {f"dialect {dialect.name}" for dialect in self.dialects}
        self.found |= {f"dialect version of {dialect.name}" for dialect in self.dialects if dialect.version}
        self.attributes, self.types = self.entries()
        self.found.update(self.attributes, self.types)
        reader = self.container.section("ir").reader(self.data)
        while reader.remaining:
            self.block(reader)

    def entries(self) -> tuple[list[str], list[str]]:
        """Return what each attribute and each type is."""
        offsets = self.container.section("attr_type_offset").reader(self.data)
        values = self.container.section("attr_type").reader(self.data)
        counts = offsets.varint(), offsets.varint()
        tables: tuple[list[str], list[str]] = ([], [])
        for what, names, count, table in zip(("attribute", "type"), (ATTRIBUTES, TYPES), counts, tables, strict=True):
            while len(table) < count:
                dialect = self.dialects[offsets.varint()]
                for _ in range(offsets.varint()):
                    size, encoded = divmod(offsets.varint(), 2)
                    end = values.position + size
                    table.append(f"{what} {self.entry(dialect, values, names, bool(encoded))}")
                    values.position = end
        return tables

    def entry(self, dialect: DialectEntry, values: ByteReader, names: tuple[str, ...], encoded: bool) -> str:
        """Return the name of the entry that starts here."""
        if not encoded:
            return f"{dialect.name} as text"
        code = values.varint()
        if dialect.name == "builtin" and code < len(names):
            return f"builtin {names[code]}"
        return f"{dialect.name} {code}"

    def location(self, index: int, owner: str) -> None:
        """Note the location of something."""
        kind = self.attributes[index].removeprefix("attribute builtin ")
        self.found.add(f"location {kind} of {owner}")

    def block(self, reader: ByteReader) -> None:
        """Walk over a block."""
        count, has_arguments = divmod(reader.varint(), 2)
        arguments = reader.varint() if has_arguments else 0
        for _ in range(arguments):
            self.argument(reader)
        if has_arguments and self.version >= USE_LISTS_SINCE and reader.byte():
            self.use_lists(reader, arguments, "arguments")
        for _ in range(count):
            self.operation(reader)

    def argument(self, reader: ByteReader) -> None:
        """Walk over an argument of a block."""
        located = 1
        kind = reader.varint()
        if self.version >= ELIDED_LOCATIONS_SINCE:
            located = kind & 1
        if located:
            self.location(reader.varint(), "an argument")
        else:
            self.found.add("location left out of an argument")

    def use_lists(self, reader: ByteReader, values: int, of: str) -> None:
        """Walk over the orders in which the uses of some values stand."""
        for _ in range(reader.varint() if values > 1 else 1):
            if values > 1:
                reader.varint()
            count, pairs = divmod(reader.varint(), 2)
            for _ in range(count):
                reader.varint()
            self.found.add(f"use-list of {of}, as {'pairs' if pairs else 'permutation'}")

    def operation(self, reader: ByteReader) -> None:
        """Walk over an op."""
        name = self.ops[reader.varint()]
        mask = reader.byte()
        self.found.add(f"op {name}")
        self.location(reader.varint(), "an op")
        if mask & ATTRIBUTE:
            reader.varint()
            self.found.add("attributes of an op")
        if mask & PROPERTIES and self.version >= PROPERTIES_SINCE:
            reader.varint()
            self.found.add("properties of an op")
        results = self.indices(reader) if mask & RESULT else 0
        for bit in (OPERAND, SUCCESSOR):
            if mask & bit:
                self.indices(reader)
        if mask & SUCCESSOR:
            self.found.add("successors of an op")
        if mask & USE_LIST and self.version >= USE_LISTS_SINCE:
            self.use_lists(reader, results, "results")
        if mask & REGION:
            self.regions(reader)

    def indices(self, reader: ByteReader) -> int:
        """Walk over a list of indices, and return how many there are."""
        count = reader.varint()
        for _ in range(count):
            reader.varint()
        return count

    def regions(self, reader: ByteReader) -> None:
        """Walk over the regions of an op."""
        count, isolated = divmod(reader.varint(), 2)
        lazy = isolated and self.version >= LAZY_REGIONS_SINCE
        self.found.add(
            f"{'several' if count > 1 else 'one'}, {'isolated' if isolated else 'open'}{' in a section' * lazy}"
        )
        inside = read_section(reader).reader(self.data) if lazy else reader
        for _ in range(count):
            if blocks := inside.varint():
                inside.varint()
            else:
                self.found.add("region without blocks")
            for _ in range(blocks):
                self.block(inside)
