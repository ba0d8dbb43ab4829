"""A traversal of a program as objects, which most of the package does without."""

from __future__ import annotations

from collections.abc import Iterator

from vhlo_tools.bytecode import Block, Operation


def walk(block: Block) -> Iterator[Operation | Block]:
    """Yield ``block`` and every op and block in it, outermost first; they may be edited."""
    pending: list[Operation | Block] = [block]
    while pending:
        item = pending.pop()
        yield item
        if isinstance(item, Block):
            pending += reversed(item.operations)
        else:
            pending += [each for region in reversed(item.regions) for each in reversed(region.blocks)]
