"""Scanner of MLIR text, with nesting determined by brackets and strings."""

from __future__ import annotations

import re
from typing import Final

from vhlo_tools.records import dataclass

_SPACE: Final = re.compile(r"(?:\s|//[^\n]*)*")
_WORD: Final = re.compile(r"[!#]?[\w$.-]+")
_STRING: Final = re.compile(r'"(?:\\.|[^"\\])*"')
_CLOSING: Final = {"<": ">", "[": "]", "{": "}", "(": ")"}


class MismatchError(Exception):
    """A syntax error; ``expected`` is the expected syntax, in MLIR's terms."""

    def __init__(self, expected: str, position: int) -> None:
        super().__init__(f"expected {expected}")
        self.position = position


@dataclass(slots=True)
class Scanner:
    text: str
    position: int = 0

    def peek(self) -> str:
        """Skip spaces and comments, and return the next character; an empty string at the end."""
        if match := _SPACE.match(self.text, self.position):
            self.position = match.end()
        return self.text[self.position : self.position + 1]

    def skips(self, literal: str) -> bool:
        """Return whether a literal comes next, and advance past it if so."""
        before = self.position
        self.peek()
        if not self.text.startswith(literal, self.position):
            self.position = before
            return False
        self.position += len(literal)
        return True

    def expect(self, literal: str) -> None:
        if not self.skips(literal):
            self.peek()
            raise MismatchError(f"'{literal}'", self.position)

    def take(self, pattern: re.Pattern[str], what: str) -> str:
        """Advance past the text of ``pattern``, which must come next; ``what`` is its syntax in MLIR's terms."""
        self.peek()
        match = pattern.match(self.text, self.position)
        if match is None:
            raise MismatchError(what, self.position)
        self.position = match.end()
        return match[0]

    def word(self, what: str) -> str:
        return self.take(_WORD, what)

    def string(self) -> str:
        """Return the string that must come next, with its quotes, and advance past it."""
        return self.take(_STRING, "string")

    def bracketed(self) -> str:
        """Return the bracketed text that comes next, with its brackets; an empty string if no bracket comes next."""
        if self.peek() not in _CLOSING:
            return ""
        start, closing = self.position, []
        while self.position < len(self.text):
            character = self.text[self.position]
            if character == '"':
                self.string()
                continue
            if self.text.startswith("//", self.position):
                self.peek()
                continue
            # The arrow of a function type is not a closing bracket.
            self.position += 2 if self.text.startswith("->", self.position) else 1
            if character in _CLOSING:
                closing.append(_CLOSING[character])
            elif character == closing[-1]:
                closing.pop()
                if not closing:
                    return self.text[start : self.position]
        raise MismatchError(f"'{closing[-1]}'", self.position)

    def type(self) -> str:
        word = self.word("type")
        return word + (self.bracketed() if self.text[self.position : self.position + 1] == "<" else "")


def parts_of(text: str) -> list[str]:
    """Split bracketed text that MLIR has printed, given with its brackets, at the commas."""
    scanner = Scanner(text[1:-1])
    parts, start = [], 0
    while character := scanner.peek():
        if character == '"':
            scanner.string()
        elif not scanner.bracketed():
            if character == ",":
                parts.append(scanner.text[start : scanner.position].strip())
                start = scanner.position + 1
            scanner.position += 1
    last = scanner.text[start:].strip()
    return [*parts, last] if last else parts
