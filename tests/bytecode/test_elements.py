"""Equal tensors have equal shortest forms, however they are written."""

from __future__ import annotations

import struct

import pytest

from vhlo_tools.bytecode.elements import element_texts, same_bytes, shortest_form

pytestmark = pytest.mark.every_python


def short(data: bytes, shape: tuple[int, ...], bits: int) -> bytes:
    return bytes(shortest_form(memoryview(data), shape, bits))


@pytest.mark.parametrize(
    ("data", "shape", "bits", "expected"),
    [
        (b"\x01\x02" * 6, (2, 3), 16, b"\x01\x02"),
        (b"\x01\x02", (2, 3), 16, b"\x01\x02"),
        (b"\x01\x02" * 5 + b"\x01\x03", (2, 3), 16, b"\x01\x02" * 5 + b"\x01\x03"),
        # One f64 for all of eight, whose bytes are alike, is no eight bytes.
        (bytes(8), (8,), 64, bytes(8)),
        (bytes(64), (8,), 64, bytes(8)),
        (b"", (0, 4), 32, b""),
        (b"\x07", (4,), 4, b"\x07"),
        (b"\x07" * 4, (4,), 4, b"\x07"),
        # Booleans: in bits, a byte for each, one for all.
        (b"\x05", (4,), 1, b"\x01\x00\x01\x00"),
        (b"\x01\x00\x01\x00", (4,), 1, b"\x01\x00\x01\x00"),
        (b"\xff", (4,), 1, b"\x01"),
        # Only the lowest bit counts, of one byte for more than its bits too.
        (b"\x03", (100,), 1, b"\x01"),
        (b"\x0f", (4,), 1, b"\x01"),
        (b"\xff\x01", (9,), 1, b"\x01"),
        (b"\x01\x01\x01\x01", (4,), 1, b"\x01"),
        (b"\xff", (), 1, b"\x01"),
        (b"\x01", (), 1, b"\x01"),
        (b"\x00", (100,), 1, b"\x00"),
    ],
)
def test_the_shortest_form(data: bytes, shape: tuple[int, ...], bits: int, expected: bytes) -> None:
    assert short(data, shape, bits) == expected


def test_hostile_shapes_are_left_alone() -> None:
    assert short(b"abc", (2,) * 1000, 8) == b"abc"
    assert short(b"abc", (1 << 62, 1 << 62), 8) == b"abc"
    assert short(b"abc", (-1, -2), 8) == b"abc"


def test_same_bytes_over_chunks() -> None:
    one, other = bytearray(3 << 20), bytearray(3 << 20)
    assert same_bytes(memoryview(one), memoryview(other))
    other[-1] = 1
    assert not same_bytes(memoryview(one), memoryview(other))
    for at in (0, 1 << 19, 3 << 19):
        changed = bytearray(one)
        changed[at] = 1
        assert not same_bytes(memoryview(one), memoryview(changed))
    assert not same_bytes(memoryview(b"abc"), memoryview(b"xbc"))


def test_elements_as_text_are_exact() -> None:
    def texts(layout: str, element: str, *values: float) -> list[str] | None:
        return element_texts(memoryview(struct.pack(f"<{len(values)}{layout}", *values)), element, 4)

    assert texts("i", "i32", -1, 2) == ["-1", "2"]
    assert texts("f", "f32", 0.1, -0.0) == ["0.100000001", "-0"]
    assert texts("d", "f64", 0.1) == ["0.1"]
    assert texts("I", "f32", 0x7FC00001) == ["0x7FC00001"]
    assert texts("H", "bf16", 0x3F80) == ["1"]
    assert texts("i", "i32", 1, 2, 3, 4, 5) is None
    assert texts("i", "f8E4M3FN", 1) is None
