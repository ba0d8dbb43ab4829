"""Conversion of printed ``check`` ops from the generic form, the only one that MLIR knows, to the pretty form.

Source: the assembly formats in ``stablehlo/tests/CheckOps.td`` in openxla/stablehlo.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from vhlo_tools.records import dataclass
from vhlo_tools.upstream.scanner import Scanner, parts_of

_CANDIDATE: Final = re.compile(r'"check\.(?P<op>expect_\w+)"(?=\()|"(?:\\.|[^"\\])*"')
_TYPE: Final = re.compile(r" : (?:f64|ui32|ui64)$")


@dataclass(frozen=True, slots=True)
class _Clause:
    """An attribute with a position of its own after the operands."""

    name: str
    written: str  # the text before its value
    default: str | None = None  # None if the attribute is required
    is_optional: bool = True  # the default value is left out


_TOLERANCE: Final = _Clause("tolerance", "tolerance = ", "1.000000e-04 : f64")
_VALUE: Final = _Clause("value", "")

#: The clauses of each op, and the number of operands whose types are printed.
_FORMS: Final[Mapping[str, tuple[tuple[_Clause, ...], int]]] = {
    "expect_almost_eq": ((_TOLERANCE,), 1),
    "expect_almost_eq_const": ((_VALUE, _TOLERANCE), 0),
    "expect_close": (
        (
            _Clause("max_ulp_difference", "max_ulp_difference = ", "1 : ui64", is_optional=False),
            _Clause("min_ulp_difference", "min_ulp_difference = ", "0 : ui64"),
        ),
        2,
    ),
    "expect_eq": ((), 1),
    "expect_eq_const": ((_VALUE,), 0),
    "expect_serialized_eq": ((_Clause("probe_id", "probe_id = "), _Clause("iteration", "iter = ", "0 : ui32")), 1),
}


def pretty_checks(text: str) -> str:
    """All ops of the dialect in ``text`` must be valid."""
    pieces, done = [], 0
    for match in _CANDIDATE.finditer(text):
        if form := _FORMS.get(match["op"] or ""):
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
