"""Changes in a new version, and the parsers of their command line form."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vhlo_tools.dialect.encodings import Field
from vhlo_tools.dialect.ops import Slot
from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.dialect.encodings import EntryKind


@dataclass(frozen=True, slots=True)
class NewOp:
    name: str
    family: str  # may be new as well
    operands: tuple[Slot, ...] = (Slot("operand"),)
    results: tuple[Slot, ...] = (Slot("result"),)
    attributes: tuple[str, ...] = ()
    regions: tuple[Slot, ...] = ()
    is_sketch: bool = False  # only the name was given, the rest is a guess


@dataclass(frozen=True, slots=True)
class NewAttribute:
    """A new attribute of an op, which requires a new version of the op."""

    op: str
    name: str
    default: str  # an id in ``defaults.toml`` or a value (parse_attribute)


@dataclass(frozen=True, slots=True)
class NewKind:
    kind: EntryKind
    name: str  # with its version
    fields: tuple[str, ...] = ()  # of its encoding, after the code


@dataclass(frozen=True, slots=True)
class NewCase:
    """A new case of an enum, which may be new as well."""

    enum: str  # with its version
    name: str


NewEntry = NewOp | NewAttribute | NewKind | NewCase

_OP = re.compile(
    r"([a-z][a-z0-9_]*)/([a-z][a-z0-9_-]*)"
    r"(\s*\((?P<operands>[^()]*)\)\s*->\s*(\((?P<results>[^()]*)\)|(?P<result>[^(){}\[\]\s]+)))?"
    r"(\s*\{(?P<attributes>[^{}]*)\})?"
    r"(\s*\[(?P<regions>[^\[\]]*)\])?\s*"
)
_ATTRIBUTE = re.compile(r"([a-z][a-z0-9_-]*)\.([a-z]\w*)=(.+)", re.ASCII | re.DOTALL)
_KIND = re.compile(r"([A-Za-z]\w*)\s*(?:\((.*)\))?", re.ASCII | re.DOTALL)
_CASE = re.compile(r"([a-z]\w*)\.([A-Z][A-Z0-9_]*)", re.ASCII)


def parse_op(text: str) -> NewOp:
    """Parse ``FAMILY/NAME``, and where known operands and results, then ``{attributes}`` and ``[regions]``.

    Operands and results are written ``(lhs, rhs) -> result`` or ``(inputs*, token) -> (results*)``.
    """
    match = _OP.fullmatch(text)
    if match is None:
        raise InvalidSpecificationError(
            f"{text!r} is not an op: expected FAMILY/NAME, and then, as far as known, (OPERANDS) -> (RESULTS), "
            "{ATTRIBUTES} and [REGIONS]"
        )
    sketch = NewOp(match[2], match[1], is_sketch=match["operands"] is None)
    return NewOp(
        match[2],
        match[1],
        sketch.operands if sketch.is_sketch else _slots(match["operands"]),
        sketch.results if sketch.is_sketch else _slots(match["results"] or match["result"] or ""),
        tuple(sorted(_names(match["attributes"]))),
        _slots(match["regions"]),
        sketch.is_sketch,
    )


def parse_attribute(text: str) -> NewAttribute:
    """Parse ``OP.NAME=DEFAULT``.

    The default is an id in ``defaults.toml``, or ``true``, ``false``, ``[]``, an integer, a quoted string or
    ``ENUM.CASE``.
    """
    match = _ATTRIBUTE.fullmatch(text)
    if match is None:
        raise InvalidSpecificationError(
            f"{text!r} is not an attribute of an op: expected OP.NAME=DEFAULT, where NAME is lower_case_words"
        )
    return NewAttribute(match[1], match[2], match[3])


def parse_kind(kind: EntryKind, text: str) -> NewKind:
    """Parse ``NAME`` or ``NAME(FIELD: KIND, ...)``."""
    match = _KIND.fullmatch(text)
    if match is None:
        raise InvalidSpecificationError(f"{text!r} is not a valid {kind}: expected NAME, or NAME(FIELD: KIND, ...)")
    fields = _names(match[2])
    for field in fields:
        try:
            Field.parse(field)
        except ValueError as error:
            raise InvalidSpecificationError(str(error)) from None
    return NewKind(kind, versioned(match[1]), fields)


def parse_case(text: str) -> NewCase:
    """Parse ``ENUM.CASE``."""
    match = _CASE.fullmatch(text)
    if match is None:
        raise InvalidSpecificationError(f"{text!r} is not a case: expected ENUM.CASE, as in precision.HIGHEST")
    return NewCase(versioned(match[1]), match[2])


def versioned(name: str) -> str:
    """The default is version 1."""
    return name if re.search(r"_v[1-9]\d*$", name) else f"{name}_v1"


def stem(name: str) -> str:
    return re.sub(r"_v[1-9]\d*$", "", name)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _slots(text: str | None) -> tuple[Slot, ...]:
    return tuple(Slot(name.removesuffix("*"), name.endswith("*")) for name in _names(text))
