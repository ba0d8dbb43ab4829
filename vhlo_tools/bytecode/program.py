"""A program: ops with their regions and blocks, by indices into the tables of the file.

The ops of a block are columns, because a program has very many ops and few kinds of them: each is the number of its
:class:`Head`, which it shares with all ops that have the same name, attributes and types, its location, and its
operands. They become objects where somebody asks for :attr:`Block.operations`.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from itertools import accumulate, chain
from typing import ClassVar, NamedTuple

from vhlo_tools.records import dataclass


class UseListOrder(NamedTuple):
    """The order of the uses of a value, if it is not the natural one."""

    value: int | None  # index of the result or argument; None if there is only one: not written
    pairs: bool  # whether ``indices`` are pairs of positions instead of the whole order
    indices: tuple[int, ...]


class Head(NamedTuple):
    """The common part of ops of one kind, as indices into the tables of the file."""

    name: int
    attributes: int | None
    properties: int | None
    results: tuple[int, ...]  # indices of types
    operands: int  # number of operands


class Heads:
    """Heads of a program by number, and columns made from them."""

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
    """Rare parts of an op."""

    successors: tuple[int, ...] = ()  # indices of blocks in the op's region
    use_lists: tuple[UseListOrder, ...] = ()
    regions: Sequence[Region] = ()
    isolated: bool = False  # its regions use no values from outside; the numbers of their values then start from 0


class Rows:
    """The ops of a block in columns."""

    __slots__ = ("_starts", "extras", "heads", "kinds", "locations", "operands")

    def __init__(self, kinds: Heads) -> None:
        self.kinds: Heads = kinds
        self.heads: array[int] = array("I")
        self.locations: array[int] = array("I")
        #: Operands of all ops, one after the other: the numbers of values, counted from the start of the isolated
        #: region.
        self.operands: array[int] = array("I")
        self.extras: dict[int, Extra] = {}  # by position of the op
        self._starts: array[int] | None = None

    def __len__(self) -> int:
        return len(self.heads)

    def copy(self, kinds: Heads) -> Rows:
        """Return a copy without extras; ``kinds`` is a copy of the heads of the program."""
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
        """Start of each op's operands in :attr:`operands`, and the end of the last op's."""
        if self._starts is None:
            numbers = self.kinds.operand_counts
            self._starts = array("I", accumulate(map(numbers.__getitem__, self.heads), initial=0))
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
        """Types of the results of all ops, in order."""
        types = self.kinds.results
        return chain.from_iterable(map(types.__getitem__, self.heads))

    @property
    def values(self) -> int:
        """Number of results of all ops."""
        numbers = self.kinds.result_counts
        return sum(map(numbers.__getitem__, self.heads))

    def operation(self, position: int) -> Operation:
        """Return an op as an object; changes of it do not count."""
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
    """An op, with indices into the tables of the file."""

    name: int
    location: int
    attributes: int | None = None
    properties: int | None = None
    results: tuple[int, ...] = ()
    operands: tuple[int, ...] = ()  # numbers of values, counted from the start of the isolated region
    successors: tuple[int, ...] = ()
    use_lists: tuple[UseListOrder, ...] = ()
    regions: Sequence[Region] = ()
    isolated: bool = False  # its regions use no values from outside; the numbers of their values then start from 0

    @property
    def head(self) -> Head:
        """The part shared with other ops of its kind."""
        return Head(self.name, self.attributes, self.properties, self.results, len(self.operands))


class BlockArgument(NamedTuple):
    """An argument of a block."""

    type: int
    location: int | None  # index; None if it is unknown and not written


class Block:
    """A block: its ops are objects or columns, whichever was changed last."""

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
        self.arguments: list[BlockArgument] = [] if arguments is None else arguments
        self.use_lists: tuple[UseListOrder, ...] = use_lists
        #: Byte that announces use-list orders; some producers write other values than 0 or 1.
        self.use_list_mark: int = use_list_mark
        self._rows = rows
        self._operations = ([] if operations is None else operations) if rows is None else None

    @property
    def operations(self) -> list[Operation]:
        """Ops as objects, to be edited; from then on they count, and :attr:`rows` is a copy."""
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
        """Ops in columns; a copy once ops have become objects."""
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
        """Return a copy in columns; ``kinds`` are the copies of heads made so far, by ``id()``."""
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

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._operations or ()) if self._rows is None else len(self._rows)


@dataclass(slots=True)
class Region:
    """A region."""

    blocks: list[Block] = field(default_factory=list)

    @property
    def values(self) -> int:
        """Number of values defined directly in it."""
        return sum(len(block.arguments) + block.rows.values for block in self.blocks)


def heads_in(block: Block) -> Counter[Head]:
    """Count the heads of the ops in ``block`` and in every block within it."""
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
