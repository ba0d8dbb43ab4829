"""Encoders of the primitives of MLIR bytecode; the counterpart of :mod:`vhlo_tools.bytecode.reader`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final


def _varint(value: int) -> bytes:
    if not 0 <= value < 1 << 64:
        raise ValueError(f"{value} does not fit into an unsigned 64-bit integer")
    # A number of three bytes, as nearly all are in a program of very many ops, is made without the loop.
    if 1 << 14 <= value < 1 << 21:
        return (value << 3 | 4).to_bytes(3, "little")
    for size in range(1, 9):
        if value < 1 << (7 * size):
            return ((value << size) | (1 << (size - 1))).to_bytes(size, "little")
    return b"\0" + value.to_bytes(8, "little")


#: The PrefixVarInts of small numbers, as nearly all in a file are: a table is twice as fast as the arithmetic.
SMALL: Final = [_varint(value) for value in range(1 << 11)]


def varint(value: int) -> bytes:
    """Encode 0 to 2^64 - 1 as a PrefixVarInt; raise ``ValueError`` for other values."""
    return SMALL[value] if 0 <= value < len(SMALL) else _varint(value)


def varints(values: Iterable[int]) -> bytes:
    small, most = SMALL, len(SMALL)
    return b"".join([small[value] if 0 <= value < most else _varint(value) for value in values])


def flagged(value: int, flag: bool) -> bytes:
    return varint(value << 1 | flag)


def zigzag(value: int) -> int:
    """Map a signed number of 64 bits to an unsigned one."""
    return ((value << 1) ^ (value >> 63)) & 0xFFFF_FFFF_FFFF_FFFF


def svarint(value: int) -> bytes:
    return varint(zigzag(value))
