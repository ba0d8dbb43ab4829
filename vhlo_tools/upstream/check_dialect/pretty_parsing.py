"""Conversion of ``check`` ops in MLIR text from the pretty form, which no bindings parse, to the generic form.

Source: ``stablehlo/tests/CheckOps.td`` in openxla/stablehlo.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from vhlo_tools.upstream.scanner import MismatchError, Scanner

_CANDIDATE: Final = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|(?<![\w.$!#@%])check\.(?P<op>expect_\w+)(?=[\s%])')
_VALUE: Final = re.compile(r"%[\w$.-]+(?:#\d+)?")
_NUMBER: Final = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)")


def generic_checks(text: str) -> str:
    """Ops keep their lines; comments and strings are not changed."""
    pieces, done = [], 0
    for match in _CANDIDATE.finditer(text):
        form = _FORMS.get(match["op"] or "")
        scanner = Scanner(text, match.end())
        # Attributes may have the same names as these ops.
        if form is None or match.start() < done or scanner.peek() != "%":
            continue
        operands, attributes, types = form(scanner)
        listed = ", ".join(each for each in attributes if each)
        written = f'"check.{match["op"]}"({", ".join(operands)}) {{{listed}}} : ({", ".join(types)}) -> ()'
        lines = text.count("\n", match.start(), scanner.position) - written.count("\n")
        pieces += [text[done : match.start()], written, "\n" * lines]
        done = scanner.position
    return "".join([*pieces, text[done:]])


_Parts = tuple[list[str], list[str], list[str]]


def _operand(scanner: Scanner) -> str:
    return scanner.take(_VALUE, "SSA operand")


def _pair(scanner: Scanner) -> list[str]:
    first = _operand(scanner)
    scanner.expect(",")
    return [first, _operand(scanner)]


def _braces(scanner: Scanner) -> str:
    """Return the contents of the next braces, without the braces; empty if none come next."""
    before = scanner.position
    if scanner.peek() == "{":
        return scanner.bracketed()[1:-1].strip()
    # Text after the op is not part of it.
    scanner.position = before
    return ""


def _number(scanner: Scanner, name: str, type_: str, written: str | None = None) -> str:
    """Return the next attribute, written as ``written = value``, with its name and its type."""
    scanner.expect(written or name)
    scanner.expect("=")
    value = scanner.take(_NUMBER, "attribute value")
    before = scanner.position
    # `: f64` belongs to the number, and `: tensor<...>` to the op.
    if not (scanner.skips(":") and scanner.skips(type_)):
        scanner.position = before
    return f"{name} = {value} : {type_}"


def _tolerance(scanner: Scanner) -> str:
    return _number(scanner, "tolerance", "f64") if scanner.skips(",") else ""


def _eq(scanner: Scanner) -> _Parts:
    operands = _pair(scanner)
    attributes = _braces(scanner)
    scanner.expect(":")
    return operands, [attributes], [scanner.type()] * 2


def _almost_eq(scanner: Scanner) -> _Parts:
    operands = _pair(scanner)
    attributes = [_tolerance(scanner), _braces(scanner)]
    scanner.expect(":")
    return operands, attributes, [scanner.type()] * 2


def _eq_const(scanner: Scanner) -> _Parts:
    operand = _operand(scanner)
    scanner.expect(",")
    value, type_ = _constant(scanner)
    return [operand], [value, _braces(scanner)], [type_]


def _almost_eq_const(scanner: Scanner) -> _Parts:
    operand = _operand(scanner)
    scanner.expect(",")
    value, type_ = _constant(scanner)
    return [operand], [value, _tolerance(scanner), _braces(scanner)], [type_]


def _constant(scanner: Scanner) -> tuple[str, str]:
    """Return the next attribute ``value``, and its type."""
    scanner.peek()
    at = scanner.position
    word = scanner.word("attribute value")
    if word.startswith("#"):
        # An alias of an attribute with its type.
        definition = re.search(rf"^\s*{re.escape(word)}\s*=\s*", scanner.text, re.MULTILINE)
        if definition is None:
            raise MismatchError(f"a definition of the attribute alias '{word}'", at)
        return f"value = {word}", _constant(Scanner(scanner.text, definition.end()))[1]
    elements = scanner.bracketed()
    scanner.expect(":")
    type_ = scanner.type()
    return f"value = {word}{elements} : {type_}", type_


def _close(scanner: Scanner) -> _Parts:
    operands = _pair(scanner)
    scanner.expect(",")
    attributes = [_number(scanner, "max_ulp_difference", "ui64")]
    if scanner.skips(","):
        attributes.append(_number(scanner, "min_ulp_difference", "ui64"))
    scanner.expect(":")
    attributes.append(_braces(scanner))
    first = scanner.type()
    scanner.expect(",")
    return operands, attributes, [first, scanner.type()]


def _serialized_eq(scanner: Scanner) -> _Parts:
    operand = _operand(scanner)
    scanner.expect(",")
    scanner.expect("probe_id")
    scanner.expect("=")
    attributes = [f"probe_id = {scanner.string()}"]
    if scanner.skips(","):
        attributes.append(_number(scanner, "iteration", "ui32", "iter"))
    attributes.append(_braces(scanner))
    scanner.expect(":")
    return [operand], attributes, [scanner.type()]


_FORMS: Final[Mapping[str, Callable[[Scanner], _Parts]]] = {
    "expect_almost_eq": _almost_eq,
    "expect_almost_eq_const": _almost_eq_const,
    "expect_close": _close,
    "expect_eq": _eq,
    "expect_eq_const": _eq_const,
    "expect_serialized_eq": _serialized_eq,
}
