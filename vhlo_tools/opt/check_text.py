"""Ops of the ``check`` dialect in text, whose pretty form no bindings parse, rewritten into the generic form.

Source: ``stablehlo/tests/CheckOps.td`` in openxla/stablehlo.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["generic_checks"]

_CANDIDATE: Final = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|(?<![\w.$!#@%])check\.(?P<op>expect_\w+)(?=[\s%])')
_SPACE: Final = re.compile(r"(?:\s|//[^\n]*)*")
_VALUE: Final = re.compile(r"%[\w$.-]+(?:#\d+)?")
_WORD: Final = re.compile(r"[!#]?[\w$.-]+")
_NUMBER: Final = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)")
_STRING: Final = re.compile(r'"(?:\\.|[^"\\])*"')
_OPENING: Final = {"<": ">", "[": "]", "{": "}", "(": ")"}


class _NoMatchError(Exception):
    """The text is not what it should be; MLIR says so better when it parses it."""


@dataclass(slots=True)
class _Scanner:
    """Reads a text from a position on.

    Attributes:
        text: The text.
        position: Where it has come to.
    """

    text: str
    position: int

    def skip(self) -> None:
        """Go on to what is neither space nor comment."""
        match = _SPACE.match(self.text, self.position)
        if match:
            self.position = match.end()

    def is_next(self, literal: str) -> bool:
        """Tell whether something comes next, and go past it if so."""
        before = self.position
        self.skip()
        if not self.text.startswith(literal, self.position):
            self.position = before
            return False
        self.position += len(literal)
        return True

    def expect(self, literal: str) -> None:
        """Go past what must come next."""
        if not self.is_next(literal):
            raise _NoMatchError

    def take(self, pattern: re.Pattern[str]) -> str:
        """Return what must come next, and go past it."""
        self.skip()
        match = pattern.match(self.text, self.position)
        if match is None:
            raise _NoMatchError
        self.position = match.end()
        return match[0]

    def bracketed(self) -> str:
        """Return what stands in brackets next, with them; nothing if no brackets come next."""
        self.skip()
        start, closing = self.position, []
        while self.position < len(self.text):
            character = self.text[self.position]
            if character == '"':
                self.take(_STRING)
                continue
            if character in _OPENING:
                closing.append(_OPENING[character])
            elif closing and character == closing[-1]:
                closing.pop()
            if not closing:
                if self.position == start and character not in _OPENING.values():
                    return ""
                self.position += 1
                return self.text[start : self.position]
            # The arrow of a function type closes nothing.
            self.position += 2 if self.text.startswith("->", self.position) else 1
        raise _NoMatchError

    def type(self) -> str:
        """Return the type that comes next."""
        word = self.take(_WORD)
        return word + (self.bracketed() if self.text[self.position : self.position + 1] == "<" else "")

    def attributes(self) -> str:
        """Return what stands in the braces that may come next, without them."""
        before = self.position
        self.skip()
        if self.text[self.position : self.position + 1] != "{":
            # What stands behind the op is none of it.
            self.position = before
            return ""
        return self.bracketed()[1:-1].strip()

    def named(self, name: str, pattern: re.Pattern[str], kind: str, written: str | None = None) -> str:
        """Return an attribute that comes next as ``written = value``, with its name and the type that it is of."""
        self.expect(written or name)
        self.expect("=")
        value = self.take(pattern)
        before = self.position
        # `: f64` belongs to the number, and `: tensor<...>` to the op.
        if kind and not (self.is_next(":") and self.is_next(kind)):
            self.position = before
        return f"{name} = {value}{f' : {kind}' if kind else ''}"


def generic_checks(text: str) -> str:
    """Return a text of MLIR with all ops of the ``check`` dialect in the generic form.

    Lines stay where they are, and so do ops in their lines; comments and strings stay as they are.

    Args:
        text: The text.
    """
    pieces, done = [], 0
    for match in _CANDIDATE.finditer(text):
        form = _FORMS.get(match["op"] or "")
        if form is None or match.start() < done:
            continue
        scanner = _Scanner(text, match.end())
        try:
            operands, attributes, types = form(scanner, text)
        except _NoMatchError:
            continue
        listed = ", ".join(each for each in attributes if each)
        written = f'"check.{match["op"]}"({", ".join(operands)}) {{{listed}}} : ({", ".join(types)}) -> ()'
        lines = text.count("\n", match.start(), scanner.position) - written.count("\n")
        pieces += [text[done : match.start()], written, "\n" * lines]
        done = scanner.position
    return "".join([*pieces, text[done:]])


_Parts = tuple[list[str], list[str], list[str]]


def _pair(scanner: _Scanner) -> list[str]:
    first = scanner.take(_VALUE)
    scanner.expect(",")
    return [first, scanner.take(_VALUE)]


def _tolerance(scanner: _Scanner) -> str:
    return scanner.named("tolerance", _NUMBER, "f64") if scanner.is_next(",") else ""


def _eq(scanner: _Scanner, _: str) -> _Parts:
    operands = _pair(scanner)
    attributes = scanner.attributes()
    scanner.expect(":")
    return operands, [attributes], [scanner.type()] * 2


def _almost_eq(scanner: _Scanner, _: str) -> _Parts:
    operands = _pair(scanner)
    attributes = [_tolerance(scanner), scanner.attributes()]
    scanner.expect(":")
    return operands, attributes, [scanner.type()] * 2


def _eq_const(scanner: _Scanner, text: str) -> _Parts:
    operand = scanner.take(_VALUE)
    scanner.expect(",")
    value, kind = _constant(scanner, text)
    return [operand], [value, scanner.attributes()], [kind]


def _almost_eq_const(scanner: _Scanner, text: str) -> _Parts:
    operand = scanner.take(_VALUE)
    scanner.expect(",")
    value, kind = _constant(scanner, text)
    return [operand], [value, _tolerance(scanner), scanner.attributes()], [kind]


def _constant(scanner: _Scanner, text: str) -> tuple[str, str]:
    """Return the attribute ``value`` that comes next, and its type."""
    word = scanner.take(_WORD)
    if word.startswith("#"):
        # An alias, which stands for an attribute with its type.
        definition = re.search(rf"^\s*{re.escape(word)}\s*=\s*", text, re.MULTILINE)
        if definition is None:
            raise _NoMatchError
        return f"value = {word}", _constant(_Scanner(text, definition.end()), text)[1]
    elements = scanner.bracketed()
    scanner.expect(":")
    kind = scanner.type()
    return f"value = {word}{elements} : {kind}", kind


def _close(scanner: _Scanner, _: str) -> _Parts:
    operands = _pair(scanner)
    scanner.expect(",")
    attributes = [scanner.named("max_ulp_difference", _NUMBER, "ui64")]
    if scanner.is_next(","):
        attributes.append(scanner.named("min_ulp_difference", _NUMBER, "ui64"))
    scanner.expect(":")
    attributes.append(scanner.attributes())
    first = scanner.type()
    scanner.expect(",")
    return operands, attributes, [first, scanner.type()]


def _serialized_eq(scanner: _Scanner, _: str) -> _Parts:
    operand = scanner.take(_VALUE)
    scanner.expect(",")
    attributes = [scanner.named("probe_id", _STRING, "")]
    if scanner.is_next(","):
        attributes.append(scanner.named("iteration", _NUMBER, "ui32", "iter"))
    attributes.append(scanner.attributes())
    scanner.expect(":")
    return [operand], attributes, [scanner.type()]


_FORMS: Final[Mapping[str, Callable[[_Scanner, str], _Parts]]] = {
    "expect_almost_eq": _almost_eq,
    "expect_almost_eq_const": _almost_eq_const,
    "expect_close": _close,
    "expect_eq": _eq,
    "expect_eq_const": _eq_const,
    "expect_serialized_eq": _serialized_eq,
}
