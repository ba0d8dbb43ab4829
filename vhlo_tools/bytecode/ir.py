"""The IR section: ops with their regions and blocks, by indices into the tables of the file.

Source: «IR Section» in ``mlir/docs/BytecodeFormat.md``, and ``BytecodeReader.cpp`` for dependencies on the version of
the format: sections around isolated regions since 2, use-list orders since 3, optional locations of block arguments
since 4, properties since 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Final

from vhlo_tools.bytecode.container import SECTION_NAMES
from vhlo_tools.bytecode.reader import ByteReader
from vhlo_tools.bytecode.writer import flagged, varint
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.records import dataclass

__all__ = [
    "OPTIONAL_LOCATIONS_SINCE",
    "Block",
    "BlockArgument",
    "Operation",
    "Region",
    "TableSizes",
    "UseListOrder",
    "decode_ir",
    "encode_ir",
    "walk",
]

_SECTIONS_SINCE: Final = 2
_USE_LISTS_SINCE: Final = 3
OPTIONAL_LOCATIONS_SINCE: Final = 4

_HAS_ATTRIBUTES: Final = 0x01
_HAS_RESULTS: Final = 0x02
_HAS_OPERANDS: Final = 0x04
_HAS_SUCCESSORS: Final = 0x08
_HAS_REGIONS: Final = 0x10
_HAS_USE_LISTS: Final = 0x20
_HAS_PROPERTIES: Final = 0x40
_KNOWN: Final = 0x7F

# The number of integers after the mask, up to and including the number of results, by the relevant bits of the mask.
_IN_HEAD: Final = _HAS_ATTRIBUTES | _HAS_PROPERTIES | _HAS_RESULTS
_HEADS: Final = [1 + (mask & _IN_HEAD).bit_count() for mask in range(_KNOWN + 1)]

# The fields of nearly all ops, and the usual limits: the number of results or operands, and the size in bytes.
_LISTS: Final = _HAS_RESULTS | _HAS_OPERANDS
_USUAL: Final = _HAS_ATTRIBUTES | _HAS_PROPERTIES | _LISTS
_MOST_USUAL: Final = 16
_LONGEST_USUAL: Final = 128
# The number of integers between the mask of such an op and its first list.
_USUAL_HEADS: Final = [1 + (mask & _USUAL & ~_LISTS).bit_count() for mask in range(_USUAL + 1)]

_IR: Final = SECTION_NAMES.index("ir")

# Real programs nest about a dozen levels deep. Python's stack ends near a thousand frames; a level takes four of them,
# and callers may have used some already.
_DEEPEST: Final = 128


@dataclass(frozen=True, slots=True)
class UseListOrder:
    """The order of the uses of a value, if it is not the natural one.

    Attributes:
        value: The index of the result or argument; ``None`` if there is only one, whose index is not written.
        pairs: Whether ``indices`` are pairs of positions instead of the whole order.
        indices: The order.
    """

    value: int | None
    pairs: bool
    indices: tuple[int, ...]


@dataclass(slots=True)
class Operation:
    """An op.

    Attributes:
        name: The index of its name.
        location: The index of its location in the attribute table.
        attributes: The index of its attribute dictionary, if it has one.
        properties: The index of its properties, if it has any.
        results: The indices of the types of its results.
        operands: The numbers of the values that it uses, counted from the start of its isolated region.
        successors: The indices of blocks in its region.
        use_lists: The orders of the uses of its results, if they are not natural.
        regions: Its regions.
        isolated: Whether its regions use no values from outside; the numbers of their values then start from 0.
    """

    name: int
    location: int
    attributes: int | None = None
    properties: int | None = None
    results: tuple[int, ...] = ()
    operands: tuple[int, ...] = ()
    successors: tuple[int, ...] = ()
    use_lists: tuple[UseListOrder, ...] = ()
    regions: Sequence[Region] = ()
    isolated: bool = False


@dataclass(frozen=True, slots=True)
class BlockArgument:
    """An argument of a block.

    Attributes:
        type: The index of its type.
        location: The index of its location; ``None`` if it is unknown and not written.
    """

    type: int
    location: int | None


@dataclass(slots=True)
class Block:
    """A block.

    Attributes:
        arguments: Its arguments.
        operations: Its ops.
        use_lists: The orders of the uses of its arguments, if they are not natural.
        use_list_mark: The byte that indicates use-list orders; some producers write other values than 0 or 1.
    """

    arguments: list[BlockArgument] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    use_lists: tuple[UseListOrder, ...] = ()
    use_list_mark: int = 0


@dataclass(slots=True)
class Region:
    """A region.

    Attributes:
        blocks: Its blocks.
    """

    blocks: list[Block] = field(default_factory=list)

    @property
    def values(self) -> int:
        """The number of values that are defined directly in it."""
        return sum(len(block.arguments) + sum([len(op.results) for op in block.operations]) for block in self.blocks)


@dataclass(frozen=True, slots=True)
class TableSizes:
    """The sizes of the tables to which ops refer.

    Attributes:
        op_names: The number of op names.
        attributes: The number of attributes.
        types: The number of types.
        properties: The number of properties.
    """

    op_names: int
    attributes: int
    types: int
    properties: int


def decode_ir(reader: ByteReader, version: int, tables: TableSizes, *, bodies: bool = True) -> Block:
    """Decode the top level: a block that contains the module.

    Args:
        reader: The contents of the section.
        version: The version of the format.
        tables: The sizes of the tables, which bound every index.
        bodies: Whether to decode the bodies of functions. Without them, the isolated regions of ops in the module are
            passed over unread where the format gives their sizes, and these ops have no regions.

    Raises:
        MalformedArtifactError: If the section, as far as it is decoded, is damaged.
    """
    decoder = _Decoder(reader, version, tables, _DEEPEST if bodies else 1)
    block = decoder.block(0, 0)
    if decoder.position != len(decoder.data):
        raise decoder.malformed(f"{len(decoder.data) - decoder.position} bytes follow the program")
    return block


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
        return self.checked(self.varint(), size, things)

    def count(self, things: str) -> int:
        value = self.varint()
        if value > len(self.data) - self.position:
            raise self.malformed(
                f"{value} {things} were announced, but only {len(self.data) - self.position} bytes remain"
            )
        return value

    def checked(self, value: int, size: int, things: str) -> int:
        if value >= size:
            raise self.malformed(f"index {value} is outside the table of {size} {things}")
        return value

    def indices(self, number: int, size: int, things: str) -> tuple[int, ...]:
        """Read ``number`` indices into a table with ``size`` entries."""
        if number > len(self.data) - self.position:
            raise self.malformed(f"{number} {things} where {len(self.data) - self.position} bytes remain")
        values = self.varints(number)
        if values and max(values) >= size:
            raise self.malformed(f"index {max(values)} is outside the table of {size} {things}")
        return tuple(values)

    def varints(self, number: int) -> list[int]:
        """Read ``number`` integers; those of up to three bytes, nearly all, are decoded inline."""
        data, position, last = self.data, self.position, len(self.data) - 3
        values = []
        for _ in range(number):
            if position < last and (first := data[position]) & 7:
                if first & 1:
                    values.append(first >> 1)
                    position += 1
                elif first & 2:
                    values.append((data[position + 1] << 8 | first) >> 2)
                    position += 2
                else:
                    values.append((data[position + 2] << 16 | data[position + 1] << 8 | first) >> 3)
                    position += 3
            else:
                self.position = position
                values.append(self.varint())
                position = self.position
        self.position = position
        return values

    def block(self, values: int, depth: int) -> Block:
        """Read a block with ``values`` values in scope."""
        head = self.varint()
        block = Block()
        if head & 1:
            self.arguments(block)
        number = head >> 1
        if number > len(self.data) - self.position:
            raise self.malformed(f"{number} ops were announced, but only {len(self.data) - self.position} bytes remain")
        while len(block.operations) < number:
            self.usual_operations(block.operations, number, values)
            if len(block.operations) < number:
                block.operations.append(self.operation(values, depth))
        return block

    def usual_operations(self, operations: list[Operation], number: int, values: int) -> None:
        """Read ops of the usual form until there are ``number``, in two thirds of the time of :meth:`operation`.

        Stop before the first op of another form or with damage, which :meth:`operation` then reads or rejects.
        """
        data, tables, position = self.data, self.tables, self.position
        end = len(data) - _LONGEST_USUAL
        for _ in range(len(operations), number):
            if position >= end or not data[position] & 1:
                break
            name, mask = data[position] >> 1, data[position + 1]
            if name >= tables.op_names or mask & ~_USUAL:
                break
            # The head is followed by the lists, each after its length. As in `varints`, a number of more than three
            # bytes is not usual.
            numbers: list[int] = []
            wanted, at, lists, results = _USUAL_HEADS[mask], position + 2, mask & _LISTS, 0
            while wanted and (first := data[at]) & 7:
                if first & 1:
                    numbers.append(first >> 1)
                    at += 1
                elif first & 2:
                    numbers.append((data[at + 1] << 8 | first) >> 2)
                    at += 2
                else:
                    numbers.append((data[at + 2] << 16 | data[at + 1] << 8 | first) >> 3)
                    at += 3
                wanted -= 1
                if not wanted and lists:
                    if not (first := data[at]) & 1 or not 0 < first >> 1 <= _MOST_USUAL:
                        wanted = 1
                        break
                    wanted = first >> 1
                    at += 1
                    if lists & _HAS_RESULTS:
                        results, lists = wanted, lists ^ _HAS_RESULTS
                    else:
                        lists = 0
            if wanted or numbers[0] >= tables.attributes:
                break
            op, taken = Operation(name, numbers[0]), 1
            if mask & _HAS_ATTRIBUTES:
                op.attributes, taken = numbers[1], 2
                if numbers[1] >= tables.attributes:
                    break
            if mask & _HAS_PROPERTIES:
                op.properties, taken = numbers[taken], taken + 1
                if numbers[taken - 1] >= tables.properties:
                    break
            if mask & _HAS_RESULTS:
                op.results = tuple(numbers[taken : taken + results])
                if max(op.results) >= tables.types:
                    break
            if mask & _HAS_OPERANDS:
                op.operands = tuple(numbers[taken + results :])
                if max(op.operands) >= values:
                    break
            operations.append(op)
            position = at
        self.position = position

    def arguments(self, block: Block) -> None:
        types, attributes = self.tables.types, self.tables.attributes
        for _ in range(self.count("block arguments")):
            if self.locations_optional:
                head = self.varint()
                self.checked(head >> 1, types, "types")
                location = self.index(attributes, "attributes") if head & 1 else None
                block.arguments.append(BlockArgument(head >> 1, location))
            else:
                block.arguments.append(BlockArgument(self.index(types, "types"), self.index(attributes, "attributes")))
        if self.version >= _USE_LISTS_SINCE:
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

    def operation(self, values: int, depth: int) -> Operation:
        """Read an op with few calls per number, because most of a file of many ops is read here."""
        tables = self.tables
        name = self.index(tables.op_names, "op names")
        mask = self.byte()
        if mask & ~_KNOWN:
            raise self.malformed(f"op mask 0x{mask:02x} has unknown bits")
        # The location; then, depending on the mask, attributes, properties, and the number of results.
        head = iter(self.varints(_HEADS[mask & _IN_HEAD]))
        op = Operation(name, self.checked(next(head), tables.attributes, "attributes"))
        if mask & _HAS_ATTRIBUTES:
            op.attributes = self.checked(next(head), tables.attributes, "attributes")
        if mask & _HAS_PROPERTIES:
            op.properties = self.checked(next(head), tables.properties, "properties")
        if mask & _HAS_RESULTS:
            op.results = self.indices(next(head), tables.types, "types")
        if mask & _HAS_OPERANDS:
            op.operands = self.indices(self.varint(), values, "values")
        if mask & _HAS_SUCCESSORS:
            op.successors = self.indices(self.varint(), self.blocks, "blocks")
        if mask & _HAS_USE_LISTS:
            op.use_lists = self.use_lists(len(op.results))
        if mask & _HAS_REGIONS:
            self.regions(op, values, depth + 1)
        return op

    def regions(self, op: Operation, values: int, depth: int) -> None:
        if depth > _DEEPEST:
            raise self.malformed(f"ops nest deeper than {_DEEPEST} levels")
        head = self.varint()
        number, op.isolated = head >> 1, bool(head & 1)
        if number > len(self.data) - self.position:
            raise self.malformed(f"{number} regions where {len(self.data) - self.position} bytes remain")
        end = self.enter_section() if op.isolated and self.version >= _SECTIONS_SINCE else None
        if end is not None and depth > self.deepest:
            self.position = end
            return
        regions = []
        # No comprehension here and in `region`, because it takes a stack frame of its own before Python 3.12.
        for _ in range(number):
            regions.append(self.region(0 if op.isolated else values, depth))
        op.regions = regions
        if end is not None and self.position != end:
            raise self.malformed(f"a section of regions ends at {self.start + end}, but its regions end here")

    def enter_section(self) -> int:
        mark = self.byte()
        if mark != _IR:
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


def encode_ir(block: Block, version: int) -> bytes:
    """Encode the section with the top level ``block``, for a file of format ``version``."""
    out = bytearray()
    _encode_block(block, version, out)
    return bytes(out)


def _encode_block(block: Block, version: int, out: bytearray) -> None:
    out += flagged(len(block.operations), bool(block.arguments))
    if block.arguments:
        out += varint(len(block.arguments))
        for argument in block.arguments:
            if version >= OPTIONAL_LOCATIONS_SINCE:
                out += flagged(argument.type, argument.location is not None)
            elif argument.location is None:
                raise ValueError(f"a block argument has no location, which version {version} of the format requires")
            else:
                out += varint(argument.type)
            if argument.location is not None:
                out += varint(argument.location)
        if version >= _USE_LISTS_SINCE:
            out.append((block.use_list_mark or 1) if block.use_lists else 0)
            _encode_use_lists(block.use_lists, len(block.arguments), out)
    for op in block.operations:
        _encode_operation(op, version, out)


def _encode_use_lists(orders: tuple[UseListOrder, ...], values: int, out: bytearray) -> None:
    if not orders:
        return
    if values > 1:
        out += varint(len(orders))
    for order in orders:
        if order.value is not None:
            out += varint(order.value)
        out += flagged(len(order.indices), order.pairs)
        for index in order.indices:
            out += varint(index)


def _encode_operation(op: Operation, version: int, out: bytearray) -> None:
    out += varint(op.name)
    # Older versions cannot store the orders; the program is the same without them.
    use_lists = op.use_lists if version >= _USE_LISTS_SINCE else ()
    out.append(
        (_HAS_ATTRIBUTES if op.attributes is not None else 0)
        | (_HAS_PROPERTIES if op.properties is not None else 0)
        | (_HAS_RESULTS if op.results else 0)
        | (_HAS_OPERANDS if op.operands else 0)
        | (_HAS_SUCCESSORS if op.successors else 0)
        | (_HAS_USE_LISTS if use_lists else 0)
        | (_HAS_REGIONS if op.regions else 0)
    )
    out += varint(op.location)
    if op.attributes is not None:
        out += varint(op.attributes)
    if op.properties is not None:
        out += varint(op.properties)
    for indices in (op.results, op.operands, op.successors):
        if indices:
            out += varint(len(indices))
            for index in indices:
                out += varint(index)
    _encode_use_lists(use_lists, len(op.results), out)
    if op.regions:
        out += flagged(len(op.regions), op.isolated)
        _encode_regions(op, version, out)


def _encode_regions(op: Operation, version: int, out: bytearray) -> None:
    if op.isolated and version >= _SECTIONS_SINCE:
        inner = bytearray()
        for region in op.regions:
            _encode_region(region, version, inner)
        out.append(_IR)
        out += varint(len(inner))
        out += inner
        return
    for region in op.regions:
        _encode_region(region, version, out)


def _encode_region(region: Region, version: int, out: bytearray) -> None:
    out += varint(len(region.blocks))
    if region.blocks:
        out += varint(region.values)
        for block in region.blocks:
            _encode_block(block, version, out)


def walk(block: Block) -> Iterator[Operation | Block]:
    """Yield ``block`` and every op and block in it, outermost first."""
    pending: list[Operation | Block] = [block]
    while pending:
        item = pending.pop()
        yield item
        if isinstance(item, Block):
            pending += reversed(item.operations)
        else:
            pending += [each for region in reversed(item.regions) for each in reversed(region.blocks)]
