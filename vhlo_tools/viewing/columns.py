"""Columns of a graph and of its page: tables of numbers in place of objects."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from vhlo_tools.bytecode import Block, Head, Region
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass
from vhlo_tools.spec import known_versions

if TYPE_CHECKING:
    from vhlo_tools.bytecode import Frame
    from vhlo_tools.version import Version
    from vhlo_tools.viewing.folding import Group
    from vhlo_tools.viewing.graph import ProgramGraph

# Ops and values of a program as numbers in columns, gathered from all of its blocks
#
# Ops of a block are numbered one after the other, before those in their regions, so that a block is a range. Values are
# numbered region by region: the arguments and results of each block, in order.


class BlockSpan(NamedTuple):
    start: int  # the number of its first op
    stop: int  # the number after that of its last op
    op: int | None  # the op whose region has it; None at the top
    region: int  # the number of that region among those of the op
    number: int  # its number in the region
    first_argument: int  # a value; the other arguments follow
    arguments: int  # their number

    @property
    def ops(self) -> range:
        return range(self.start, self.stop)


class Columns:
    """The ops and values of a program."""

    __slots__ = (
        *("_inside", "_numbers", "_starts", "blocks", "first_operands", "first_results", "heads", "kinds"),
        *("locations", "operands", "regions", "successors", "value_types"),
    )

    def __init__(self, program: Block) -> None:
        self.kinds: list[Head] = []  # shared by ops: name, attributes, types
        self.heads: array[int] = array("I")  # the kind of each op
        self.locations: array[int] = array("I")  # the index of the location of each op in the table of attributes
        self.operands: array[int] = array("I")  # the values that all ops use, one op after the other
        self.first_operands: array[int] = array("I", [0])  # start of each op in operands; one more than there are ops
        self.first_results: array[int] = array("I")  # the first result of each op; the others follow
        self.value_types: array[int] = array("I")  # the index of the type of each value
        self.blocks: list[BlockSpan] = []  # those in regions of an op come after the block of the op
        self.regions: dict[int, int] = {}  # the number of regions of each op that has any
        self.successors: dict[int, tuple[int, ...]] = {}  # blocks by number in the region
        self._numbers: dict[Head, int] = {}
        self._region(Region([program]), [], None, 0)
        self._starts = [block.start for block in self.blocks]
        self._inside: dict[int, list[BlockSpan]] = {}
        for block in self.blocks:
            if block.op is not None:
                self._inside.setdefault(block.op, []).append(block)

    def __len__(self) -> int:
        return len(self.heads)

    def operands_of(self, op: int) -> Sequence[int]:
        return self.operands[self.first_operands[op] : self.first_operands[op + 1]]

    def results_of(self, op: int) -> range:
        first = self.first_results[op]
        return range(first, first + len(self.kinds[self.heads[op]].results))

    def blocks_in(self, op: int) -> Sequence[BlockSpan]:
        return self._inside.get(op, ())

    def block_of(self, op: int) -> int:
        """Return the number of the block that an op is in."""
        # Of empty blocks, which begin where the next one does, the last is found that is not empty.
        return bisect_right(self._starts, op) - 1

    def _region(self, region: Region, scope: list[int], parent: int | None, number: int) -> None:
        """Number the contents of a region, whose ops see the values of ``scope``."""
        outer = len(scope)
        spans = [self._block(block, scope, parent, number, index) for index, block in enumerate(region.blocks)]
        for block in region.blocks:
            rows = block.rows
            # A value may be used before the block that gives it.
            self.operands.extend([scope[local] for local in rows.operands])
        for block, span in zip(region.blocks, spans, strict=True):
            extras = block.rows.extras
            for position in sorted(extras):
                extra, op = extras[position], span.start + position
                if extra.successors:
                    self.successors[op] = extra.successors
                if extra.regions:
                    self.regions[op] = len(extra.regions)
                inner = [] if extra.isolated else scope
                for index, each in enumerate(extra.regions):
                    self._region(each, inner, op, index)
        del scope[outer:]

    def _block(self, block: Block, scope: list[int], parent: int | None, region: int, index: int) -> BlockSpan:
        rows, types = block.rows, self.value_types
        start, first = len(self.heads), len(types)
        types.extend([argument.type for argument in block.arguments])
        heads = [self._number(head) for head in rows.kinds_of_ops]
        self.heads.extend(heads)
        self.locations.extend(rows.locations)
        value, use = len(types), self.first_operands[-1]
        for head in rows.kinds_of_ops:
            self.first_results.append(value)
            value += len(head.results)
            use += head.operands
            self.first_operands.append(use)
        types.extend(chain.from_iterable([self.kinds[head].results for head in heads]))
        scope.extend(range(first, len(types)))
        span = BlockSpan(start, len(self.heads), parent, region, index, first, len(block.arguments))
        self.blocks.append(span)
        return span

    def _number(self, head: Head) -> int:
        found = self._numbers.get(head)
        if found is None:
            found = self._numbers[head] = len(self.kinds)
            self.kinds.append(head)
        return found


# Graph of a program as columns of numbers and tables of texts, which a page reads
#
# Half a million ops fit a page so: what ops share stands in tables once, and an op is five numbers.

#: The characters of attributes that a page has, all kinds of ops together; those of further kinds are left out.
MOST_ATTRIBUTE_TEXT: Final = 4_000_000

_Key = TypeVar("_Key", bound=Hashable)


class _Table(Generic[_Key]):
    """Numbers of things, in the order in which they first came."""

    def __init__(self) -> None:
        self.numbers: dict[_Key, int] = {}

    def __call__(self, thing: _Key) -> int:
        return self.numbers.setdefault(thing, len(self.numbers))

    @property
    def things(self) -> list[_Key]:
        return list(self.numbers)


@dataclass(frozen=True, slots=True)
class GraphColumns:
    """A text is a number in ``strings``; a version is one in those of the page, -1 if it is not known."""

    strings: list[str]
    #: Of each kind of op: its short name, its name in the file, the version that introduced it or -1, the number of
    #: its operands, the types of its results, and its attributes: names and texts by turns, or None if the page has no
    #: room for them.
    kinds: list[list[object]]
    kind: list[int]  # of each op
    operands: list[int]  # All operands, one op after the other: each as the difference to the first result of the op.
    #: Of each block: first op, number of ops, op around it or -1, region, first argument, types of arguments.
    blocks: list[list[object]]
    feature_sets: list[list[str]]  # feature ids of ops; the first set is empty
    features: list[int]  # the set of each op
    introduced: list[int]  # the oldest version that has each op with its features, or -1
    frames: list[list[int]]  # file, line, column, function
    stacks: list[tuple[int, int]]  # innermost frame, and the stack around it or -1
    stack: list[int]  # of each op, or -1
    label: list[int]  # the producer's name of each op, or -1
    groups: list[list[object]]  # kind, label, op or -1, number of ops, number of members; the first is the whole
    members: list[int]  # of all groups: an op, or a group inverted (``~``)


def version_number(version: Version | None) -> int:
    """Return the position of a version among the known ones; -1 for any other, or none."""
    if version is None:
        return -1
    wanted = version.minor_release
    return next((number for number, each in enumerate(known_versions()) if each.version == wanted), -1)


def graph_columns(graph: ProgramGraph) -> GraphColumns:
    text: _Table[str] = _Table()
    sets: _Table[tuple[str, ...]] = _Table()
    sets(())
    versions: _Table[Version | None] = _Table()
    columns = graph.columns
    introduced = [versions(graph.introduced(op)) for op in range(len(graph))]
    numbers = [version_number(each) for each in versions.things]
    frames, stacks, stack = _stacks(graph, text)
    labels = {location: graph.label(op) for location, op in _first_ops(columns.locations).items()}
    label_numbers = {location: -1 if each is None else text(each) for location, each in labels.items()}
    groups, members = _groups(graph.groups, text)
    return GraphColumns(
        kinds=_kinds(graph, text),
        kind=list(columns.heads),
        operands=[
            own - value
            for op, own in enumerate(columns.first_results)
            for value in columns.operands[columns.first_operands[op] : columns.first_operands[op + 1]]
        ],
        blocks=[
            [
                span.start,
                len(span.ops),
                -1 if span.op is None else span.op,
                span.region,
                span.first_argument,
                [text(graph.type(span.first_argument + number)) for number in range(span.arguments)],
            ]
            for span in columns.blocks
        ],
        features=[sets(tuple([each.id for each in graph.features(op)])) for op in range(len(graph))],
        feature_sets=[list(each) for each in sets.things],
        introduced=[numbers[each] for each in introduced],
        frames=frames,
        stacks=stacks,
        stack=stack,
        label=[label_numbers[location] for location in columns.locations],
        groups=groups,
        members=members,
        strings=text.things,
    )


def _first_ops(values: Iterable[int]) -> dict[int, int]:
    """Return the first op with each value of a column."""
    found: dict[int, int] = {}
    for op, value in enumerate(values):
        found.setdefault(value, op)
    return found


def _kinds(graph: ProgramGraph, text: _Table[str]) -> list[list[object]]:
    first = _first_ops(graph.columns.heads)
    left = MOST_ATTRIBUTE_TEXT
    rows: list[list[object]] = []
    for kind, head in enumerate(graph.columns.kinds):
        op = first[kind]
        name = graph.op_name(op)
        attributes: list[int] | None = None
        if left > 0:
            held = graph.attributes(op)
            left -= sum(map(len, chain.from_iterable(held.items())))
            attributes = [text(each) for each in chain.from_iterable(held.items())]
        types = [text(graph.type(value)) for value in graph.columns.results_of(op)]
        rows.append(
            [text(name.short), text(name.artifact), version_number(name.introduced), head.operands, types, attributes]
        )
    return rows


def _stacks(graph: ProgramGraph, text: _Table[str]) -> tuple[list[list[int]], list[tuple[int, int]], list[int]]:
    frames: _Table[Frame] = _Table()
    stacks: _Table[tuple[int, int]] = _Table()
    locations = graph.columns.locations
    known: dict[int, int] = {}
    for location, op in _first_ops(locations).items():
        at = -1
        for frame in reversed(graph.stack(op)):
            at = stacks((frames(frame), at))
        known[location] = at
    rows = [
        [text(printable(each.location.file)), each.location.line, each.location.column, text(printable(each.function))]
        for each in frames.things
    ]
    return rows, stacks.things, [known[location] for location in locations]


def _groups(root: Group, text: _Table[str]) -> tuple[list[list[object]], list[int]]:
    walked = [*root.walk()]
    numbers = {id(group): number for number, group in enumerate(walked)}
    rows: list[list[object]] = []
    members: list[int] = []
    for group in walked:
        own = -1 if group.op is None else group.op
        rows.append([group.kind, text(group.label), own, group.size, len(group.members)])
        members += [each if isinstance(each, int) else ~numbers[id(each)] for each in group.members]
    return rows, members
