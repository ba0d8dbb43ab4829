"""Decode the IR section: the program, in the order of its text (:mod:`vhlo_tools.bytecode.ir_format`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from vhlo_tools.bytecode.ir_format import (
    AT_ONCE,
    HAS_ATTRIBUTES,
    HAS_OPERANDS,
    HAS_PROPERTIES,
    HAS_REGIONS,
    HAS_RESULTS,
    HAS_SUCCESSORS,
    HAS_USE_LISTS,
    IR,
    KNOWN,
    OPTIONAL_LOCATIONS_SINCE,
    SECTIONS_SINCE,
    USE_LISTS_SINCE,
)
from vhlo_tools.bytecode.program import Block, BlockArgument, Extra, Head, Heads, Region, Rows, UseListOrder
from vhlo_tools.bytecode.reader import ByteReader
from vhlo_tools.errors import MalformedArtifactError

# What ops have beside their head, location and operands.
_EXTRA: Final = HAS_SUCCESSORS | HAS_REGIONS | HAS_USE_LISTS

# Real programs nest about a dozen levels deep. Python's stack ends near a thousand frames; a level takes four of them,
# and callers may have used some already.
_DEEPEST: Final = 128

# Ops are read in bulk where they have at most this number of operands, of at most four bytes each, and where this
# number of bytes follows.
_MOST_USUAL: Final = 32
_LONGEST_USUAL: Final = 2 + 4 + 4 * _MOST_USUAL
# Ops of one name differ in their types and attributes: these are the last ones that are tried.
_TRIED: Final = 8


class TableSizes(NamedTuple):
    op_names: int
    attributes: int
    types: int
    properties: int


def decode_ir(reader: ByteReader, version: int, tables: TableSizes, *, bodies: bool = True) -> Block:
    """Decode the top level: a block that contains the module.

    Without ``bodies``, isolated regions of ops in the module are skipped where the format gives their sizes: no
    regions.
    """
    decoder = _Decoder(reader, version, tables, _DEEPEST if bodies else 1)
    block = decoder.block(0, 0)
    if decoder.position != len(decoder.data):
        raise decoder.malformed(f"{len(decoder.data) - decoder.position} bytes follow the program")
    return block


class _Kind(NamedTuple):
    """The form in which ops with a head are stored in the file."""

    tail: bytes  # the bytes between the location and the operands
    size: int  # of ``tail``
    head: int  # number of the head
    operands: int  # number of operands
    ordered: int  # number of results if use-list orders follow the operands, else 0


class _Decoder:
    """Decoder with copies of the primitives of :class:`ByteReader` for speed: a file of many ops is mostly IR."""

    def __init__(self, reader: ByteReader, version: int, tables: TableSizes, deepest: int) -> None:
        self.start = reader.position
        # Indexing bytes is faster than indexing a view, and an IR section holds no constants.
        self.data = bytes(reader.take(reader.remaining))
        self.position = 0
        self.blocks = 0
        self.version = version
        self.tables = tables
        # Isolated regions below this level are passed over.
        self.deepest = deepest
        self.locations_optional = version >= OPTIONAL_LOCATIONS_SINCE
        self.heads = Heads()
        # By the bytes with which an op begins, its name and its mask: the kinds of the last such ops.
        self.kinds: dict[bytes, list[_Kind]] = {}
        self.is_damaged = False

    def malformed(self, message: str) -> MalformedArtifactError:
        return MalformedArtifactError(message, offset=self.start + self.position, section="ir")

    def varint(self) -> int:
        data, position = self.data, self.position
        if position >= len(data):
            raise self.malformed("the bytes end where another byte was expected")
        first = data[position]
        if first & 1:
            self.position = position + 1
            return first >> 1
        size = 9 if first == 0 else (first & -first).bit_length()
        if position + size > len(data):
            raise self.malformed("a number is cut short")
        self.position = position + size
        if first == 0:
            return int.from_bytes(data[position + 1 : position + 9], "little")
        return int.from_bytes(data[position : position + size], "little") >> size

    def index(self, size: int, things: str) -> int:
        value = self.varint()
        if value >= size:
            raise self.malformed(f"index {value} is outside the table of {size} {things}")
        return value

    def count(self, things: str) -> int:
        value = self.varint()
        if value > len(self.data) - self.position:
            raise self.malformed(
                f"{value} {things} were announced, but only {len(self.data) - self.position} bytes remain"
            )
        return value

    def indices(self, number: int, size: int, things: str) -> list[int]:
        if number > len(self.data) - self.position:
            raise self.malformed(f"{number} {things} where {len(self.data) - self.position} bytes remain")
        values = [self.varint() for _ in range(number)]
        if values and max(values) >= size:
            raise self.malformed(f"index {max(values)} is outside the table of {size} {things}")
        return values

    def block(self, values: int, depth: int) -> Block:
        head = self.varint()
        rows = Rows(self.heads)
        block = Block(rows=rows)
        if head & 1:
            self.arguments(block)
        number = head >> 1
        if number > len(self.data) - self.position:
            raise self.malformed(f"{number} ops were announced, but only {len(self.data) - self.position} bytes remain")
        while len(rows.heads) < number:
            self.usual_operations(rows, min(number - len(rows.heads), AT_ONCE), values)
            if len(rows.heads) < number:
                self.operation(rows, values, depth)
        return block

    def usual_operations(self, rows: Rows, number: int, values: int) -> None:
        """Read up to ``number`` ops of kinds seen before; stop before another kind or damage, for :meth:`operation`.

        As no number is the beginning of another, bytes that begin with those of a kind are of this kind.
        """
        data, position, kinds = self.data, self.position, self.kinds
        start, end = position, len(data) - _LONGEST_USUAL
        heads: list[int] = []
        locations: list[int] = []
        operands: list[int] = []
        extras: dict[int, Extra] = {}
        while len(heads) < number and position < end:
            at = position + 2
            tried = kinds.get(data[position:at])
            if tried is None:
                break
            first = data[at]
            if first & 1:
                location = first >> 1
                at += 1
            elif first & 2:
                location = (data[at + 1] << 8 | first) >> 2
                at += 2
            elif first & 4:
                location = (data[at + 2] << 16 | data[at + 1] << 8 | first) >> 3
                at += 3
            elif first & 8:
                location = (data[at + 3] << 24 | data[at + 2] << 16 | data[at + 1] << 8 | first) >> 4
                at += 4
            else:
                break
            for kind in tried:
                if data.startswith(kind.tail, at):
                    break
            else:
                break
            _, size, head, wanted, ordered = kind
            at += size
            for done in range(wanted):
                first = data[at]
                if first & 1:
                    operands.append(first >> 1)
                    at += 1
                elif first & 2:
                    operands.append((data[at + 1] << 8 | first) >> 2)
                    at += 2
                elif first & 4:
                    operands.append((data[at + 2] << 16 | data[at + 1] << 8 | first) >> 3)
                    at += 3
                elif first & 8:
                    operands.append((data[at + 3] << 24 | data[at + 2] << 16 | data[at + 1] << 8 | first) >> 4)
                    at += 4
                else:
                    del operands[len(operands) - done :]
                    number = 0
                    break
            else:
                if ordered:
                    self.position = at
                    extras[len(heads)] = Extra((), self.use_lists(ordered))
                    at = self.position
                heads.append(head)
                locations.append(location)
                position = at
        if max(locations, default=-1) >= self.tables.attributes or max(operands, default=-1) >= values:
            # Which op is damaged matters for the message only: from here on they are read one by one.
            self.kinds.clear()
            self.is_damaged, self.position = True, start
            return
        for place, extra in extras.items():
            rows.extras[len(rows.heads) + place] = extra
        rows.heads.extend(heads)
        rows.locations.extend(locations)
        rows.operands.extend(operands)
        self.position = position

    def operation(self, rows: Rows, values: int, depth: int) -> None:
        tables, start = self.tables, self.position
        name = self.index(tables.op_names, "op names")
        mask = self.byte()
        if mask & ~KNOWN:
            raise self.malformed(f"op mask 0x{mask:02x} has unknown bits")
        location = self.index(tables.attributes, "attributes")
        at = self.position
        attributes = self.index(tables.attributes, "attributes") if mask & HAS_ATTRIBUTES else None
        properties = self.index(tables.properties, "properties") if mask & HAS_PROPERTIES else None
        results = self.indices(self.varint(), tables.types, "types") if mask & HAS_RESULTS else []
        number = self.varint() if mask & HAS_OPERANDS else 0
        tail = self.data[at : self.position]
        operands = self.indices(number, values, "values")
        head = Head(name, attributes, properties, tuple(results), number)
        if not mask & _EXTRA:
            rows.add(head, location, operands)
        else:
            successors = self.indices(self.varint(), self.blocks, "blocks") if mask & HAS_SUCCESSORS else []
            use_lists = self.use_lists(len(results)) if mask & HAS_USE_LISTS else ()
            regions, isolated = self.regions(values, depth + 1) if mask & HAS_REGIONS else ((), False)
            rows.add(head, location, operands, Extra(tuple(successors), use_lists, regions, isolated))
        is_usual = not mask & (HAS_SUCCESSORS | HAS_REGIONS) and number <= _MOST_USUAL and self.data[start] & 1
        ordered = len(results) if mask & HAS_USE_LISTS else 0
        if is_usual and bool(ordered) == bool(mask & HAS_USE_LISTS) and not self.is_damaged:
            tried = self.kinds.setdefault(self.data[start : start + 2], [])
            tried.insert(0, _Kind(tail, len(tail), rows.heads[-1], number, ordered))
            del tried[_TRIED:]

    def arguments(self, block: Block) -> None:
        types, attributes = self.tables.types, self.tables.attributes
        for _ in range(self.count("block arguments")):
            if self.locations_optional:
                head = self.varint()
                if head >> 1 >= types:
                    raise self.malformed(f"index {head >> 1} is outside the table of {types} types")
                location = self.index(attributes, "attributes") if head & 1 else None
                block.arguments.append(BlockArgument(head >> 1, location))
            else:
                block.arguments.append(BlockArgument(self.index(types, "types"), self.index(attributes, "attributes")))
        if self.version >= USE_LISTS_SINCE:
            block.use_list_mark = self.byte()
            if block.use_list_mark:
                block.use_lists = self.use_lists(len(block.arguments))
                if not block.use_lists:
                    raise self.malformed("a block announces use-list orders, but has none")

    def byte(self) -> int:
        if self.position >= len(self.data):
            raise self.malformed("the bytes end where another byte was expected")
        self.position += 1
        return self.data[self.position - 1]

    def use_lists(self, values: int) -> tuple[UseListOrder, ...]:
        orders = []
        for _ in range(self.count("use-list orders") if values > 1 else 1):
            value = self.index(values, "values") if values > 1 else None
            head = self.varint()
            if head >> 1 > len(self.data) - self.position:
                raise self.malformed(f"a use-list order of {head >> 1} where {len(self.data)} bytes remain")
            orders.append(UseListOrder(value, bool(head & 1), tuple([self.varint() for _ in range(head >> 1)])))
        return tuple(orders)

    def regions(self, values: int, depth: int) -> tuple[Sequence[Region], bool]:
        if depth > _DEEPEST:
            raise self.malformed(f"ops nest deeper than {_DEEPEST} levels")
        head = self.varint()
        number, isolated = head >> 1, bool(head & 1)
        if number > len(self.data) - self.position:
            raise self.malformed(f"{number} regions where {len(self.data) - self.position} bytes remain")
        end = self.enter_section() if isolated and self.version >= SECTIONS_SINCE else None
        if end is not None and depth > self.deepest:
            self.position = end
            return (), isolated
        regions = []
        # No comprehension here and in `region`, because it takes a stack frame of its own before Python 3.12.
        for _ in range(number):
            regions.append(self.region(0 if isolated else values, depth))
        if end is not None and self.position != end:
            raise self.malformed(f"a section of regions ends at {self.start + end}, but its regions end here")
        return regions, isolated

    def enter_section(self) -> int:
        mark = self.byte()
        if mark != IR:
            raise self.malformed(f"expected a section with regions, found a section with mark {mark}")
        size = self.count("bytes")
        return self.position + size

    def region(self, values: int, depth: int) -> Region:
        number = self.count("blocks")
        if number == 0:
            return Region()
        defined = self.count("values")
        around, self.blocks = self.blocks, number
        blocks = []
        for _ in range(number):
            blocks.append(self.block(values + defined, depth))
        self.blocks = around
        region = Region(blocks)
        if region.values != defined:
            raise self.malformed(f"a region announces {defined} values, but defines {region.values}")
        return region
