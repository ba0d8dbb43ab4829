"""Reader of Protocol Buffers messages, without generated code and with every length checked; and a writer.

The format is that of https://protobuf.dev/programming-guides/encoding: fields, each a number with a wire type, and a
value. The callers know the meaning of the fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.files.mapping import View

_VARINT: Final = 0
_DELIMITED: Final = 2
_FIXED: Final = {1: 8, 5: 4}
_LONGEST_VARINT: Final = 10


@dataclass(frozen=True, slots=True)
class Message:
    """A message, or another length-delimited or fixed-size value of a field: text, or packed numbers."""

    data: View
    file: str  # name of the format in error messages
    at: int = 0  # offset in the file

    def fields(self) -> Iterator[tuple[int, int | Message]]:
        """Yield numbers and values; at damage an error is raised after the fields before it."""
        return ((number, value) for number, value, _ in self.spans())

    def spans(self) -> Iterator[tuple[int, int | Message, View]]:
        """Yield numbers, values, and the bytes of each field with its number."""
        at = 0
        while at < len(self.data):
            start = at
            key, at = self._varint(at)
            number, kind = key >> 3, key & 7
            if kind == _VARINT:
                value, at = self._varint(at)
                yield number, value, self.data[start:at]
                continue
            if kind == _DELIMITED:
                size, at = self._varint(at)
            elif kind in _FIXED:
                size = _FIXED[kind]
            else:
                raise self.malformed(f"has a field of kind {kind}", at)
            if size > len(self.data) - at:
                raise self.malformed("is cut short", at)
            yield number, Message(self.data[at : at + size], self.file, self.at + at), self.data[start : at + size]
            at += size

    def text(self) -> str:
        return bytes(self.data).decode("utf-8", "backslashreplace")

    def numbers(self) -> list[int]:
        found = []
        at = 0
        while at < len(self.data):
            value, at = self._varint(at)
            found.append(value)
        return found

    def message(self, value: int | Message) -> Message:
        if isinstance(value, int):
            raise self.malformed("has a number where a message is expected", 0)
        return value

    def number(self, value: int | Message) -> int:
        if isinstance(value, Message):
            raise self.malformed("has a message where a number is expected", value.at - self.at)
        return value

    def malformed(self, message: str, at: int) -> MalformedArtifactError:
        """``at`` counts from the start of the message."""
        return MalformedArtifactError(f"a {self.file} {message}", offset=self.at + at, section=self.file)

    def _varint(self, at: int) -> tuple[int, int]:
        value = 0
        for shift in range(0, 7 * _LONGEST_VARINT, 7):
            if at >= len(self.data):
                break
            byte = self.data[at]
            value |= (byte & 0x7F) << shift
            at += 1
            if byte < 0x80:
                return value, at
        raise self.malformed("contains an unterminated varint", at)


def encode_message(*fields: tuple[int, int | str | bytes]) -> bytes:
    """Write a message; numbers are not negative."""
    written = []
    for number, value in fields:
        if isinstance(value, int):
            written += [_varint(number << 3), _varint(value)]
        else:
            data = value.encode() if isinstance(value, str) else value
            written += [_varint(number << 3 | _DELIMITED), _varint(len(data)), data]
    return b"".join(written)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
