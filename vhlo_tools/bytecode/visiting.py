"""Traverse a program, passing each op with its place and the types of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from vhlo_tools.bytecode.program import Block, Head, Operation, Rows


class Place(NamedTuple):
    op: Operation
    number: int  # position in the block, from 0
    region: int  # number of the region in the parent op
    around: Place | None  # place of the parent op; None at the top


def visit(
    block: Block,
    operation: Callable[[Place, list[int]], None],
    arguments: Callable[[Block, Place | None], None],
    wanted: Callable[[Head], bool] = lambda head: True,
    *,
    once: Callable[[Head], bool] = lambda head: False,
    for_editing: bool = False,
) -> None:
    """Visit the ops of ``block`` and of all its regions, in the order of the text.

    ``operation`` gets the types of all values in scope, which ``operands`` index, in a list that changes later. An op
    that ``once`` selects stands for all with its head. With ``for_editing`` (of :attr:`File.ir`), attributes may be
    changed.
    """
    _PlaceWalk(operation, arguments, wanted, once, for_editing).block(block, [], 0, None)


class _PlaceWalk:
    def __init__(
        self,
        operation: Callable[[Place, list[int]], None],
        arguments: Callable[[Block, Place | None], None],
        wanted: Callable[[Head], bool],
        once: Callable[[Head], bool],
        for_editing: bool,
    ) -> None:
        self._operation = operation
        self._arguments = arguments
        self._wanted = wanted
        self._once = once
        self._for_editing = for_editing
        # The answers of `wanted`, each asked for once.
        self._answers: dict[Head, bool] = {}

    def block(self, block: Block, values: list[int], region: int, around: Place | None) -> None:
        if block.arguments:
            self._arguments(block, around)
        rows = block.rows
        called = self._called(rows)
        holders = [number for number, extra in rows.extras.items() if extra.regions]
        numbers: Sequence[int] = sorted({*called, *holders}) if holders else called
        wanted = {*called} if holders else called
        for number in numbers:
            op = rows.operation(number) if block.is_columnar else block.operations[number]
            place = Place(op, number, region, around)
            if not holders or number in wanted:
                self._operation(place, values)
                if self._for_editing and block.is_columnar:
                    rows.heads[number] = rows.kinds.number(op.head)
            for inner_number, inner in enumerate(op.regions):
                outer = [] if op.isolated else values
                start = len(outer)
                # All values of a region are numbered before those in the regions of its ops.
                for each in inner.blocks:
                    outer += [argument.type for argument in each.arguments]
                    outer += each.rows.results
                for each in inner.blocks:
                    self.block(each, outer, inner_number, place)
                del outer[start:]

    def _called(self, rows: Rows) -> list[int]:
        heads, table = rows.heads, rows.kinds.table
        kinds = {head for head in {*heads} if self._is_wanted(table[head])}
        if not kinds:
            return []
        single = {head for head in kinds if self._once(table[head])}
        several = kinds - single
        found = [number for number, head in enumerate(heads) if head in several] if several else []
        if single:
            # Searching for each would take the square of the number of heads.
            firsts = dict(zip(reversed(heads), range(len(heads) - 1, -1, -1), strict=True))
            found += [firsts[head] for head in single]
            self._answers.update(dict.fromkeys([table[head] for head in single], False))
        return sorted(found) if single else found

    def _is_wanted(self, head: Head) -> bool:
        if head not in self._answers:
            self._answers[head] = self._wanted(head)
        return self._answers[head]
