"""Tree that folds the ops of a program: functions, regions, source lines, and runs of ops where these are too many.

Ops are folded in their order in the program, so that a group never both needs another and is needed by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final, Literal

from vhlo_tools.bytecode import Frame
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass
from vhlo_tools.viewing.columns import BlockSpan, Columns

#: The number of members that no group has more of.
MOST_MEMBERS: Final = 200
# Blocks of so few ops are not folded by their source lines.
_FEW: Final = 24
# Stacks of calls are folded by so many of their frames, of those that tell ops apart.
_MOST_LEVELS: Final = 12

GroupKind = Literal["program", "function", "op", "region", "line", "run"]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Ops that are shown as one until somebody unfolds them."""

    #: ``program``, the whole; ``function``; ``op``, an op with the contents of its regions; ``region``, one of several
    #: regions of an op; ``line``, successive ops of one line of the user's source; ``run``, successive members of a
    #: group that would have too many
    kind: GroupKind
    label: str  # the function, the op, the region, the line, or the range of members
    members: tuple[int | Group, ...]  # In order: numbers of ops without regions, and groups; at most MOST_MEMBERS.
    size: int  # ops in it, those in groups included, and ``op``
    op: int | None = None  # the op that it stands for, if it does
    frame: Frame | None = None  # of a ``line``: the line of the user's source

    def walk(self) -> Iterator[Group]:
        """Outermost groups come first."""
        pending = [self]
        while pending:
            group = pending.pop()
            yield group
            pending += [each for each in reversed(group.members) if isinstance(each, Group)]


def fold(
    columns: Columns, labels: Callable[[int], tuple[GroupKind, str]], stacks: Callable[[int], Sequence[Frame]]
) -> Group:
    """``labels`` returns the kind and name of the group of an op with regions, ``stacks`` its calls, own line first."""
    folder = _Folder(columns, stacks)
    # From the innermost on: blocks in regions come after the block of their op.
    inside: dict[int, list[tuple[BlockSpan, list[int | Group]]]] = {}
    for span in reversed(columns.blocks):
        for op in span.ops:
            if op in columns.regions:
                kind, label = labels(op)
                folder.groups[op] = folder.of_op(op, kind, label, inside.pop(op, [])[::-1])
        if span.op is None:
            return folder.whole(folder.members(span))
        inside.setdefault(span.op, []).append((span, folder.members(span)))
    return Group("program", "", (), 0)


class _Folder:
    def __init__(self, columns: Columns, stacks: Callable[[int], Sequence[Frame]]) -> None:
        self._columns = columns
        self._stacks = stacks
        # By the op that each stands for.
        self.groups: dict[int, Group] = {}
        # Of the block that is being folded: its first op, and the stacks by which its ops are folded.
        self._start = 0
        self._lined: list[Sequence[Frame]] = []

    def whole(self, members: list[int | Group]) -> Group:
        """The group of everything is the module, if there is one only."""
        if len(members) == 1 and isinstance(module := members[0], Group):
            return Group("program", module.label, module.members, module.size, module.op)
        return _group("program", "program", members)

    def of_op(self, op: int, kind: GroupKind, label: str, blocks: list[tuple[BlockSpan, list[int | Group]]]) -> Group:
        if sum(1 for _, members in blocks if members) <= 1:
            return _group(kind, label, [each for _, members in blocks for each in members], op)
        several = {span.region for span, _ in blocks if span.number}
        parts: list[int | Group] = []
        for span, members in blocks:
            block = f", block {span.number}" if span.region in several else ""
            parts.append(_group("region", f"region {span.region}{block}", members))
        return _group(kind, label, parts, op)

    def members(self, span: BlockSpan) -> list[int | Group]:
        if len(span.ops) > _FEW:
            self._line_up(span.ops)
        return self._folded(span.ops, 0, 0)

    def _line_up(self, ops: range) -> None:
        """Note by which stack each op of a block is folded.

        That of an op without operands is that of the next one: producers write constants where they are used first, and
        give them other lines, which would cut every line in pieces.
        """
        first_operands = self._columns.first_operands
        stacks: list[Sequence[Frame]] = []
        for op in reversed(ops):
            is_used = stacks and first_operands[op] == first_operands[op + 1]
            stacks.append(stacks[-1] if is_used else self._stacks(op))
        stacks.reverse()
        self._start, self._lined = ops.start, stacks

    def _folded(self, ops: range, depth: int, levels: int) -> list[int | Group]:
        """Fold ops by the frames of their stacks from ``depth`` on, counted from the outermost."""
        if len(ops) <= _FEW or levels == _MOST_LEVELS:
            return [self.groups.get(op, op) for op in ops]
        runs = self._runs(ops, depth)
        while len(runs) == 1 and runs[0][0] is not None:
            depth += 1
            runs = self._runs(ops, depth)
        found: list[int | Group] = []
        for frame, run in runs:
            if frame is None or len(run) == 1:
                found += [self.groups.get(op, op) for op in run]
            else:
                members = self._folded(run, depth + 1, levels + 1)
                line = f"{printable(frame.location.file)}:{frame.location.line}"
                found.append(_group("line", line, members, frame=frame))
        return found

    def _runs(self, ops: range, depth: int) -> list[tuple[Frame | None, range]]:
        """Return the runs of ops with the same line at ``depth``; those that are not so deep have none."""
        runs: list[tuple[Frame | None, range]] = []
        start = ops.start
        for _, equal in groupby(ops, lambda op: self._line(op, depth)):
            stop = start + sum(1 for _ in equal)
            runs.append((self._frame(start, depth), range(start, stop)))
            start = stop
        return runs

    def _frame(self, op: int, depth: int) -> Frame | None:
        stack = self._lined[op - self._start]
        return stack[-1 - depth] if depth < len(stack) else None

    def _line(self, op: int, depth: int) -> tuple[str, int] | None:
        frame = self._frame(op, depth)
        return (frame.location.file, frame.location.line) if frame else None


def _group(
    kind: GroupKind, label: str, members: list[int | Group], op: int | None = None, frame: Frame | None = None
) -> Group:
    size = sum(each.size if isinstance(each, Group) else 1 for each in members)
    return Group(kind, label, tuple(_limited(members)), size + (op is not None), op, frame)


def _limited(members: list[int | Group]) -> list[int | Group]:
    """Group members in runs where there are too many."""
    total = len(members)
    # Where each of the members begins and ends among those that there were at first.
    ends: Sequence[int] = range(1, total + 1)
    while len(members) > MOST_MEMBERS:
        number = -(-len(members) // MOST_MEMBERS)
        cuts = [len(members) * index // number for index in range(number + 1)]
        runs: list[int | Group] = []
        for start, stop in pairwise(cuts):
            held = members[start:stop]
            size = sum(each.size if isinstance(each, Group) else 1 for each in held)
            first = ends[start - 1] + 1 if start else 1
            runs.append(Group("run", f"{first} to {ends[stop - 1]} of {total}", tuple(held), size))
        members, ends = runs, [ends[stop - 1] for stop in cuts[1:]]
    return members
