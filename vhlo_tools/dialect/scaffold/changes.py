"""The changes in a new version, and the parsers of their command line form."""

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
    """A new op.

    Attributes:
        name: Its name, without version.
        family: Its family, which may be new as well.
        operands: Its operands.
        results: Its results.
        attributes: Its inherent attributes.
        regions: Its regions.
        is_sketch: Whether only its name was given, and the rest is a guess.
    """

    name: str
    family: str
    operands: tuple[Slot, ...] = (Slot("operand"),)
    results: tuple[Slot, ...] = (Slot("result"),)
    attributes: tuple[str, ...] = ()
    regions: tuple[Slot, ...] = ()
    is_sketch: bool = False


@dataclass(frozen=True, slots=True)
class NewAttribute:
    """A new attribute of an op, which requires a new version of the op.

    Attributes:
        op: The op.
        name: The attribute that it gains.
        default: The value implied by older versions: an id in ``defaults.toml``, or a value as described in
            :func:`parse_attribute`.
    """

    op: str
    name: str
    default: str


@dataclass(frozen=True, slots=True)
class NewKind:
    """A new type of values, or a new attribute of the dialect.

    Attributes:
        kind: Which of the two.
        name: Its name, with its version.
        fields: The fields of its encoding after the code.
    """

    kind: EntryKind
    name: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewCase:
    """A new case of an enum, which may be new as well.

    Attributes:
        enum: The enum, with its version.
        name: The case.
    """

    enum: str
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
    """Parse an op: ``FAMILY/NAME``, followed by its signature where it is known.

    The signature is operands and results as in ``(lhs, rhs) -> result`` or ``(inputs*, token) -> (results*)``, then
    attributes in braces and regions in brackets.

    Raises:
        InvalidSpecificationError: If ``text`` does not have this form.
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
    """Parse an attribute of an op: ``OP.NAME=DEFAULT``.

    The default is an id in ``defaults.toml``, or one of ``true``, ``false``, ``[]``, an integer, a quoted string, and a
    case as ``ENUM.CASE``.

    Raises:
        InvalidSpecificationError: If ``text`` does not have this form.
    """
    match = _ATTRIBUTE.fullmatch(text)
    if match is None:
        raise InvalidSpecificationError(
            f"{text!r} is not an attribute of an op: expected OP.NAME=DEFAULT, where NAME is lower_case_words"
        )
    return NewAttribute(match[1], match[2], match[3])


def parse_kind(kind: EntryKind, text: str) -> NewKind:
    """Parse a type, or an attribute of the dialect: ``NAME`` or ``NAME(FIELD: KIND, ...)``.

    Raises:
        InvalidSpecificationError: If ``text`` does not have this form.
    """
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
    """Parse a case: ``ENUM.CASE``.

    Raises:
        InvalidSpecificationError: If ``text`` does not have this form.
    """
    match = _CASE.fullmatch(text)
    if match is None:
        raise InvalidSpecificationError(f"{text!r} is not a case: expected ENUM.CASE, as in precision.HIGHEST")
    return NewCase(versioned(match[1]), match[2])


def versioned(name: str) -> str:
    """Return ``name`` with its version suffix, by default that of version 1."""
    return name if re.search(r"_v[1-9]\d*$", name) else f"{name}_v1"


def stem(name: str) -> str:
    """Return ``name`` without its version suffix."""
    return re.sub(r"_v[1-9]\d*$", "", name)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _slots(text: str | None) -> tuple[Slot, ...]:
    return tuple(Slot(name.removesuffix("*"), name.endswith("*")) for name in _names(text))
