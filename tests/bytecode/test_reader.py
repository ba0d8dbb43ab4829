from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from vhlo_tools import MalformedArtifactError
from vhlo_tools.bytecode.primitives import ByteReader

pytestmark = pytest.mark.every_python


def prefix_varint(value: int) -> bytes:
    """Encode as «Variable-Width Integers» in mlir/docs/BytecodeFormat.md says, in the plainest way."""
    for size in range(1, 9):
        if value < 1 << (7 * size):
            return ((value << size) | (1 << (size - 1))).to_bytes(size, "little")
    return b"\0" + value.to_bytes(8, "little")


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        ("01", 0),
        ("03", 1),
        ("ff", 127),
        ("0202", 128),
        ("feff", (1 << 14) - 1),
        ("040002", 1 << 14),
        ("80ffffffffffffff", (1 << 56) - 1),
        ("000000000000000001", 1 << 56),
        ("00ffffffffffffffff", (1 << 64) - 1),
    ],
)
def test_varint_literals(encoded: str, value: int) -> None:
    data = bytes.fromhex(encoded)
    reader = ByteReader(memoryview(data))
    assert reader.varint() == value
    assert reader.remaining == 0


@given(st.integers(0, (1 << 64) - 1))
def test_varint_reads_what_was_written(value: int) -> None:
    assert ByteReader(memoryview(prefix_varint(value))).varint() == value


@given(st.integers(0, (1 << 64) - 1), st.integers(0, 8))
def test_a_varint_that_is_cut_short_is_refused(value: int, cut: int) -> None:
    data = prefix_varint(value)
    if cut < len(data):
        with pytest.raises(MalformedArtifactError):
            ByteReader(memoryview(data[:cut])).varint()


_WIDTHS = st.integers(0, 64).flatmap(lambda bits: st.integers(0, (1 << bits) - 1))


@given(st.lists(_WIDTHS, max_size=40), st.integers(0, 8))
def test_several_varints_are_those_one_by_one(values: list[int], cut: int) -> None:
    data = b"".join(map(prefix_varint, values))
    reader = ByteReader(memoryview(data + b"\x01"))
    assert reader.varints(len(values)) == values
    assert reader.remaining == 1
    if values and 0 < cut < len(data):
        with pytest.raises(MalformedArtifactError):
            ByteReader(memoryview(data[:-cut])).varints(len(values))


def test_counts_and_indices_are_bounded() -> None:
    with pytest.raises(MalformedArtifactError, match=r"100 strings were announced, but only 1 bytes.*offset 0"):
        ByteReader(memoryview(prefix_varint(100) + b"x")).count("strings")
    with pytest.raises(MalformedArtifactError, match=r"index 3 is outside the table of 3 types \(ir section, offset 0"):
        ByteReader(memoryview(prefix_varint(3)), section="ir").index(3, "types")
    with pytest.raises(MalformedArtifactError, match="outside the table of 0"):
        ByteReader(memoryview(prefix_varint(1))).flagged_index(0, "strings")


def test_a_string_ends_within_its_limit() -> None:
    assert ByteReader(memoryview(b"abc\0def")).null_terminated(3) == "abc"
    with pytest.raises(MalformedArtifactError, match="no end of the string within 2 bytes"):
        ByteReader(memoryview(b"abc\0")).null_terminated(2)
    for length in (63, 64, 65, 66, 300):
        assert ByteReader(memoryview(b"a" * length + b"\0b")).null_terminated(300) == "a" * length
        with pytest.raises(MalformedArtifactError, match=f"no end of the string within {length} bytes"):
            ByteReader(memoryview(b"a" * (length + 1) + b"\0")).null_terminated(length)
    with pytest.raises(MalformedArtifactError, match="not UTF-8"):
        ByteReader(memoryview(b"\xff\0")).null_terminated(9)


def test_a_reader_stays_in_its_range() -> None:
    reader = ByteReader(memoryview(b"abcdef"), 1, 3, "string")
    assert bytes(reader.take(2)) == b"bc"
    with pytest.raises(MalformedArtifactError) as refused:
        reader.byte()
    assert (refused.value.offset, refused.value.section) == (3, "string")
