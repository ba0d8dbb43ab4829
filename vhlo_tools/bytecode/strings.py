"""String section: every string of the file, once.

Source: «String Section» in ``mlir/docs/BytecodeFormat.md``. The lengths come first, in reverse order and including the
zero byte at the end of each string.
"""

from __future__ import annotations

from collections.abc import Sequence

from vhlo_tools.bytecode.reader import ByteReader
from vhlo_tools.bytecode.writer import varint


def decode_strings(reader: ByteReader) -> list[bytes]:
    lengths = reader.varints(reader.count("strings"))
    if sum(lengths) != reader.remaining:
        raise reader.malformed(f"the strings announce {sum(lengths)} bytes, but {reader.remaining} remain")
    strings = []
    for length in reversed(lengths):
        at = reader.position
        text = bytes(reader.take(length))
        if not text.endswith(b"\0"):
            raise reader.malformed("a string does not end with a zero byte", at)
        strings.append(text[:-1])
    return strings


def encode_strings(strings: Sequence[bytes]) -> bytes:
    lengths = b"".join(varint(len(text) + 1) for text in reversed(strings))
    return b"".join([varint(len(strings)), lengths, *(text + b"\0" for text in strings)])
