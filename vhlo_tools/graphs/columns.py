"""Ops and values of a program as numbers in columns, gathered from all of its blocks.

Ops of a block are numbered one after the other, before those in their regions, so that a block is a range. Values are
numbered region by region: the arguments and results of each block, in order.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from vhlo_tools.bytecode import Block, Head, Region


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
        "_inside",
        "_numbers",
        "_starts",
        "blocks",
        "first_operands",
        "first_results",
        "heads",
        "kinds",
        "locations",
        "operands",
        "regions",
        "successors",
        "value_types",
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
