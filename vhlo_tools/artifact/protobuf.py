"""Messages of Protocol Buffers, read without generated code and with every length checked.

The format is that of https://protobuf.dev/programming-guides/encoding: fields, each a number with a kind, and a value.
What the fields mean is for whoever reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from vhlo_tools.errors import MalformedArtifactError

__all__ = ["Message"]

_VARINT: Final = 0
_DELIMITED: Final = 2
_FIXED: Final = {1: 8, 5: 4}
_LONGEST_VARINT: Final = 10


@dataclass(frozen=True, slots=True)
class Message:
    """A message, or what else a field of one holds: text, or numbers side by side.

    Attributes:
        data: Its bytes, a view.
        file: What to call the file in messages of errors.
        at: Where in the file it stands.
    """

    data: memoryview
    file: str
    at: int = 0

    def fields(self) -> Iterator[tuple[int, int | Message]]:
        """Yield the number and the value of each field.

        Raises:
            MalformedArtifactError: If the message is damaged; what came before was yielded.
        """
        at = 0
        while at < len(self.data):
            key, at = self._varint(at)
            number, kind = key >> 3, key & 7
            if kind == _VARINT:
                value, at = self._varint(at)
                yield number, value
                continue
            if kind == _DELIMITED:
                size, at = self._varint(at)
            elif kind in _FIXED:
                size = _FIXED[kind]
            else:
                raise self.malformed(f"has a field of kind {kind}", at)
            if size > len(self.data) - at:
                raise self.malformed("is cut short", at)
            yield number, Message(self.data[at : at + size], self.file, self.at + at)
            at += size

    def text(self) -> str:
        """Return it as text."""
        return bytes(self.data).decode("utf-8", "backslashreplace")

    def numbers(self) -> list[int]:
        """Return the numbers that stand in it side by side.

        Raises:
            MalformedArtifactError: If it holds something else.
        """
        found = []
        at = 0
        while at < len(self.data):
            value, at = self._varint(at)
            found.append(value)
        return found

    def message(self, value: int | Message) -> Message:
        """Return the value of a field that is no number.

        Raises:
            MalformedArtifactError: If it is one.
        """
        if isinstance(value, int):
            raise self.malformed("has a number where there should be a message", 0)
        return value

    def number(self, value: int | Message) -> int:
        """Return the value of a field that is a number.

        Raises:
            MalformedArtifactError: If it is none.
        """
        if isinstance(value, Message):
            raise self.malformed("has a message where there should be a number", value.at - self.at)
        return value

    def malformed(self, message: str, at: int) -> MalformedArtifactError:
        """Return the error for what is wrong at ``at``, counted from the start of the message."""
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
        raise self.malformed("holds a number without end", at)
