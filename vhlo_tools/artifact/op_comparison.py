"""Comparison of the ops of two programs, region by region.

Ops are paired in two steps: first those that are equal except for operands and locations, and between these, those of
the same name. The identity of values follows: two operands are equal if they are defined by paired ops or paired
block arguments.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from operator import ne
from typing import Final, NamedTuple

from vhlo_tools.artifact.differences import Describer, Difference, DifferenceKind
from vhlo_tools.artifact.numbering import align, common_prefix, common_suffix, paired
from vhlo_tools.bytecode import Block, Head, Operation, Region, Rows, program_name
from vhlo_tools.records import dataclass

_CONSTANT: Final = "vhlo.constant_v1"
# If the ops that two programs do not share are no more than this, each is reported, else all of them in one difference.
_MOST_SINGLE: Final = 1000
# Operands of so many ops are compared at once.
_AT_ONCE: Final = 1 << 15


class _Run(NamedTuple):
    """Ops that follow one another in two blocks, and are equal except for operands and locations."""

    one: int  # the position of the first
    other: int
    number: int


#: Positions in two blocks: of a pair of ops, of an op of one side, or of two ranges with too few matches to align.
_Pairing = tuple[int, int] | tuple[int, None] | tuple[None, int] | tuple[range, range]
_Step = _Run | _Pairing


@dataclass(frozen=True, slots=True)
class _Starts:
    """The first tokens of the values of a block, and the labels of these values."""

    side: Describer
    path: str  # of the block, relative to the function
    block: Block
    arguments: int  # the first token of the arguments
    ops: array[int]  # the first token of each op, and the end
    mark: str

    def label(self, token: int) -> str:
        if token < self.arguments + len(self.block.arguments):
            return f"{self.mark}{self.path}{' ' if self.path else ''}argument {token - self.arguments}"
        # The last op with this start: ops before it with the same start have no results.
        index = bisect_right(self.ops, token) - 1
        head = self.block.rows.head(index)
        number = f"#{token - self.ops[index]}" if len(head.results) > 1 else ""
        name = program_name(self.side.numbering.name(head))
        return f"{self.mark}{self.path}{'/' if self.path else ''}{index}:{name}{number}"


def _values() -> array[int]:
    return array("I")


class OpComparison:
    """Comparison of ops; what differs is appended to ``found``."""

    def __init__(self, one: Describer, other: Describer, found: list[Difference], *, locations: bool) -> None:
        self.one = one
        self.other = other
        self._found = found
        self._locations = locations
        # Corresponding values have the same token.
        self._token = 0
        self._starts: list[_Starts] = []
        self._root = ""
        # The tokens of the values of the module, which functions may use.
        self._outer = (_values(), _values())

    def say(self, kind: DifferenceKind, path: str, before: str | None, after: str | None) -> None:
        self._found.append(Difference(kind, path, before, after))

    def module(self, path: str, one: Block, other: Block) -> None:
        """Compare the ops of two modules other than functions.

        Functions may use the values of these ops: the library's expansions move constants of other dialects out of
        functions.
        """
        self._root = path
        of_a, of_b = self._outer = (_values(), _values())
        self._compare(path, one, other, self._align(path, one, other, of_a, of_b), of_a, of_b)

    def function(self, path: str, one: Operation, other: Operation) -> None:
        """Compare the contents of two functions, in modules that :meth:`module` has compared."""
        self._root = path
        self._regions(path, one, other, *self._outer)

    def attributes(
        self,
        path: str,
        one: Operation | Head,
        other: Operation | Head,
        kind_of: Callable[[str], DifferenceKind],
        skipped: frozenset[str] = frozenset(),
    ) -> None:
        a, b = self.one.numbering, self.other.numbering
        if a.attributes_key(one) == b.attributes_key(other):
            return
        held_a, held_b = a.attributes_of(one), b.attributes_of(other)
        for name in sorted({**held_a, **held_b}.keys() - skipped):
            self.attribute(kind_of(name), f"{path} {name}", held_a.get(name), held_b.get(name), name)
        if a.opaque_key(one) != b.opaque_key(other):
            self.say(kind_of(""), f"{path} properties", self.one.properties(one), self.other.properties(other))

    def attribute(self, kind: DifferenceKind, path: str, one: int | None, other: int | None, name: str = "") -> None:
        """One of the two attributes may be absent."""
        a, b = self.one, self.other
        if one is None or other is None:
            if one != other:
                before = None if one is None else a.attribute(one)
                self.say(kind, path, before, None if other is None else b.attribute(other))
        elif a.numbering.named(name, one) != b.numbering.named(name, other):
            texts = a.attribute(one), b.attribute(other)
            if texts[0] == texts[1]:
                texts = f"{texts[0]} ({a.kind(one)})", f"{texts[1]} ({b.kind(other)})"
            self.say(kind, path, *texts)

    def op_location(self, path: str, one: Operation, other: Operation) -> None:
        if self._locations:
            self._location(path, one.location, other.location)

    def _location(self, path: str, one: int | None, other: int | None) -> None:
        """An unknown location may be written or omitted."""
        before = "unknown" if one is None else self.one.numbering.attribute(one)
        after = "unknown" if other is None else self.other.numbering.attribute(other)
        if before != after:
            texts = self.one.location(one), self.other.location(other)
            if texts != ("unknown", "unknown"):
                self.say("location", path, *texts)

    def _regions(self, path: str, one: Operation, other: Operation, of_a: array[int], of_b: array[int]) -> None:
        if len(one.regions) != len(other.regions):
            self.say("op", f"{path} regions", str(len(one.regions)), str(len(other.regions)))
            return
        for number, (a, b) in enumerate(zip(one.regions, other.regions, strict=True)):
            inner_a, inner_b = _values() if one.isolated else of_a, _values() if other.isolated else of_b
            starts = len(inner_a), len(inner_b)
            self._region(path if path == self._root else f"{path}/{number}", a, b, inner_a, inner_b)
            del inner_a[starts[0] :]
            del inner_b[starts[1] :]

    def _region(self, path: str, one: Region, other: Region, of_a: array[int], of_b: array[int]) -> None:
        if len(one.blocks) != len(other.blocks):
            self.say("op", f"{path} blocks", str(len(one.blocks)), str(len(other.blocks)))
            return
        # All values of a region are numbered before those in the regions of its ops, and blocks may use each other's
        # values.
        aligned = [self._align(path, a, b, of_a, of_b) for a, b in zip(one.blocks, other.blocks, strict=True)]
        for a, b, alignment in zip(one.blocks, other.blocks, aligned, strict=True):
            self._compare(path, a, b, alignment, of_a, of_b)

    # Pairing of types, ops and values

    def types(
        self, kind: DifferenceKind | None, path: str, one: Sequence[int], other: Sequence[int]
    ) -> list[tuple[int, int]]:
        """Return the corresponding positions of types; those that differ are said, unless ``kind`` is ``None``."""
        types_a = [self.one.numbering.type(each) for each in one]
        types_b = [self.other.numbering.type(each) for each in other]
        pairs = list(paired(types_a, types_b))
        if kind is not None and types_a != types_b:
            here, there = {i for i, _ in pairs}, {j for _, j in pairs}
            for i, j in pairs:
                if types_a[i] != types_b[j]:
                    self.say(kind, f"{path} {i}", self.one.type(one[i]), self.other.type(other[j]))
            for i in sorted({*range(len(one))} - here):
                self.say(kind, f"{path} {i}", self.one.type(one[i]), None)
            for j in sorted({*range(len(other))} - there):
                self.say(kind, f"{path} {j}", None, self.other.type(other[j]))
        return pairs

    def _align(self, path: str, one: Block, other: Block, of_a: array[int], of_b: array[int]) -> list[_Step]:
        """Pair the ops of two blocks, and assign tokens to the values that they define."""
        types = [each.type for each in one.arguments], [each.type for each in other.arguments]
        # Those of a function are in its signature.
        pairs = self.types("op" if path != self._root else None, f"{path} argument", *types)
        for i, j in pairs if self._locations else ():
            self._location(f"{path} argument {i}", one.arguments[i].location, other.arguments[j].location)
        keys_a, keys_b = self.one.numbering.block(one), self.other.numbering.block(other)
        rows_a, rows_b = one.rows, other.rows
        start = common_prefix(keys_a, keys_b)
        end = common_suffix(keys_a, keys_b, min(len(keys_a), len(keys_b)) - start)
        # While the values have equal numbers, operands help to find the first difference of the programs.
        same = 0
        if len(of_a) == len(of_b) and len(pairs) == len(one.arguments):
            operands = common_prefix(rows_a.operands, rows_b.operands)
            same = min(start, bisect_right(rows_a.starts, operands) - 1)
        equal = align(keys_a[start : len(keys_a) - end], keys_b[start : len(keys_b) - end])
        if equal is None:
            # Of what follows, each use of what has no partner would be said.
            start, end, equal = same, 0, []
        middle = list(self._steps(one, other, start, end, equal))
        partners = {j: i for i, j in middle if isinstance(i, int) and isinstance(j, int)}
        starts_a = self._give(self.one, path, one, of_a, "")
        arguments = {j: starts_a.arguments + i for i, j in pairs}
        starts_b = self._give(self.other, path, other, _values(), "added ")
        of_b.extend([arguments.get(j, starts_b.arguments + j) for j in range(len(other.arguments))])
        of_b.extend(range(starts_a.ops[0], starts_a.ops[start]))
        for j in range(start, len(rows_b) - end):
            partner = partners.get(j)
            own = starts_b.ops[j]
            shared = len(rows_a.head(partner).results) if partner is not None else 0
            first = starts_a.ops[partner] if partner is not None else 0
            of_b.extend([first + k if k < shared else own + k for k in range(starts_b.ops[j + 1] - own)])
        of_b.extend(range(starts_a.ops[len(rows_a) - end], starts_a.ops[-1]))
        last = _Run(len(rows_a) - end, len(rows_b) - end, end)
        return [_Run(0, 0, same), _Run(same, same, start - same), *middle, last]

    def _give(self, side: Describer, path: str, block: Block, values: array[int], mark: str) -> _Starts:
        """Assign tokens to the values of a block, and record their labels."""
        arguments, rows = self._token, block.rows
        counts = rows.kinds.result_counts
        first = arguments + len(block.arguments)
        ops = array("I", accumulate(map(counts.__getitem__, rows.heads), initial=first))
        values.extend(range(arguments, ops[-1]))
        # A gap of one, so that no two blocks have the same start.
        self._token = ops[-1] + 1
        # Relative to the function, which the path of the op that uses the value names.
        inner = path.removeprefix(self._root).removeprefix("/")
        starts = _Starts(side, inner, block, arguments, ops, mark)
        self._starts.append(starts)
        return starts

    def _steps(
        self, one: Block, other: Block, start: int, end: int, equal: Sequence[tuple[int, int]]
    ) -> Iterator[_Pairing]:
        """Pair the ops between those with which both begin and end; ``equal`` are pairs of these, from there."""
        stop_a, stop_b = len(one.rows) - end, len(other.rows) - end
        at_i = at_j = start
        for i, j in [*((start + i, start + j) for i, j in equal), (stop_a, stop_b)]:
            if i > at_i or j > at_j:
                yield from self._between(one, other, range(at_i, i), range(at_j, j))
            if i < stop_a:
                yield i, j
            at_i, at_j = i + 1, j + 1

    def _between(self, one: Block, other: Block, gone: range, come: range) -> Iterator[_Pairing]:
        """Pair ops by their names, in ranges without equal ops."""
        a, b = self.one.numbering, self.other.numbering
        heads_a, heads_b = list(map(one.rows.head, gone)), list(map(other.rows.head, come))
        pairs = align([a.name(head) for head in heads_a], [b.name(head) for head in heads_b])
        if pairs is None or len(gone) + len(come) - 2 * len(pairs) > _MOST_SINGLE:
            yield gone, come
            return
        at_i = at_j = 0
        for i, j in [*pairs, (len(gone), len(come))]:
            # Ops are paired with their replacements if the result types are equal, so that their users compare equal.
            types_a = [a.types(head.results) for head in heads_a[at_i:i]]
            if types_a == [b.types(head.results) for head in heads_b[at_j:j]]:
                yield from zip(gone[at_i:i], come[at_j:j], strict=True)
            else:
                yield from ((each, None) for each in gone[at_i:i])
                yield from ((None, each) for each in come[at_j:j])
            if i < len(gone):
                yield gone[i], come[j]
            at_i, at_j = i + 1, j + 1

    # Reporting

    def _compare(
        self, path: str, one: Block, other: Block, steps: Sequence[_Step], of_a: array[int], of_b: array[int]
    ) -> None:
        keys_a, keys_b = self.one.numbering.block(one), self.other.numbering.block(other)
        rows_a, rows_b = one.rows, other.rows
        for step in steps:
            if isinstance(step, _Run):
                self._run(path, rows_a, rows_b, step, of_a, of_b)
                continue
            i, j = step
            if isinstance(i, range) and isinstance(j, range):
                texts = self.one.ops(map(rows_a.head, i)), self.other.ops(map(rows_b.head, j))
                self.say("op", f"{path}/{i.start} and following", *texts)
            elif isinstance(i, int) and isinstance(j, int):
                a, b = rows_a.operation(i), rows_b.operation(j)
                self._op(path, i, a, b, of_a, of_b, alike=keys_a[i] == keys_b[j])
            elif isinstance(i, int):
                op = rows_a.operation(i)
                self.say("op", self._path(self.one, path, i, op), self.one.op(op), None)
            elif isinstance(j, int):
                op = rows_b.operation(j)
                self.say("op", self._path(self.other, path, j, op), None, self.other.op(op))

    def _run(self, path: str, one: Rows, other: Rows, run: _Run, of_a: array[int], of_b: array[int]) -> None:
        """Values with equal numbers may correspond to others, where blocks or regions before these differ."""
        holders = list(one.extras)
        for first in range(0, run.number, _AT_ONCE):
            number = min(run.number - first, _AT_ONCE)
            i, j = run.one + first, run.other + first
            used_a = one.operands[one.starts[i] : one.starts[i + number]]
            used_b = other.operands[other.starts[j] : other.starts[j + number]]
            is_same = not any(map(ne, map(of_a.__getitem__, used_a), map(of_b.__getitem__, used_b)))
            held = holders[bisect_left(holders, i) : bisect_left(holders, i + number)]
            for k in [k - i for k in held] if is_same and not self._locations else range(number):
                self._op(path, i + k, one.operation(i + k), other.operation(j + k), of_a, of_b, alike=True)

    def _op(
        self, path: str, index: int, a: Operation, b: Operation, of_a: array[int], of_b: array[int], *, alike: bool
    ) -> None:
        """Compare two ops; those that are ``alike`` are equal except for operands and locations."""
        same_operands = [of_a[n] for n in a.operands] == [of_b[n] for n in b.operands]
        if alike and same_operands and not a.regions and not self._locations:
            return
        path = self._path(self.one, path, index, a)
        name = self.one.numbering.name(a)
        if name != self.other.numbering.name(b):
            self.say("op", path, self.one.op(a), self.other.op(b))
        elif not alike:
            self.attributes(path, a, b, lambda key: "constant" if name == _CONSTANT and key == "value" else "op")
            if self.one.numbering.types(a.results) != self.other.numbering.types(b.results):
                self.say("op", f"{path} results", self.one.types(a.results), self.other.types(b.results))
            if a.successors != b.successors:
                self.say("op", f"{path} successors", str(a.successors), str(b.successors))
        if not same_operands:
            self.say("op", f"{path} operands", self._operands(a.operands, of_a), self._operands(b.operands, of_b))
        self.op_location(path, a, b)
        if a.regions or b.regions:
            self._regions(path, a, b, of_a, of_b)

    def _path(self, side: Describer, path: str, index: int, op: Operation) -> str:
        return f"{path}/{index}:{program_name(side.numbering.name(op))}"

    def _operands(self, operands: Sequence[int], tokens: Sequence[int]) -> str:
        """Describe each operand by the op that defines it, with its position."""
        used = [tokens[number] for number in operands]
        starts = [self._starts[bisect_right(self._starts, each, key=lambda at: at.arguments) - 1] for each in used]
        return f"({', '.join(start.label(token) for start, token in zip(starts, used, strict=True))})"
