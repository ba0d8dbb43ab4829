"""Renumber the values of a function when ops and block arguments are added or removed.

In bytecode an op refers to its operands by numbers, which count all values in scope: those of its isolated region,
outermost first, and in a region those of its blocks before those in the regions of its ops. :class:`Values` assigns a
token to every value, and in the end replaces tokens by the new numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from vhlo_tools.bytecode import Block, Operation, Region, UseListOrder

_NOWHERE: Final = -1


class Values:
    """Tokens of the values in the regions of an op.

    Operands in the regions are tokens until :meth:`number` is called.
    """

    def __init__(self, op: Operation, outer: int) -> None:
        self._op = op
        self._outer = outer
        self._tokens = outer
        # By id() of ops and blocks, which the caller keeps alive.
        self._of: dict[int, list[int]] = {}
        self._name(op, list(range(outer)))

    def of(self, holder: Operation | Block) -> list[int]:
        """Return the tokens of an op's results or a block's arguments; the list may be changed."""
        return self._of.setdefault(id(holder), [])

    def number(self) -> None:
        """Replace tokens by numbers; every op and argument must have its tokens by now."""
        numbers = [_NOWHERE] * self._tokens
        numbers[: self._outer] = range(self._outer)
        self._number(self._op, numbers, self._outer)

    def _new(self, holder: Operation | Block, number: int) -> list[int]:
        tokens = self._of[id(holder)] = list(range(self._tokens, self._tokens + number))
        self._tokens += number
        return tokens

    def _name(self, op: Operation, reach: list[int]) -> None:
        for region in op.regions:
            start = len(reach)
            for block in region.blocks:
                if block.arguments:
                    reach += self._new(block, len(block.arguments))
                for each in block.operations:
                    if each.results:
                        reach += self._new(each, len(each.results))
            for each in _ops(region):
                if each.operands:
                    each.operands = tuple([reach[number] for number in each.operands])
                if each.regions:
                    self._name(each, [] if each.isolated else reach)
            del reach[start:]

    def _number(self, op: Operation, numbers: list[int], count: int) -> None:
        for region in op.regions:
            at, defined = count, list[int]()
            for block in region.blocks:
                defined += self._of.get(id(block), ())
                for each in block.operations:
                    defined += self._of.get(id(each), ())
            for token in defined:
                numbers[token] = at
                at += 1
            for each in _ops(region):
                if each.operands:
                    each.operands = tuple([numbers[token] for token in each.operands])
                    if _NOWHERE in each.operands:
                        raise ValueError("a value is used outside its scope")
                if each.regions:
                    self._number(each, numbers, 0 if each.isolated else at)
            for token in defined:
                numbers[token] = _NOWHERE


def _ops(region: Region) -> list[Operation]:
    return [op for block in region.blocks for op in block.operations]


def read_orders(block: Block) -> list[UseListOrder]:
    """Return use-list orders that all have the number of the argument."""
    return [order._replace(value=order.value or 0) for order in block.use_lists]


def write_orders(block: Block, orders: Iterable[UseListOrder]) -> None:
    """Set use-list orders; the number of a single argument is not written."""
    alone = len(block.arguments) == 1
    block.use_lists = tuple([order._replace(value=None) if alone else order for order in orders])
