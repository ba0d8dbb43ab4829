"""Graph of a program as columns of numbers and tables of texts, which a page reads.

Half a million ops fit a page so: what ops share stands in tables once, and an op is five numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass
from vhlo_tools.spec import known_versions

if TYPE_CHECKING:
    from vhlo_tools.bytecode import Frame
    from vhlo_tools.graphs import Group, ProgramGraph
    from vhlo_tools.version import Version

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
        operands=_operands(graph),
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
            left -= sum(map(len, held.values()))
            attributes = [text(each) for each in chain.from_iterable(held.items())]
        types = [text(graph.type(value)) for value in graph.columns.results_of(op)]
        rows.append(
            [text(name.short), text(name.artifact), version_number(name.introduced), head.operands, types, attributes]
        )
    return rows


def _operands(graph: ProgramGraph) -> list[int]:
    columns = graph.columns
    firsts, results, operands = columns.first_operands, columns.first_results, columns.operands
    found: list[int] = []
    for op in range(len(graph)):
        own = results[op]
        found += [own - value for value in operands[firsts[op] : firsts[op + 1]]]
    return found


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
