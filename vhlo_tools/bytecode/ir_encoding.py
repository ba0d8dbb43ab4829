"""Encode the IR section: the program, in the order of its text (:mod:`vhlo_tools.bytecode.ir_format`)."""

from __future__ import annotations

from typing import Final

from vhlo_tools.bytecode.ir_format import (
    AT_ONCE,
    HAS_ATTRIBUTES,
    HAS_OPERANDS,
    HAS_PROPERTIES,
    HAS_REGIONS,
    HAS_RESULTS,
    HAS_SUCCESSORS,
    HAS_USE_LISTS,
    IR,
    OPTIONAL_LOCATIONS_SINCE,
    SECTIONS_SINCE,
    USE_LISTS_SINCE,
)
from vhlo_tools.bytecode.program import Block, Extra, Head, Heads, Region, UseListOrder
from vhlo_tools.bytecode.writer import SMALL, flagged, varint, varints

# A program that was made by hand. A level takes three frames; and where this module is compiled, Python does not count
# them, and the process would end with its stack.
_DEEPEST_WRITTEN: Final = 256


def encode_ir(block: Block, version: int) -> bytes:
    """Raise ``ValueError`` for a number out of range, more than 256 levels, or a part that the version lacks."""
    encoder = _Encoder(version)
    out = bytearray()
    encoder.block(block, out)
    return bytes(out)


class _Encoder:
    def __init__(self, version: int) -> None:
        self.version = version
        # The bytes of the heads of a program: before and after the location.
        self.kinds: Heads | None = None
        self.coded: list[tuple[bytes, bytes, int] | None] = []
        # The number of regions around what is being encoded.
        self.depth = 0

    def block(self, block: Block, out: bytearray) -> None:
        rows = block.rows
        out += flagged(len(rows), bool(block.arguments))
        if block.arguments:
            self.arguments(block, out)
        table, coded = rows.kinds.table, self.coded
        if rows.kinds is not self.kinds:
            coded = []
            if block.is_columnar:
                self.kinds, self.coded = rows.kinds, coded
        if len(coded) < len(table):
            coded += [None] * (len(table) - len(coded))
        # Operands become objects some at a time; `window` are those from `at` on.
        window = rows.operands[:AT_ONCE].tolist()
        at = used = 0
        stops = iter([*rows.extras, len(rows)])
        stop = next(stops)
        small, most = SMALL, len(SMALL)
        locations = rows.locations
        for position, head in enumerate(rows.heads):
            found = coded[head]
            if found is None:
                found = coded[head] = _of_head(table[head])
            before, after, number = found
            extra = None
            if position == stop:
                extra = rows.extras[position]
                stop = next(stops)
                before = before[:-1] + bytes([before[-1] | self.mask(extra)])
            location = locations[position]
            out += before
            # Numbers of three bytes, nearly all in a program of very many ops, are written inline.
            if location < most:
                out += small[location]
            elif 1 << 14 <= location < 1 << 21:
                out += (location << 3 | 4).to_bytes(3, "little")
            else:
                out += varint(location)
            out += after
            if number:
                if used + number > len(window):
                    at += used
                    used, window = 0, rows.operands[at : at + max(number, AT_ONCE)].tolist()
                for operand in window[used : used + number]:
                    if operand < most:
                        out += small[operand]
                    elif 1 << 14 <= operand < 1 << 21:
                        out += (operand << 3 | 4).to_bytes(3, "little")
                    else:
                        out += varint(operand)
                used += number
            if extra is not None:
                self.extra(extra, rows.kinds.result_counts[head], out)

    def arguments(self, block: Block, out: bytearray) -> None:
        out += varint(len(block.arguments))
        for argument in block.arguments:
            if self.version >= OPTIONAL_LOCATIONS_SINCE:
                out += flagged(argument.type, argument.location is not None)
            elif argument.location is None:
                raise ValueError(
                    f"a block argument has no location, which version {self.version} of the format requires"
                )
            else:
                out += varint(argument.type)
            if argument.location is not None:
                out += varint(argument.location)
        if self.version >= USE_LISTS_SINCE:
            out.append((block.use_list_mark or 1) if block.use_lists else 0)
            self.use_lists(block.use_lists, len(block.arguments), out)

    def use_lists(self, orders: tuple[UseListOrder, ...], values: int, out: bytearray) -> None:
        if not orders:
            return
        if values > 1:
            out += varint(len(orders))
        for order in orders:
            if order.value is not None:
                out += varint(order.value)
            out += flagged(len(order.indices), order.pairs)
            out += varints(order.indices)

    def mask(self, extra: Extra) -> int:
        # Older versions cannot store the orders; the program is the same without them.
        use_lists = extra.use_lists and self.version >= USE_LISTS_SINCE
        return (
            (HAS_SUCCESSORS if extra.successors else 0)
            | (HAS_USE_LISTS if use_lists else 0)
            | (HAS_REGIONS if extra.regions else 0)
        )

    def extra(self, extra: Extra, results: int, out: bytearray) -> None:
        if extra.successors:
            out += varint(len(extra.successors))
            out += varints(extra.successors)
        if self.version >= USE_LISTS_SINCE:
            self.use_lists(extra.use_lists, results, out)
        if not extra.regions:
            return
        out += flagged(len(extra.regions), extra.isolated)
        if extra.isolated and self.version >= SECTIONS_SINCE:
            inner = bytearray()
            for region in extra.regions:
                self.region(region, inner)
            out.append(IR)
            out += varint(len(inner))
            out += inner
            return
        for region in extra.regions:
            self.region(region, out)

    def region(self, region: Region, out: bytearray) -> None:
        self.depth += 1
        if self.depth > _DEEPEST_WRITTEN:
            raise ValueError(f"ops nest deeper than {_DEEPEST_WRITTEN} levels")
        out += varint(len(region.blocks))
        if region.blocks:
            out += varint(region.values)
            for block in region.blocks:
                self.block(block, out)
        self.depth -= 1


def _of_head(head: Head) -> tuple[bytes, bytes, int]:
    """Return the bytes of ops before and after their location, and the number of their operands."""
    mask = (
        (HAS_ATTRIBUTES if head.attributes is not None else 0)
        | (HAS_PROPERTIES if head.properties is not None else 0)
        | (HAS_RESULTS if head.results else 0)
        | (HAS_OPERANDS if head.operands else 0)
    )
    after = [each for each in (head.attributes, head.properties) if each is not None]
    if head.results:
        after += [len(head.results), *head.results]
    if head.operands:
        after.append(head.operands)
    return varint(head.name) + bytes([mask]), varints(after), head.operands
