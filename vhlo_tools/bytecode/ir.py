"""The IR section: ops with their regions and blocks, by indices into the tables of the file.

The ops of a block are columns, because a program has very many ops and few kinds of them: each is the number of its
:class:`Head`, which it shares with all ops that have the same name, attributes and types, its location, and its
operands. They become objects where somebody asks for :attr:`Block.operations`.

Source: «IR Section» in ``mlir/docs/BytecodeFormat.md``, and ``BytecodeReader.cpp`` for dependencies on the version of
the format: sections around isolated regions since 2, use-list orders since 3, optional locations of block arguments
since 4, properties since 5.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from itertools import accumulate, chain
from typing import Final, NamedTuple

from vhlo_tools.bytecode.container import SECTION_NAMES
from vhlo_tools.bytecode.reader import ByteReader
from vhlo_tools.bytecode.writer import SMALL, flagged, varint, varints
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.records import dataclass

__all__ = [
    "OPTIONAL_LOCATIONS_SINCE",
    "Block",
    "BlockArgument",
    "Extra",
    "Head",
    "Heads",
    "Operation",
    "Region",
    "Rows",
    "TableSizes",
    "UseListOrder",
    "blocks_in",
    "decode_ir",
    "encode_ir",
    "heads_in",
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
# What ops have beside their head, location and operands.
_EXTRA: Final = _HAS_SUCCESSORS | _HAS_REGIONS | _HAS_USE_LISTS

_IR: Final = SECTION_NAMES.index("ir")

# Real programs nest about a dozen levels deep. Python's stack ends near a thousand frames; a level takes four of them,
# and callers may have used some already.
_DEEPEST: Final = 128

# Ops are read in bulk where they have at most this number of operands, of at most four bytes each, and where this
# number of bytes follows; and so many at once, because their numbers are objects until they are in a column.
_MOST_USUAL: Final = 32
_LONGEST_USUAL: Final = 2 + 4 + 4 * _MOST_USUAL
_AT_ONCE: Final = 1 << 15
# Ops of one name differ in their types and attributes: these are the last ones that are tried.
_TRIED: Final = 8


class UseListOrder(NamedTuple):
    """The order of the uses of a value, if it is not the natural one.

    Attributes:
        value: The index of the result or argument; ``None`` if there is only one, whose index is not written.
        pairs: Whether ``indices`` are pairs of positions instead of the whole order.
        indices: The order.
    """

    value: int | None
    pairs: bool
    indices: tuple[int, ...]


class Head(NamedTuple):
    """What ops of one kind share.

    Attributes:
        name: The index of their name.
        attributes: The index of their attribute dictionary, if they have one.
        properties: The index of their properties, if they have any.
        results: The indices of the types of their results.
        operands: The number of their operands.
    """

    name: int
    attributes: int | None
    properties: int | None
    results: tuple[int, ...]
    operands: int


class Heads:
    """The heads of a program, by number, in columns too.

    Attributes:
        table: The heads.
        results: The types of the results of each.
        result_counts: The number of results of each.
        operand_counts: The number of operands of each.
    """

    __slots__ = ("_numbers", "operand_counts", "result_counts", "results", "table")

    def __init__(self) -> None:
        self.table: list[Head] = []
        self.results: list[tuple[int, ...]] = []
        self.result_counts: list[int] = []
        self.operand_counts: list[int] = []
        self._numbers: dict[Head, int] = {}

    def number(self, head: Head) -> int:
        """Return the number of a head, which is added if it is new."""
        found = self._numbers.get(head)
        if found is None:
            found = self._numbers[head] = len(self.table)
            self.table.append(head)
            self.results.append(head.results)
            self.result_counts.append(len(head.results))
            self.operand_counts.append(head.operands)
        return found

    def copy(self) -> Heads:
        """Return a copy."""
        copied = Heads()
        copied.table, copied._numbers = self.table[:], self._numbers.copy()
        copied.results, copied.result_counts = self.results[:], self.result_counts[:]
        copied.operand_counts = self.operand_counts[:]
        return copied

    def replace(self, number: int, *, attributes: int | None, properties: int | None) -> None:
        """Replace the attributes of all ops that have a head."""
        head = self.table[number]
        if self._numbers.get(head) == number:
            del self._numbers[head]
        self.table[number] = head._replace(attributes=attributes, properties=properties)


class Extra(NamedTuple):
    """What few ops have.

    Attributes:
        successors: The indices of blocks in its region.
        use_lists: The orders of the uses of its results, if they are not natural.
        regions: Its regions.
        isolated: Whether its regions use no values from outside; the numbers of their values then start from 0.
    """

    successors: tuple[int, ...] = ()
    use_lists: tuple[UseListOrder, ...] = ()
    regions: Sequence[Region] = ()
    isolated: bool = False


class Rows:
    """The ops of a block in columns.

    Args:
        kinds: The heads of the program.

    Attributes:
        kinds: The heads of the program.
        heads: The number of the head of each op.
        locations: The index of the location of each op in the attribute table.
        operands: The operands of all ops, one after the other: the numbers of values, counted from the start of their
            isolated region.
        extras: What else the op at a position has.
    """

    __slots__ = ("_starts", "extras", "heads", "kinds", "locations", "operands")

    def __init__(self, kinds: Heads) -> None:
        self.kinds = kinds
        self.heads = array("I")
        self.locations = array("I")
        self.operands = array("I")
        self.extras: dict[int, Extra] = {}
        self._starts: array[int] | None = None

    def __len__(self) -> int:
        return len(self.heads)

    def copy(self, kinds: Heads) -> Rows:
        """Return a copy without what else few ops have.

        Args:
            kinds: A copy of the heads of the program.
        """
        copied = Rows(kinds)
        copied.heads, copied.locations, copied.operands = self.heads[:], self.locations[:], self.operands[:]
        return copied

    def add(self, head: Head, location: int, operands: Sequence[int], extra: Extra | None = None) -> None:
        """Add an op."""
        if extra is not None:
            self.extras[len(self.heads)] = extra
        self.heads.append(self.kinds.number(head))
        self.locations.append(location)
        self.operands.extend(operands)

    @property
    def starts(self) -> array[int]:
        """Where the operands of each op begin in :attr:`operands`, and where those of the last end."""
        if self._starts is None:
            numbers = self.kinds.operand_counts
            self._starts = array("I", accumulate([numbers[head] for head in self.heads], initial=0))
        return self._starts

    def head(self, position: int) -> Head:
        """Return the head of an op."""
        return self.kinds.table[self.heads[position]]

    @property
    def kinds_of_ops(self) -> Iterator[Head]:
        """The head of each op."""
        return map(self.kinds.table.__getitem__, self.heads)

    @property
    def results(self) -> Iterator[int]:
        """The types of the results of all ops, in order."""
        types = self.kinds.results
        return chain.from_iterable([types[head] for head in self.heads])

    @property
    def values(self) -> int:
        """The number of results of all ops."""
        numbers = self.kinds.result_counts
        return sum([numbers[head] for head in self.heads])

    def operation(self, position: int) -> Operation:
        """Return an op as an object, of which changes do not count."""
        head, starts = self.head(position), self.starts
        return Operation(
            head.name,
            self.locations[position],
            head.attributes,
            head.properties,
            head.results,
            tuple(self.operands[starts[position] : starts[position + 1]]),
            *self.extras.get(position, ()),
        )


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

    @property
    def head(self) -> Head:
        """What it shares with other ops of its kind."""
        return Head(self.name, self.attributes, self.properties, self.results, len(self.operands))


class BlockArgument(NamedTuple):
    """An argument of a block.

    Attributes:
        type: The index of its type.
        location: The index of its location; ``None`` if it is unknown and not written.
    """

    type: int
    location: int | None


class Block:
    """A block.

    Args:
        arguments: Its arguments.
        operations: Its ops.
        use_lists: The orders of the uses of its arguments.
        use_list_mark: The byte that indicates these.
        rows: Its ops in columns, instead of ``operations``.

    Attributes:
        arguments: Its arguments.
        use_lists: The orders of the uses of its arguments, if they are not natural.
        use_list_mark: The byte that indicates use-list orders; some producers write other values than 0 or 1.
    """

    __slots__ = ("_operations", "_rows", "arguments", "use_list_mark", "use_lists")

    def __init__(
        self,
        arguments: list[BlockArgument] | None = None,
        operations: list[Operation] | None = None,
        use_lists: tuple[UseListOrder, ...] = (),
        use_list_mark: int = 0,
        *,
        rows: Rows | None = None,
    ) -> None:
        self.arguments = [] if arguments is None else arguments
        self.use_lists = use_lists
        self.use_list_mark = use_list_mark
        self._rows = rows
        self._operations = ([] if operations is None else operations) if rows is None else None

    @property
    def operations(self) -> list[Operation]:
        """Its ops as objects, which may be edited; from now on they are what counts, and :attr:`rows` a copy."""
        if self._operations is None:
            rows = self.rows
            self._operations = [rows.operation(position) for position in range(len(rows))]
            self._rows = None
        return self._operations

    @operations.setter
    def operations(self, operations: list[Operation]) -> None:
        self._operations, self._rows = operations, None

    @property
    def rows(self) -> Rows:
        """Its ops in columns; of ops that have become objects, a copy.

        Raises:
            ValueError: If an op has a number that is no index.
        """
        if self._rows is not None:
            return self._rows
        rows = Rows(Heads())
        try:
            for op in self._operations or ():
                has_extra = op.successors or op.use_lists or op.regions or op.isolated
                extra = Extra(op.successors, op.use_lists, op.regions, op.isolated) if has_extra else None
                rows.add(op.head, op.location, op.operands, extra)
        except OverflowError as error:
            raise ValueError(f"an op has a location or an operand that is no index: {error}") from error
        return rows

    def copy(self, kinds: dict[int, Heads]) -> Block:
        """Return a copy, in columns.

        Args:
            kinds: The copies of the heads of the program that were made so far, by id().
        """
        rows = self.rows
        heads = kinds.get(id(rows.kinds)) if self.is_columnar else rows.kinds
        if heads is None:
            heads = kinds[id(rows.kinds)] = rows.kinds.copy()
        copied = rows.copy(heads)
        for position, extra in rows.extras.items():
            regions = [Region([block.copy(kinds) for block in region.blocks]) for region in extra.regions]
            copied.extras[position] = extra._replace(regions=regions or ())
        return Block(self.arguments[:], None, self.use_lists, self.use_list_mark, rows=copied)

    @property
    def regions(self) -> Iterator[Region]:
        """The regions of its ops."""
        holders: Iterable[Operation | Extra] = (
            self._rows.extras.values() if self._rows is not None else self._operations or ()
        )
        return chain.from_iterable([holder.regions for holder in holders])

    @property
    def is_columnar(self) -> bool:
        """Whether its ops are columns, so that a change of :attr:`rows` is a change of the block."""
        return self._rows is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Block):
            return NotImplemented
        return (self.arguments, self.operations, self.use_lists, self.use_list_mark) == (
            other.arguments,
            other.operations,
            other.use_lists,
            other.use_list_mark,
        )

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._operations or ()) if self._rows is None else len(self._rows)


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
        return sum(len(block.arguments) + block.rows.values for block in self.blocks)


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


class _Kind(NamedTuple):
    """A head as ops of its kind have it in the file.

    Attributes:
        tail: The bytes between the location and the operands.
        size: Their number.
        head: The number of the head.
        operands: The number of operands.
        ordered: The number of results if orders of their uses follow the operands, else 0.
    """

    tail: bytes
    size: int
    head: int
    operands: int
    ordered: int


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
        """Read ``number`` indices into a table with ``size`` entries."""
        if number > len(self.data) - self.position:
            raise self.malformed(f"{number} {things} where {len(self.data) - self.position} bytes remain")
        values = [self.varint() for _ in range(number)]
        if values and max(values) >= size:
            raise self.malformed(f"index {max(values)} is outside the table of {size} {things}")
        return values

    def block(self, values: int, depth: int) -> Block:
        """Read a block with ``values`` values in scope."""
        head = self.varint()
        rows = Rows(self.heads)
        block = Block(rows=rows)
        if head & 1:
            self.arguments(block)
        number = head >> 1
        if number > len(self.data) - self.position:
            raise self.malformed(f"{number} ops were announced, but only {len(self.data) - self.position} bytes remain")
        while len(rows.heads) < number:
            self.usual_operations(rows, min(number - len(rows.heads), _AT_ONCE), values)
            if len(rows.heads) < number:
                self.operation(rows, values, depth)
        return block

    def usual_operations(self, rows: Rows, number: int, values: int) -> None:
        """Read up to ``number`` ops that are of the kinds of ops before them.

        Stop before the first op of another kind or with damage, which :meth:`operation` then reads or rejects. As no
        number is the beginning of another, bytes that begin with those of a kind are of this kind.
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
        """Read an op of any kind."""
        tables, start = self.tables, self.position
        name = self.index(tables.op_names, "op names")
        mask = self.byte()
        if mask & ~_KNOWN:
            raise self.malformed(f"op mask 0x{mask:02x} has unknown bits")
        location = self.index(tables.attributes, "attributes")
        at = self.position
        attributes = self.index(tables.attributes, "attributes") if mask & _HAS_ATTRIBUTES else None
        properties = self.index(tables.properties, "properties") if mask & _HAS_PROPERTIES else None
        results = self.indices(self.varint(), tables.types, "types") if mask & _HAS_RESULTS else []
        number = self.varint() if mask & _HAS_OPERANDS else 0
        tail = self.data[at : self.position]
        operands = self.indices(number, values, "values")
        head = Head(name, attributes, properties, tuple(results), number)
        if not mask & _EXTRA:
            rows.add(head, location, operands)
        else:
            successors = self.indices(self.varint(), self.blocks, "blocks") if mask & _HAS_SUCCESSORS else []
            use_lists = self.use_lists(len(results)) if mask & _HAS_USE_LISTS else ()
            regions, isolated = self.regions(values, depth + 1) if mask & _HAS_REGIONS else ((), False)
            rows.add(head, location, operands, Extra(tuple(successors), use_lists, regions, isolated))
        is_usual = not mask & (_HAS_SUCCESSORS | _HAS_REGIONS) and number <= _MOST_USUAL and self.data[start] & 1
        ordered = len(results) if mask & _HAS_USE_LISTS else 0
        if is_usual and bool(ordered) == bool(mask & _HAS_USE_LISTS) and not self.is_damaged:
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

    def regions(self, values: int, depth: int) -> tuple[Sequence[Region], bool]:
        """Read the regions of an op, and whether they are isolated."""
        if depth > _DEEPEST:
            raise self.malformed(f"ops nest deeper than {_DEEPEST} levels")
        head = self.varint()
        number, isolated = head >> 1, bool(head & 1)
        if number > len(self.data) - self.position:
            raise self.malformed(f"{number} regions where {len(self.data) - self.position} bytes remain")
        end = self.enter_section() if isolated and self.version >= _SECTIONS_SINCE else None
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
    encoder = _Encoder(version)
    out = bytearray()
    encoder.block(block, out)
    return bytes(out)


class _Encoder:
    def __init__(self, version: int) -> None:
        self.version = version
        # The bytes of the heads of a program: before and after the location.
        self.kinds: Heads | None = None
        self.coded: dict[int, tuple[bytes, bytes, int]] = {}

    def block(self, block: Block, out: bytearray) -> None:
        rows = block.rows
        out += flagged(len(rows), bool(block.arguments))
        if block.arguments:
            self.arguments(block, out)
        coded = self.coded
        if rows.kinds is not self.kinds:
            coded = {}
            if block.is_columnar:
                self.kinds, self.coded = rows.kinds, coded
        locations, operands, at = rows.locations, rows.operands, 0
        stops = iter([*rows.extras, len(rows)])
        stop = next(stops)
        small, most = SMALL, len(SMALL)
        for position, head in enumerate(rows.heads):
            found = coded.get(head)
            if found is None:
                found = coded[head] = _of_head(rows.kinds.table[head])
            before, after, number = found
            extra = None
            if position == stop:
                extra = rows.extras[position]
                stop = next(stops)
                before = before[:-1] + bytes([before[-1] | self.mask(extra)])
            location = locations[position]
            out += before
            if location < most:
                out += small[location]
            elif location < 1 << 21:
                out += (location << 3 | 4).to_bytes(3, "little") if location >= 1 << 14 else varint(location)
            else:
                out += varint(location)
            out += after
            if number:
                for operand in operands[at : at + number]:
                    # Numbers of three bytes, nearly all in a program of very many ops, are written inline.
                    if operand < most:
                        out += small[operand]
                    elif 1 << 14 <= operand < 1 << 21:
                        out += (operand << 3 | 4).to_bytes(3, "little")
                    else:
                        out += varint(operand)
                at += number
            if extra is not None:
                self.extra(extra, rows.kinds.result_counts[head], out)

    def arguments(self, block: Block, out: bytearray) -> None:
        out += varint(len(block.arguments))
        for argument in block.arguments:
            if self.version >= OPTIONAL_LOCATIONS_SINCE:
                out += flagged(argument.type, argument.location is not None)
            elif argument.location is None:
                raise ValueError(
                    f"a block argument has no location, which version {self.version} of the format requires"
                )
            else:
                out += varint(argument.type)
            if argument.location is not None:
                out += varint(argument.location)
        if self.version >= _USE_LISTS_SINCE:
            out.append((block.use_list_mark or 1) if block.use_lists else 0)
            self.use_lists(block.use_lists, len(block.arguments), out)

    def use_lists(self, orders: tuple[UseListOrder, ...], values: int, out: bytearray) -> None:
        if not orders:
            return
        if values > 1:
            out += varint(len(orders))
        for order in orders:
            if order.value is not None:
                out += varint(order.value)
            out += flagged(len(order.indices), order.pairs)
            out += varints(order.indices)

    def mask(self, extra: Extra) -> int:
        # Older versions cannot store the orders; the program is the same without them.
        use_lists = extra.use_lists and self.version >= _USE_LISTS_SINCE
        return (
            (_HAS_SUCCESSORS if extra.successors else 0)
            | (_HAS_USE_LISTS if use_lists else 0)
            | (_HAS_REGIONS if extra.regions else 0)
        )

    def extra(self, extra: Extra, results: int, out: bytearray) -> None:
        if extra.successors:
            out += varint(len(extra.successors))
            out += varints(extra.successors)
        if self.version >= _USE_LISTS_SINCE:
            self.use_lists(extra.use_lists, results, out)
        if not extra.regions:
            return
        out += flagged(len(extra.regions), extra.isolated)
        if extra.isolated and self.version >= _SECTIONS_SINCE:
            inner = bytearray()
            for region in extra.regions:
                self.region(region, inner)
            out.append(_IR)
            out += varint(len(inner))
            out += inner
            return
        for region in extra.regions:
            self.region(region, out)

    def region(self, region: Region, out: bytearray) -> None:
        out += varint(len(region.blocks))
        if region.blocks:
            out += varint(region.values)
            for block in region.blocks:
                self.block(block, out)


def _of_head(head: Head) -> tuple[bytes, bytes, int]:
    """Return the bytes of ops before and after their location, and the number of their operands."""
    mask = (
        (_HAS_ATTRIBUTES if head.attributes is not None else 0)
        | (_HAS_PROPERTIES if head.properties is not None else 0)
        | (_HAS_RESULTS if head.results else 0)
        | (_HAS_OPERANDS if head.operands else 0)
    )
    after = [each for each in (head.attributes, head.properties) if each is not None]
    if head.results:
        after += [len(head.results), *head.results]
    if head.operands:
        after.append(head.operands)
    return varint(head.name) + bytes([mask]), varints(after), head.operands


def heads_in(block: Block) -> Counter[Head]:
    """Return the heads of the ops of ``block`` and of every block in it, with the numbers of ops that have them."""
    found: Counter[Head] = Counter()
    counts: dict[int, tuple[Heads, Counter[int]]] = {}
    for each in blocks_in(block):
        rows = each.rows
        counts.setdefault(id(rows.kinds), (rows.kinds, Counter()))[1].update(rows.heads)
    for kinds, numbers in counts.values():
        for number, count in numbers.items():
            found[kinds.table[number]] += count
    return found


def blocks_in(block: Block) -> Iterator[Block]:
    """Yield ``block`` and every block in it, outermost first."""
    pending = [block]
    while pending:
        each = pending.pop()
        yield each
        pending += reversed([inner for region in each.regions for inner in region.blocks])
