"""What all mutators draw from: numbers at limits, strings that control something, and damage to plain bytes."""

from __future__ import annotations

import random
from collections.abc import Callable

_EDGES = (1, 7, 8, 15, 16, 24, 31, 32, 33, 40, 53, 62, 63, 64)
#: Numbers at the limits of the integers that formats and libraries use.
NUMBERS = sorted(
    {0, 1, 2, 3, 5, 100, 1000, 4095, 100_000} | {(1 << bits) + step for bits in _EDGES for step in (-1, 0)}
)

#: Strings that end, leave, or control something.
STRINGS = (
    b"",
    b"\0",
    b"a\0b",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\x1b[31m\x1b]0;title\x07",
    b"\n::error::text",
    b"##[group]text\r",
    "\u202egnp\u2066".encode(),
    b"../../secret/secret.npy",
    b"/etc/passwd",
    b"%s%n%100000d",
    b"{0.__class__}",
    b"main",
    b'"',
    b"\\",
    b"x" * 5000,
    b"9" * 5000,
)


def number(chance: random.Random, limit: int = 1 << 64) -> int:
    """Return a number from 0 up to ``limit``, mostly small or at a limit."""
    drawn = chance.choice(NUMBERS) if chance.random() < 0.6 else chance.randrange(1 << chance.randrange(1, 64))
    return drawn if drawn < limit else limit - 1


def near(chance: random.Random, value: int, limit: int = 1 << 64) -> int:
    """Return a number beside ``value``, or any."""
    if chance.random() < 0.5:
        return min(max(0, value + chance.choice((-2, -1, 1, 2))), limit - 1)
    return number(chance, limit)


def hostile_string(chance: random.Random, old: bytes = b"") -> bytes:
    """Return a string that something may stumble over, which may contain the old one."""
    drawn = chance.choice(STRINGS)
    return chance.choice((drawn, old + drawn, drawn + old, old * 2, old[:-1], old.swapcase()))


def varint(value: int, size: int = 0) -> bytes:
    """Return a number as protocol buffers write it, in at least ``size`` bytes."""
    out = bytearray()
    while value > 0x7F or len(out) + 1 < size:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _flip(chance: random.Random, data: bytearray, at: int) -> None:
    data[at] ^= 1 << chance.randrange(8)


def _put(chance: random.Random, data: bytearray, at: int) -> None:
    data[at] = chance.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFE, 0xFF, chance.randrange(256)))


def _word(chance: random.Random, data: bytearray, at: int) -> None:
    size = chance.choice((2, 4, 8))
    data[at : at + size] = number(chance, 1 << 8 * size).to_bytes(size, chance.choice(("little", "big")))


def _insert(chance: random.Random, data: bytearray, at: int) -> None:
    data[at:at] = chance.choice((hostile_string(chance), chance.randbytes(chance.randrange(1, 16))))


def _delete(chance: random.Random, data: bytearray, at: int) -> None:
    del data[at : at + chance.randrange(1, 9)]


def _repeat(chance: random.Random, data: bytearray, at: int) -> None:
    data[at:at] = data[at : at + chance.randrange(1, 65)] * chance.choice((1, 1, 2, 50))


def _cut(chance: random.Random, data: bytearray, at: int) -> None:
    del data[at:]


def _swap(chance: random.Random, data: bytearray, at: int) -> None:
    other, size = chance.randrange(len(data)), chance.randrange(1, 17)
    data[at : at + size], data[other : other + size] = data[other : other + size], data[at : at + size]


_DAMAGES: tuple[Callable[[random.Random, bytearray, int], None], ...] = (
    *(_flip, _flip, _flip, _put, _put, _put),
    *(_word, _word, _insert, _delete, _repeat, _swap, _cut),
)


def damage(chance: random.Random, data: bytes, times: int | None = None) -> bytes:
    """Return ``data`` with some bytes changed, without regard to what they are."""
    out = bytearray(data)
    for _ in range(times or chance.choice((1, 1, 1, 2, 3, 8))):
        if out:
            chance.choice(_DAMAGES)(chance, out, chance.randrange(len(out)))
    return bytes(out)
