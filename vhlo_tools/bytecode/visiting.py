"""A traversal of a program that passes each op with the types of its operands and its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vhlo_tools.bytecode.ir import Block, Operation, Region

__all__ = ["Place", "visit"]


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
    wanted: Callable[[Operation], bool] = lambda op: True,
) -> None:
    """Visit the ops of ``block`` and of all its regions, in the order of the text.

    Args:
        block: The top level of a program.
        operation: Called with the place of each op, and with the types of all values in scope, which its ``operands``
            index. The list changes during the traversal.
        arguments: Called with each block that has arguments, and with the place of its parent op.
        wanted: Selects the ops with which ``operation`` is called; by default all.
    """
    _PlaceWalk(operation, arguments, wanted).block(block, [], 0, 0, None)


class _PlaceWalk:
    def __init__(
        self,
        operation: Callable[[Place, list[int]], None],
        arguments: Callable[[Block, Place | None], None],
        wanted: Callable[[Operation], bool],
    ) -> None:
        self._operation = operation
        self._arguments = arguments
        self._wanted = wanted

    def block(self, block: Block, values: list[int], position: int, region: int, around: Place | None) -> int:
        """Visit ``block``, whose values are numbered from ``position``, and return the number after its last value."""
        if block.arguments:
            self._arguments(block, around)
            position += len(block.arguments)
        wanted = self._wanted
        for index, op in enumerate(block.operations):
            position += len(op.results)
            called = wanted(op)
            if not called and not op.regions:
                continue
            place = Place(op, index, region, around)
            if called:
                self._operation(place, values)
            for number, inner in enumerate(op.regions):
                outer = [] if op.isolated else values
                start = len(outer)
                # All values of a region are numbered before those in the regions of its ops.
                outer += _types_in(inner)
                at = start
                for each in inner.blocks:
                    at = self.block(each, outer, at, number, place)
                del outer[start:]
        return position


def _types_in(region: Region) -> list[int]:
    types: list[int] = []
    for block in region.blocks:
        types += [argument.type for argument in block.arguments]
        for op in block.operations:
            types += op.results
    return types
