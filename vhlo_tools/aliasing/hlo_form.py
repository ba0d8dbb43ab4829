"""Aliases and donors in the header of an HLO text module.

``input_output_alias={ {}: (0, {}, may-alias), {1}: (2, {0}, must-alias) }, buffer_donor={ (3, {}) }``. Both the long
form of an entry and the short one, ``{}: 0``, are accepted, which the documentation of XLA shows and its parser
rejects.
Source: ``xla/hlo/parser/hlo_parser.cc`` in openxla/xla, and ``docs/aliasing.md`` there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from vhlo_tools.aliasing.alias_entries import Alias, Donor
from vhlo_tools.aliasing.shapes import format_index
from vhlo_tools.errors import AliasError

if TYPE_CHECKING:
    from vhlo_tools.aliasing.alias_entries import AliasKind
    from vhlo_tools.aliasing.shapes import ShapeIndex

# Numbers of 64 bits: Python refuses to convert very long ones.
_NUMBER: Final = r"\d{1,19}"
_INDEX: Final = rf"\{{\s*(?:{_NUMBER}\s*(?:,\s*{_NUMBER}\s*)*)?\}}"
_DONOR: Final = re.compile(rf"\(\s*({_NUMBER})\s*,\s*({_INDEX})\s*\)")
_ALIAS: Final = re.compile(
    rf"({_INDEX})\s*:\s*(?:({_NUMBER})|\(\s*({_NUMBER})\s*,\s*({_INDEX})\s*(?:,\s*(may-alias|must-alias)\s*)?\))"
)
_LONGEST: Final = 1 << 20


def parse_aliases(text: str) -> list[Alias]:
    """Parse the value of ``input_output_alias=``.

    >>> parse_aliases("{ {}: 0 }")
    [Alias(output_index=(), parameter_number=0, parameter_index=(), kind='may-alias')]
    """
    return [
        Alias(
            _index(match[1]),
            int(match[2] or match[3]),
            _index(match[4] or "{}"),
            _kind(match[5]),
        )
        for match in _entries(text, _ALIAS, "{output index}: (parameter, {parameter index}[, may-alias or must-alias])")
    ]


def parse_donors(text: str) -> list[Donor]:
    """Parse the value of ``buffer_donor=``."""
    found = _entries(text, _DONOR, "(parameter, {parameter index})")
    return [Donor(int(match[1]), _index(match[2])) for match in found]


def format_aliases(aliases: Iterable[Alias]) -> str:
    """Use the long form, which XLA prints and reads."""
    entries = (
        f"{format_index(each.output_index)}: "
        f"({each.parameter_number}, {format_index(each.parameter_index)}, {each.kind})"
        for each in aliases
    )
    return f"{{ {', '.join(entries)} }}"


def format_donors(donors: Iterable[Donor]) -> str:
    entries = (f"({each.parameter_number}, {format_index(each.parameter_index)})" for each in donors)
    return f"{{ {', '.join(entries)} }}"


def _entries(text: str, pattern: re.Pattern[str], expected: str) -> list[re.Match[str]]:
    body = text.strip()
    if len(body) > _LONGEST or not (body.startswith("{") and body.endswith("}")):
        raise AliasError(f"{body[:60]!r} is not a list of aliases or donors: expected {{ {expected}, ... }}")
    inner, at = body[1:-1], 0
    found = []
    while at < len(inner.rstrip()):
        at += len(inner[at:]) - len(inner[at:].lstrip())
        match = pattern.match(inner, at)
        if match is None:
            raise AliasError(
                f"{inner[at : at + 60]!r} is not an entry of a list of aliases or donors: expected {expected}"
            )
        found.append(match)
        rest = inner[match.end() :].lstrip()
        if rest and not rest.startswith(","):
            raise AliasError(f"expected a comma or the end of the list, found {rest[:60]!r}")
        at = len(inner) - len(rest) + 1 if rest else len(inner)
    return found


def _index(text: str) -> ShapeIndex:
    return tuple(int(number) for number in re.findall(r"\d+", text))


def _kind(text: str | None) -> AliasKind:
    return "must-alias" if text == "must-alias" else "may-alias"
