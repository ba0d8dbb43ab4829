"""MLIR's text read piece by piece, as far as brackets and strings tell what belongs together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["MismatchError", "Scanner", "parts_of"]

_SPACE: Final = re.compile(r"(?:\s|//[^\n]*)*")
_WORD: Final = re.compile(r"[!#]?[\w$.-]+")
_STRING: Final = re.compile(r'"(?:\\.|[^"\\])*"')
_CLOSING: Final = {"<": ">", "[": "]", "{": "}", "(": ")"}


class MismatchError(Exception):
    """The text is not what it should be; the message says what is expected.

    Args:
        expected: What is expected, as MLIR calls it.
        position: Where.
    """

    def __init__(self, expected: str, position: int) -> None:
        super().__init__(f"expected {expected}")
        self.position = position


@dataclass(slots=True)
class Scanner:
    """Reads a text from a position on.

    Attributes:
        text: The text.
        position: Where it has come to.
    """

    text: str
    position: int = 0

    def peek(self) -> str:
        """Go on to what is neither space nor comment, and return its first character; nothing at the end."""
        if match := _SPACE.match(self.text, self.position):
            self.position = match.end()
        return self.text[self.position : self.position + 1]

    def skips(self, literal: str) -> bool:
        """Tell whether something comes next, and go past it if so."""
        before = self.position
        self.peek()
        if not self.text.startswith(literal, self.position):
            self.position = before
            return False
        self.position += len(literal)
        return True

    def expect(self, literal: str) -> None:
        """Go past what must come next.

        Raises:
            MismatchError: If something else does.
        """
        if not self.skips(literal):
            self.peek()
            raise MismatchError(f"'{literal}'", self.position)

    def take(self, pattern: re.Pattern[str], what: str) -> str:
        """Return what must come next, and go past it.

        Args:
            pattern: What it looks like.
            what: What MLIR calls it.

        Raises:
            MismatchError: If something else comes next.
        """
        self.peek()
        match = pattern.match(self.text, self.position)
        if match is None:
            raise MismatchError(what, self.position)
        self.position = match.end()
        return match[0]

    def word(self, what: str) -> str:
        """Return the word that must come next, and go past it (see :meth:`take`)."""
        return self.take(_WORD, what)

    def string(self) -> str:
        """Return the string that must come next, in its quotes, and go past it (see :meth:`take`)."""
        return self.take(_STRING, "string")

    def bracketed(self) -> str:
        """Return what stands in brackets next, with them; nothing if no brackets come next.

        Raises:
            MismatchError: If they are not closed.
        """
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
            # The arrow of a function type closes nothing.
            self.position += 2 if self.text.startswith("->", self.position) else 1
            if character in _CLOSING:
                closing.append(_CLOSING[character])
            elif character == closing[-1]:
                closing.pop()
                if not closing:
                    return self.text[start : self.position]
        raise MismatchError(f"'{closing[-1]}'", self.position)

    def type(self) -> str:
        """Return the type that must come next, and go past it (see :meth:`take`)."""
        word = self.word("type")
        return word + (self.bracketed() if self.text[self.position : self.position + 1] == "<" else "")


def parts_of(text: str) -> list[str]:
    """Return what stands between the commas in brackets, of a text that MLIR has printed.

    Args:
        text: The brackets with all that is in them.
    """
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
