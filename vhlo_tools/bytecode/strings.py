"""The string section: every string of the file, once.

Source: «String Section» in ``mlir/docs/BytecodeFormat.md``. Lengths come first, in reverse order and including the zero
byte that ends each string.
"""

from __future__ import annotations

from vhlo_tools.bytecode.container import Container

__all__ = ["decode_strings"]


def decode_strings(data: memoryview, container: Container) -> tuple[bytes, ...]:
    """Return the strings of the file, as bytes without the final zero, in the order of their indices.

    Raises:
        MalformedArtifactError: If the section is damaged.
    """
    reader = container.section("string").reader(data)
    lengths = [reader.varint() for _ in range(reader.count("strings"))]
    strings = []
    for length in reversed(lengths):
        at = reader.position
        text = bytes(reader.take(length))
        if not text.endswith(b"\0"):
            raise reader.malformed("a string does not end with a zero byte", at)
        strings.append(text[:-1])
    if reader.remaining:
        raise reader.malformed(f"{reader.remaining} bytes follow the last string")
    return tuple(strings)
