"""The pretty form of the dialect ``check``: parsing and printing.

Source: the assembly formats in ``stablehlo/tests/CheckOps.td`` in openxla/stablehlo.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from vhlo_tools.records import dataclass
from vhlo_tools.upstream.pipelines import MismatchError, Scanner, parts_of


@dataclass(frozen=True, slots=True)
class _Clause:
    """An attribute with a position of its own after the operands."""

    name: str
    word: str  # before its value; empty for an attribute that is written with its type
    default: str | None = None  # None if there is none: the attribute is a string, or has no word
    is_required: bool = False  # written even if it has the default value


@dataclass(frozen=True, slots=True)
class _Form:
    operands: int
    clauses: tuple[_Clause, ...]
    types: int  # the number of operands whose types are written


_TOLERANCE: Final = _Clause("tolerance", "tolerance", "1.000000e-04 : f64")
_CONSTANT: Final = _Clause("value", "")
_FORMS: Final[Mapping[str, _Form]] = {
    "expect_almost_eq": _Form(2, (_TOLERANCE,), 1),
    "expect_almost_eq_const": _Form(1, (_CONSTANT, _TOLERANCE), 0),
    "expect_close": _Form(
        2,
        (
            _Clause("max_ulp_difference", "max_ulp_difference", "1 : ui64", is_required=True),
            _Clause("min_ulp_difference", "min_ulp_difference", "0 : ui64"),
        ),
        2,
    ),
    "expect_eq": _Form(2, (), 1),
    "expect_eq_const": _Form(1, (_CONSTANT,), 0),
    "expect_serialized_eq": _Form(1, (_Clause("probe_id", "probe_id"), _Clause("iteration", "iter", "0 : ui32")), 1),
}

# Conversion of ``check`` ops in MLIR text from the pretty form, which no bindings parse, to the generic form

_CANDIDATE: Final = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"?|(?<![\w.$!#@%])check\.(?P<op>expect_\w+)(?=[\s%])')
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
        written = f'"check.{match["op"]}"{_generic(scanner, form)}'
        lines = text.count("\n", match.start(), scanner.position) - written.count("\n")
        pieces += [text[done : match.start()], written, "\n" * lines]
        done = scanner.position
    return "".join([*pieces, text[done:]])


def _generic(scanner: Scanner, form: _Form) -> str:
    """The generic form of the text after the name of an op; advances past it."""
    operands = [scanner.take(_VALUE, "SSA operand")]
    for _ in range(form.operands - 1):
        scanner.expect(",")
        operands.append(scanner.take(_VALUE, "SSA operand"))
    attributes, types = [], []
    for clause in form.clauses:
        if clause.is_required or clause.default is None:
            scanner.expect(",")
        elif not scanner.skips(","):
            continue
        if clause.word:
            scanner.expect(clause.word)
            scanner.expect("=")
            value = scanner.string() if clause.default is None else _number(scanner, clause.default)
        else:
            value, type_ = _constant(scanner)
            types.append(type_)
        attributes.append(f"{clause.name} = {value}")
    # Other attributes come after the colon in expect_close, and before it in other ops.
    if form.types == 2:
        scanner.expect(":")
    attributes.append(_braces(scanner))
    if form.types == 1:
        scanner.expect(":")
    for number in range(form.types):
        if number:
            scanner.expect(",")
        types.append(scanner.type())
    types *= len(operands) // len(types)
    return f"({', '.join(operands)}) {{{', '.join(filter(None, attributes))}}} : ({', '.join(types)}) -> ()"


def _braces(scanner: Scanner) -> str:
    """Return the contents of the next braces, without the braces; empty if none come next."""
    before = scanner.position
    if scanner.peek() == "{":
        return scanner.bracketed()[1:-1].strip()
    # Text after the op is not part of it.
    scanner.position = before
    return ""


def _number(scanner: Scanner, default: str) -> str:
    """Return the next number, with the type of its default."""
    value, type_ = scanner.take(_NUMBER, "attribute value"), default.rpartition(" : ")[2]
    before = scanner.position
    # `: f64` belongs to the number, and `: tensor<...>` to the op.
    if not (scanner.skips(":") and scanner.skips(type_)):
        scanner.position = before
    return f"{value} : {type_}"


def _constant(scanner: Scanner) -> tuple[str, str]:
    """Return the next attribute as it is written, and its type."""
    scanner.peek()
    at = scanner.position
    word = scanner.word("attribute value")
    if word.startswith("#"):
        # An alias of an attribute with its type.
        definition = re.search(rf"^\s*{re.escape(word)}\s*=\s*", scanner.text, re.MULTILINE)
        if definition is None:
            raise MismatchError(f"a definition of the attribute alias '{word}'", at)
        return word, _constant(Scanner(scanner.text, definition.end()))[1]
    elements = scanner.bracketed()
    scanner.expect(":")
    type_ = scanner.type()
    return f"{word}{elements} : {type_}", type_


# Conversion of printed ``check`` ops from the generic form, the only one that MLIR knows, to the pretty form

_PRINTED_CANDIDATE: Final = re.compile(r'"check\.(?P<op>expect_\w+)"(?=\()|"(?:\\.|[^"\\])*"')
_TYPE: Final = re.compile(r" : (?:f64|ui32|ui64)$")


def pretty_checks(text: str) -> str:
    """All ops of the dialect in ``text`` must be valid."""
    pieces, done = [], 0
    for match in _PRINTED_CANDIDATE.finditer(text):
        if form := _FORMS.get(match["op"] or ""):
            scanner = Scanner(text, match.end())
            pieces += [text[done : match.start()], f"check.{match['op']} ", _pretty(scanner, form)]
            done = scanner.position
    return "".join([*pieces, text[done:]])


def _pretty(scanner: Scanner, form: _Form) -> str:
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
    for clause in form.clauses:
        value = attributes.pop(clause.name, "").partition(" = ")[2] or clause.default or ""
        if clause.is_required or value != clause.default:
            words.append((f"{clause.word} = " if clause.word else "") + _TYPE.sub("", value))
    rest = f"{{{', '.join(attributes.values())}}}" if attributes else ""
    # Other attributes come after the colon in expect_close, and before it in other ops.
    types = ", ".join(kinds[: form.types])
    ends = [rest, ":", types] if form.types == 1 else [":" if form.types else "", rest, types]
    return " ".join([", ".join(words), *filter(None, ends)])
