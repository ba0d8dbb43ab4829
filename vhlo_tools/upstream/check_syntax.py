"""The pretty form of the dialect ``check``: parsing and printing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from vhlo_tools.records import dataclass
from vhlo_tools.upstream.pipelines import MismatchError, Scanner, parts_of

# Conversion of ``check`` ops in MLIR text from the pretty form, which no bindings parse, to the generic form
#
# Source: ``stablehlo/tests/CheckOps.td`` in openxla/stablehlo.

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


def _of_two(scanner: Scanner, *, with_tolerance: bool = False) -> _Parts:
    operands = _pair(scanner)
    attributes = [_tolerance(scanner) if with_tolerance else "", _braces(scanner)]
    scanner.expect(":")
    return operands, attributes, [scanner.type()] * 2


def _of_constant(scanner: Scanner, *, with_tolerance: bool = False) -> _Parts:
    operand = _operand(scanner)
    scanner.expect(",")
    value, type_ = _constant(scanner)
    return [operand], [value, _tolerance(scanner) if with_tolerance else "", _braces(scanner)], [type_]


def _constant(scanner: Scanner) -> tuple[str, str]:
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
    "expect_almost_eq": partial(_of_two, with_tolerance=True),
    "expect_almost_eq_const": partial(_of_constant, with_tolerance=True),
    "expect_close": _close,
    "expect_eq": _of_two,
    "expect_eq_const": _of_constant,
    "expect_serialized_eq": _serialized_eq,
}


# Conversion of printed ``check`` ops from the generic form, the only one that MLIR knows, to the pretty form
#
# Source: the assembly formats in ``stablehlo/tests/CheckOps.td`` in openxla/stablehlo.

_PRINTED_CANDIDATE: Final = re.compile(r'"check\.(?P<op>expect_\w+)"(?=\()|"(?:\\.|[^"\\])*"')
_TYPE: Final = re.compile(r" : (?:f64|ui32|ui64)$")


@dataclass(frozen=True, slots=True)
class _Clause:
    """An attribute with a position of its own after the operands."""

    name: str
    written: str  # the text before its value
    default: str | None = None  # None if the attribute is required
    is_optional: bool = True  # the default value is left out


_TOLERANCE: Final = _Clause("tolerance", "tolerance = ", "1.000000e-04 : f64")
_PRINTED_VALUE: Final = _Clause("value", "")

#: The clauses of each op, and the number of operands whose types are printed.
_PRINTED_FORMS: Final[Mapping[str, tuple[tuple[_Clause, ...], int]]] = {
    "expect_almost_eq": ((_TOLERANCE,), 1),
    "expect_almost_eq_const": ((_PRINTED_VALUE, _TOLERANCE), 0),
    "expect_close": (
        (
            _Clause("max_ulp_difference", "max_ulp_difference = ", "1 : ui64", is_optional=False),
            _Clause("min_ulp_difference", "min_ulp_difference = ", "0 : ui64"),
        ),
        2,
    ),
    "expect_eq": ((), 1),
    "expect_eq_const": ((_PRINTED_VALUE,), 0),
    "expect_serialized_eq": ((_Clause("probe_id", "probe_id = "), _Clause("iteration", "iter = ", "0 : ui32")), 1),
}


def pretty_checks(text: str) -> str:
    """All ops of the dialect in ``text`` must be valid."""
    pieces, done = [], 0
    for match in _PRINTED_CANDIDATE.finditer(text):
        if form := _PRINTED_FORMS.get(match["op"] or ""):
            scanner = Scanner(text, match.end())
            pieces += [text[done : match.start()], f"check.{match['op']} ", _pretty(scanner, *form)]
            done = scanner.position
    return "".join([*pieces, text[done:]])


def _pretty(scanner: Scanner, clauses: tuple[_Clause, ...], shown: int) -> str:
    """Return the pretty form of the text after the name of an op, and advance past the generic form."""
    words = parts_of(scanner.bracketed())
    attributes: dict[str, str] = {}
    while brackets := scanner.bracketed():
        # Properties, which an op of an unknown dialect may have, and attributes.
        inner = brackets.removeprefix("<").removesuffix(">")
        attributes |= {each.partition(" = ")[0]: each for each in parts_of(inner)}
    scanner.expect(":")
    kinds = parts_of(scanner.bracketed())
    scanner.expect("->")
    scanner.expect("()")
    for clause in clauses:
        value = attributes.pop(clause.name, "").partition(" = ")[2] or clause.default or ""
        if not (clause.is_optional and value == clause.default):
            words.append(clause.written + _TYPE.sub("", value))
    rest = f"{{{', '.join(attributes.values())}}}" if attributes else ""
    # Other attributes come after the colon in expect_close, and before it in other ops.
    ends = (
        [rest, ":", ", ".join(kinds[:shown])] if shown == 1 else [":" if shown else "", rest, ", ".join(kinds[:shown])]
    )
    return " ".join([", ".join(words), *filter(None, ends)])
