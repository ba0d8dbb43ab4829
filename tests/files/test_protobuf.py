"""Messages of Protocol Buffers, with every length checked."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from support.protobuf_messages import field, varint

import vhlo_tools as vt
from vhlo_tools.files.protobuf import Message


def message(data: bytes, at: int = 0) -> Message:
    return Message(memoryview(data), "file", at)


@given(st.integers(1, 1 << 28), st.integers(0, (1 << 64) - 1))
def test_numbers_of_any_size(number: int, value: int) -> None:
    assert list(message(field(number, value)).fields()) == [(number, value)]
    assert message(varint(value) * 3).numbers() == [value] * 3


def test_fields_of_every_kind() -> None:
    data = field(1, 300) + field(2, "text") + b"\x19" + b"8 bytes." + b"\x25" + b"4 b." + field(5, b"")
    found = list(message(data).fields())
    assert [number for number, _ in found] == [1, 2, 3, 4, 5]
    assert [value if isinstance(value, int) else value.text() for _, value in found] == [
        300,
        "text",
        "8 bytes.",
        "4 b.",
        "",
    ]
    assert [value.at for _, value in found if isinstance(value, Message)] == [
        data.index(b"text"),
        data.index(b"8 "),
        data.index(b"4 b"),
        len(data),
    ]


@pytest.mark.parametrize(
    ("data", "message_", "offset"),
    [
        (b"\x08", "a file contains an unterminated varint", 101),
        (b"\x08" + b"\x80" * 10 + b"\x01", "a file contains an unterminated varint", 111),
        (b"\x12\x05abcd", "a file is cut short", 102),
        (b"\x19" + bytes(7), "a file is cut short", 101),
        (b"\x25" + bytes(3), "a file is cut short", 101),
        (b"\x0b", "a file has a field of kind 3", 101),
    ],
)
def test_damage(data: bytes, message_: str, offset: int) -> None:
    with pytest.raises(vt.MalformedArtifactError, match=message_) as refused:
        list(message(data, at=100).fields())
    assert refused.value.offset == offset


def test_numbers_are_no_messages_and_messages_no_numbers() -> None:
    whole = message(field(1, 1) + field(2, "text"), at=100)
    (_, number), (_, text) = whole.fields()
    assert (whole.number(number), whole.message(text)) == (1, text)
    with pytest.raises(vt.MalformedArtifactError, match="a number where a message is expected"):
        whole.message(number)
    with pytest.raises(vt.MalformedArtifactError, match="a message where a number is expected") as refused:
        whole.number(text)
    assert refused.value.offset == 104


def test_text_that_is_none() -> None:
    assert message(b"a\xff").text() == "a\\xff"
