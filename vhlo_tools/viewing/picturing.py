"""Picture of a graph: its groups unfolded as far as there is room, and arrows between the boxes.

Contents and texts of a picture are chosen here, once; :mod:`vhlo_tools.viewing.drawing` writes them down.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from vhlo_tools.errors import InvalidInputError
from vhlo_tools.records import dataclass
from vhlo_tools.spec import minimum_version
from vhlo_tools.viewing.folding import Group

if TYPE_CHECKING:
    from vhlo_tools.version import Version
    from vhlo_tools.viewing.graph import ProgramGraph

#: The number of boxes that a picture has room for, unless somebody says another.
MOST_BOXES: Final = 200
# What a longer text is cut at: types of tuples have thousands of characters.
_LONGEST: Final = 60
# More arguments of one block than this are one box: training steps take hundreds.
_MOST_ARGUMENTS: Final = 12

BoxKind = Literal["op", "argument", "folded", "unfolded"]


@dataclass(frozen=True, slots=True)
class Box:
    id: str  # unique: letters and digits, so that every language of graphs takes it
    #: ``op``; ``argument`` of a function or a block; ``folded``, a group of ops shown as one; ``unfolded``, a group
    #: around its members
    kind: BoxKind
    #: The name, the types or the number of ops, and the version that brought it where it is newer than the oldest with
    #: guarantees. They may contain any printable character.
    lines: tuple[str, ...]
    #: The newest StableHLO version that brought an op in it; None where the specification lacks the op, and for
    #: arguments.
    introduced: Version | None = None
    is_newer: bool = False  # newer than the oldest version with guarantees, or unknown
    size: int = 0  # the number of ops in it
    members: tuple[Box, ...] = ()  # of an unfolded one

    def walk(self) -> Iterator[Box]:
        """Outermost boxes come first."""
        pending = [self]
        while pending:
            box = pending.pop()
            yield box
            pending += reversed(box.members)

    def brackets(self) -> Iterator[tuple[int, Box, bool]]:
        """Yield each box with its depth, in the order of the program; and an unfolded one again, as ended, after it."""
        # Without recursion, as regions are deep.
        pending = [(1, self, False)]
        while pending:
            depth, box, is_ended = pending.pop()
            yield depth, box, is_ended
            if box.kind == "unfolded" and not is_ended:
                pending += [(depth, box, True), *((depth + 1, each, False) for each in reversed(box.members))]


class Arrow(NamedTuple):
    """Values that go from one box to another; source and target are ids."""

    source: str
    target: str
    uses: int


@dataclass(frozen=True, slots=True)
class Picture:
    root: Box
    arrows: tuple[Arrow, ...]  # in the order of the ops that use the values


def picture_of(graph: ProgramGraph, *, function: str | None = None, most: int | None = MOST_BOXES) -> Picture:
    """``most`` is the number of boxes without arguments: outer groups are unfolded first; ``None`` unfolds all."""
    whole = graph.groups
    root = whole if function is None else _function(whole, function)
    return _Drawing(graph, root, most).picture()


def _function(whole: Group, name: str) -> Group:
    functions = [each for each in whole.walk() if each.kind == "function"]
    for each in functions:
        if each.label == f"@{name}":
            return each
    known = ", ".join(each.label for each in functions[:8]) or "none"
    raise InvalidInputError(f"the program has no function @{name}; expected one of its functions: {known}")


class _Drawing:
    def __init__(self, graph: ProgramGraph, root: Group, most: int | None) -> None:
        self._graph = graph
        self._root = root
        self._unfolded = _unfolded(root, most)
        self._oldest = minimum_version()
        self._ids: dict[Group, str] = {}
        # The box that stands for each op, and for each argument of a block.
        self._of_op: dict[int, str] = {}
        self._of_argument: dict[int, str] = {}
        self._used = set(graph.columns.operands)

    def picture(self) -> Picture:
        root = self._root
        # From the innermost on, and not by recursion: groups may stand in each other as deep as regions do.
        groups = list(root.walk())
        for number, group in enumerate(groups):
            self._ids[group] = f"group{number}"
        boxes: dict[Group, Box] = {}
        versions: dict[Group, tuple[Version | None, bool]] = {}
        for group in reversed(groups):
            versions[group] = self._version(group, versions)
            boxes[group] = self._box(group, boxes, *versions[group])
            # What a folded group holds is not looked at again.
            for member in group.members:
                if isinstance(member, Group):
                    del boxes[member]
        self._stand_in(root)
        return Picture(boxes[root], tuple(self._arrows()))

    def _box(self, group: Group, boxes: dict[Group, Box], introduced: Version | None, is_newer: bool) -> Box:
        lines = (_cut(group.label), f"{group.size:,} op{'' if group.size == 1 else 's'}", *_since(introduced, is_newer))
        own = self._ids[group]
        if group not in self._unfolded:
            return Box(own, "folded", lines, introduced, is_newer, group.size)
        members = tuple(boxes[each] if isinstance(each, Group) else self._op(each) for each in group.members)
        return Box(own, "unfolded", lines, introduced, is_newer, group.size, (*self._arguments(group), *members))

    def _op(self, op: int) -> Box:
        graph = self._graph
        types = [_cut(graph.type(value)) for value in graph.columns.results_of(op)]
        introduced = graph.introduced(op)
        is_newer = self._is_newer(introduced)
        said = [_cut(", ".join(types))] if types else []
        lines = (graph.op_name(op).short, *said, *_since(introduced, is_newer))
        return Box(f"op{op}", "op", lines, introduced, is_newer, 1)

    def _arguments(self, group: Group) -> Iterator[Box]:
        """Yield the block arguments of an op, which are in its group, except unused ones."""
        if group.op is None:
            return
        for span in self._graph.columns.blocks_in(group.op):
            values = range(span.first_argument, span.first_argument + span.arguments)
            used = [value for value in values if value in self._used]
            of_region = f" of region {span.region}" if span.region else ""
            if len(used) > _MOST_ARGUMENTS:
                self._of_argument.update(dict.fromkeys(used, f"value{used[0]}"))
                yield Box(f"value{used[0]}", "argument", (f"{len(used)} arguments{of_region}",))
                continue
            for value in used:
                self._of_argument[value] = f"value{value}"
                name = f"argument {value - span.first_argument}{of_region}"
                yield Box(f"value{value}", "argument", (name, _cut(self._graph.type(value))))

    def _version(self, group: Group, versions: dict[Group, tuple[Version | None, bool]]) -> tuple[Version | None, bool]:
        """Return the newest introduction in a group; no version if one is unknown."""
        found = [
            versions[each][0] if isinstance(each, Group) else self._graph.introduced(each) for each in group.members
        ]
        if group.op is not None:
            found.append(self._graph.introduced(group.op))
        known = [each for each in found if each is not None]
        newest = max(known) if len(known) == len(found) and known else None
        return newest, self._is_newer(newest)

    def _is_newer(self, introduced: Version | None) -> bool:
        return introduced is None or introduced > self._oldest

    def _stand_in(self, root: Group) -> None:
        """Note for each op the box that it is in."""
        pending: list[tuple[Group, str | None]] = [(root, None)]
        while pending:
            group, around = pending.pop()
            shown = around if around is not None else self._ids[group]
            hidden = around if around is not None else (None if group in self._unfolded else shown)
            if group.op is not None:
                self._of_op[group.op] = shown
            for member in group.members:
                if isinstance(member, Group):
                    pending.append((member, hidden))
                else:
                    self._of_op[member] = hidden or f"op{member}"

    def _arrows(self) -> Iterator[Arrow]:
        counts: Counter[tuple[str, str]] = Counter()
        for edge in self._graph.edges():
            target = self._of_op.get(edge.op)
            source = self._source(edge.value)
            if source is not None and target is not None and source != target:
                counts[source, target] += 1
        return (Arrow(source, target, count) for (source, target), count in counts.items())

    def _source(self, value: int) -> str | None:
        owner = self._graph.owners[value]
        if owner >= 0:
            return self._of_op.get(owner)
        if value in self._of_argument:
            return self._of_argument[value]
        # Of a block that is folded: what stands for its op.
        op = self._graph.columns.blocks[~owner].op
        return None if op is None else self._of_op.get(op)


def _unfolded(root: Group, most: int | None) -> set[Group]:
    """Return the groups that are shown with their members: the root, and others as far as there is room."""
    found, shown = {root}, len(root.members)
    waiting = deque(_groups_in(root.members))
    while waiting:
        group = waiting.popleft()
        if most is not None and shown + len(group.members) - 1 > most:
            continue
        found.add(group)
        shown += len(group.members) - 1
        waiting.extend(_groups_in(group.members))
    return found


def _groups_in(members: Sequence[int | Group]) -> list[Group]:
    return [each for each in members if isinstance(each, Group)]


def _since(introduced: Version | None, is_newer: bool) -> tuple[str, ...]:
    if not is_newer:
        return ()
    return (f"since {introduced}" if introduced else "of an unknown version",)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
