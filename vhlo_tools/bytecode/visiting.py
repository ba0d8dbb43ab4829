"""A traversal of a program that passes each op with the types of its operands and its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from vhlo_tools.bytecode.program import Block, Head, Operation, Rows


class Place(NamedTuple):
    """The place of an op in the program.

    Attributes:
        op: The op.
        number: Its position in its block, counted from 0.
        region: The number of its region in the parent op.
        around: The place of the parent op; ``None`` at the top.
    """

    op: Operation
    number: int
    region: int
    around: Place | None


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

    Args:
        block: The top level of a program.
        operation: Called with the place of each op, and with the types of all values in scope, which its ``operands``
            index. The list changes during the traversal.
        arguments: Called with each block that has arguments, and with the place of its parent op.
        wanted: Selects the ops with which ``operation`` is called; by default all.
        once: Selects among these the ops of which the first with the same head stands for all.
        for_editing: Whether ``operation`` may change the attributes and properties of an op, in a program that
            :attr:`File.ir` gave; otherwise changes do not count.
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
        """Visit ``block``, with the types of the values in its scope."""
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
        """Return the positions of the wanted ops of a block."""
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
