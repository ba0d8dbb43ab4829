"""Bytecode encodings of types and attributes, and the cases of enums."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from vhlo_tools.records import dataclass
from vhlo_tools.spec.data import COUNTED, NUMBERED, check_entry, load_entries
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

# Enum attributes of VHLO, from ``dialect_specs/vhlo/enums.toml``


@dataclass(frozen=True, slots=True)
class EnumCase:
    name: str  # as printed: ``WEAKORDER``
    value: int  # the number in the bytecode
    min: Version  # may be later than that of its enum


@dataclass(frozen=True, slots=True)
class Enum:
    name: str  # with its version: ``comparison_type_v1``
    min: Version
    max: Version | None  # None while it is current
    cases: tuple[EnumCase, ...]  # by ascending value

    def case(self, name: str) -> EnumCase | None:
        return next((case for case in self.cases if case.name == name), None)

    def case_of(self, value: int) -> EnumCase | None:
        return next((case for case in self.cases if case.value == value), None)


def load_enums(specs: Traversable | None = None) -> tuple[Enum, ...]:
    return load_entries("vhlo/enums.toml", "enum", _to_enum, specs)


@cache
def known_enums() -> tuple[Enum, ...]:
    return load_enums()


def find_enum(name: str) -> Enum | None:
    return _by_name().get(name)


@cache
def _by_name() -> dict[str, Enum]:
    return {enum.name: enum for enum in known_enums()}


def _to_enum(entry: dict[str, Any]) -> Enum:
    check_entry(entry, name=str, min=str, max=str, cases=[dict])
    if not entry["cases"]:
        raise ValueError("it has no case")
    for case in entry["cases"]:
        check_entry(case, name=str, value=COUNTED, min=str)
    cases = (EnumCase(case["name"], case["value"], Version(case.get("min", entry["min"]))) for case in entry["cases"])
    return Enum(entry["name"], Version(entry["min"]), Version(entry["max"]) if "max" in entry else None, tuple(cases))


# Bytecode encodings of types and attributes, from ``dialect_specs/<dialect>/{types,attributes}.toml``
#
# An encoding is a code and a list of fields; the codec in :mod:`vhlo_tools.bytecode` interprets them.

EntryKind = Literal["attribute", "type"]

_FILES: dict[EntryKind, str] = {"attribute": "attributes.toml", "type": "types.toml"}
_FOREIGN = ("sdy",)
# The encodings of fields other than enum cases; the head of vhlo/types.toml defines each.
_KINDS = (
    *("varint", "svarint", "byte", "f64", "apint", "apfloat", "string", "blob", "resource"),
    *("type", "attribute", "attribute?", "flagged attribute", "pair"),
)


def known_dialects() -> tuple[str, ...]:
    return ("builtin", "vhlo")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an encoding.

    Attributes:
        name: Its name.
        kind: Its encoding, such as ``svarint``; the kinds are described in ``vhlo/types.toml``.
        is_list: Whether it is a count followed by that many values of the kind.
        enum: The enum of its case, for the kind ``enum``.
    """

    name: str
    kind: str
    is_list: bool = False
    enum: str | None = None

    @classmethod
    def parse(cls, text: str) -> Field:
        """Parse ``name: kind``, ``name: kind[]`` or ``name: enum NAME``.

        Raises:
            ValueError: If ``text`` has none of these forms, or the kind is unknown.
        """
        name, _, kind = text.partition(": ")
        if kind.startswith("enum "):
            return cls(name, "enum", enum=kind.removeprefix("enum "))
        one = kind.removesuffix("[]")
        if one not in _KINDS or not name.isidentifier():
            raise ValueError(
                f"{text!r} is not a field: expected NAME: KIND, where KIND is {', '.join(_KINDS)} or enum NAME"
            )
        return cls(name, one, is_list=one != kind)


def field_text(field: Field) -> str:
    """Return a field as :meth:`Field.parse` reads it."""
    return f"{field.name}: {field.kind}{f' {field.enum}' if field.enum else ''}{'[]' if field.is_list else ''}"


@dataclass(frozen=True, slots=True)
class Encoding:
    """One encoding of a type or an attribute.

    Attributes:
        name: The type or attribute, as printed, without its dialect.
        code: The number with which its bytes begin.
        fields: The fields that follow the code.
        since: The first version whose readers know the code, where MLIR gained it later than StableHLO its versions.
        opaque: Whether what follows the code is kept as bytes.
    """

    name: str
    code: int
    fields: tuple[Field, ...]
    since: Version | None = None
    opaque: bool = False


@dataclass(frozen=True, slots=True)
class Spelling:
    """A type or an attribute: its version range and its encodings."""

    name: str  # as printed, without its dialect
    encodings: tuple[Encoding, ...]
    bits: int | None = None  # the width of values of a numeric type
    min: Version | None = None  # None outside of VHLO
    max: Version | None = None  # None while it is current
    #: The last version whose readers accept programs that contain it, where StableHLO dropped it although VHLO still
    #: has it; None if all readers accept it.
    last_read: Version | None = None


def load_spellings(dialect: str, kind: EntryKind, specs: Traversable | None = None) -> tuple[Spelling, ...]:
    return load_entries(f"{dialect}/{_FILES[kind]}", kind, _to_spelling, specs)


@cache
def spellings_of(dialect: str, kind: EntryKind) -> tuple[Spelling, ...]:
    return load_spellings(dialect, kind)


@cache
def encodings_of(dialect: str, kind: EntryKind) -> dict[int, Encoding]:
    if dialect not in known_dialects():
        return {}
    return {each.code: each for spelling in spellings_of(dialect, kind) for each in spelling.encodings}


@cache
def foreign_encodings(dialect: str) -> dict[int, Encoding]:
    """Return the attribute encodings, by code, of a dialect that is used beside VHLO.

    The conversions keep such attributes as bytes; a comparison of the attributes of two files must decode the bytes.
    """
    if dialect not in _FOREIGN:
        return {}
    spellings = load_spellings(dialect, "attribute")
    return {each.code: each for spelling in spellings for each in spelling.encodings}


# Types and attributes of other dialects than these, which the conversions keep as bytes, from ``beside.toml``


@dataclass(frozen=True, slots=True)
class CodesBeside:
    """Codes of a dialect beside VHLO, and which readers know them."""

    codes: frozenset[int]
    since: Version
    last_read: Version | None  # None if later readers know them, too
    fields: tuple[Field, ...] | None  # what follows the code, where two layouts share it


@dataclass(frozen=True, slots=True)
class DialectBeside:
    name: str
    since: Version  # of what is held as text, and of all codes if there are no rows
    rows: dict[EntryKind, tuple[CodesBeside, ...]]


def load_dialects_beside(specs: Traversable | None = None) -> tuple[DialectBeside, ...]:
    return load_entries("beside.toml", "dialect", _to_dialect_beside, specs)


@cache
def dialects_beside() -> dict[str, DialectBeside]:
    return {each.name: each for each in load_dialects_beside()}


def _to_dialect_beside(entry: dict[str, Any]) -> DialectBeside:
    check_entry(entry, name=str, since=str, attributes=[dict], types=[dict])
    since = Version(entry["since"])

    tables: tuple[tuple[EntryKind, str], ...] = (("attribute", "attributes"), ("type", "types"))
    rows = {kind: tuple(_to_codes_beside(row, since) for row in entry[key]) for kind, key in tables if key in entry}
    return DialectBeside(entry["name"], since, rows)


def _to_codes_beside(row: dict[str, Any], since: Version) -> CodesBeside:
    check_entry(row, codes=[int], since=str, last_read=str, fields=[str])
    return CodesBeside(
        frozenset(row["codes"]),
        Version(row["since"]) if "since" in row else since,
        Version(row["last_read"]) if "last_read" in row else None,
        tuple(map(Field.parse, row["fields"])) if "fields" in row else None,
    )


def _to_spelling(entry: dict[str, Any]) -> Spelling:
    check_entry(entry, name=str, min=str, max=str, last_read=str, bits=NUMBERED, encoding=[dict])
    if not entry["encoding"]:
        raise ValueError("it has no encoding")
    for each in entry["encoding"]:
        check_entry(each, code=COUNTED, fields=[str], since=str, opaque=bool)
    return Spelling(
        name=entry["name"],
        encodings=tuple(
            Encoding(
                entry["name"],
                each["code"],
                tuple(map(Field.parse, each.get("fields", ()))),
                Version(each["since"]) if "since" in each else None,
                each.get("opaque", False),
            )
            for each in entry["encoding"]
        ),
        bits=entry.get("bits"),
        min=Version(entry["min"]) if "min" in entry else None,
        max=Version(entry["max"]) if "max" in entry else None,
        last_read=Version(entry["last_read"]) if "last_read" in entry else None,
    )
