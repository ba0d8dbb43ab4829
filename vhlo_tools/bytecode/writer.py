"""Encoders of the primitives of MLIR bytecode; the counterpart of :mod:`vhlo_tools.bytecode.reader`."""

from __future__ import annotations

from typing import Final

__all__ = ["flagged", "svarint", "varint", "zigzag"]


def _varint(value: int) -> bytes:
    if not 0 <= value < 1 << 64:
        raise ValueError(f"{value} does not fit into an unsigned 64-bit integer")
    for size in range(1, 9):
        if value < 1 << (7 * size):
            return ((value << size) | (1 << (size - 1))).to_bytes(size, "little")
    return b"\0" + value.to_bytes(8, "little")


# Nearly all numbers in a file are small, and a table is twice as fast as the arithmetic.
_SMALL: Final = [_varint(value) for value in range(1 << 11)]


def varint(value: int) -> bytes:
    """Return ``value``, 0 to 2^64 - 1, as a PrefixVarInt.

    Raises:
        ValueError: If ``value`` is out of range.
    """
    return _SMALL[value] if 0 <= value < len(_SMALL) else _varint(value)


def flagged(value: int, flag: bool) -> bytes:
    """Return ``value`` with a flag in the low bit."""
    return varint(value << 1 | flag)


def zigzag(value: int) -> int:
    """Return the zigzag encoding, an unsigned number, of ``value``, a signed number of 64 bits."""
    return ((value << 1) ^ (value >> 63)) & 0xFFFF_FFFF_FFFF_FFFF


def svarint(value: int) -> bytes:
    """Return ``value``, a signed number of 64 bits, as a signed PrefixVarInt."""
    return varint(zigzag(value))
