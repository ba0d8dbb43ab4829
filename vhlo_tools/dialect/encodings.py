"""How types and attributes stand in bytecode, from ``dialect_specs/<dialect>/{types,attributes}.toml``.

An encoding is a code and a list of fields; the codec in :mod:`vhlo_tools.bytecode` interprets them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from typing import Any, Literal

from vhlo_tools.dialect.data import check_entry, load_entries
from vhlo_tools.version import Version

__all__ = [
    "Encoding",
    "EntryKind",
    "Field",
    "Spelling",
    "encodings_of",
    "foreign_encodings",
    "known_dialects",
    "load_spellings",
    "spellings_of",
]

EntryKind = Literal["attribute", "type"]

_FILES: dict[EntryKind, str] = {"attribute": "attributes.toml", "type": "types.toml"}
_FOREIGN = ("sdy",)


def known_dialects() -> tuple[str, ...]:
    """Return the dialects whose encodings are specified."""
    return ("builtin", "vhlo")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an encoding.

    Attributes:
        name: What it is.
        kind: How it is written, such as ``svarint``; the kinds are described in ``vhlo/types.toml``.
        is_list: Whether it is a count and that many of the kind.
        enum: The enum whose case it is, for the kind ``enum``.
    """

    name: str
    kind: str
    is_list: bool = False
    enum: str | None = None

    @classmethod
    def parse(cls, text: str) -> Field:
        """Read ``name: kind``, ``name: kind[]`` or ``name: enum NAME``."""
        name, _, kind = text.partition(": ")
        if kind.startswith("enum "):
            return cls(name, "enum", enum=kind.removeprefix("enum "))
        return cls(name, kind.removesuffix("[]"), is_list=kind.endswith("[]"))


@dataclass(frozen=True, slots=True)
class Encoding:
    """One way in which a type or an attribute is written.

    Attributes:
        name: The type or attribute, as it is printed, without its dialect.
        code: The number that its bytes begin with.
        fields: What follows.
    """

    name: str
    code: int
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Spelling:
    """A type or an attribute: its life and its encodings.

    Attributes:
        name: Its name as printed, without its dialect.
        encodings: The ways in which it is written, by code.
        bits: How wide values of it are, for a type of numbers.
        min: The first version that has it; ``None`` outside of VHLO.
        max: The last version that has it; ``None`` while it is there.
        last_read: The last version whose readers accept programs that hold it, where StableHLO dropped it although
            VHLO has it still; ``None`` if all do.
    """

    name: str
    encodings: tuple[Encoding, ...]
    bits: int | None = None
    min: Version | None = None
    max: Version | None = None
    last_read: Version | None = None


def load_spellings(dialect: str, kind: EntryKind, specs: Traversable | None = None) -> tuple[Spelling, ...]:
    """Return the types or the attributes of ``dialect`` in the folder ``specs``, by default in ours."""
    return load_entries(f"{dialect}/{_FILES[kind]}", kind, _to_spelling, specs)


@cache
def spellings_of(dialect: str, kind: EntryKind) -> tuple[Spelling, ...]:
    """Return the types or the attributes of ``dialect``, in the order of the data."""
    return load_spellings(dialect, kind)


@cache
def encodings_of(dialect: str, kind: EntryKind) -> dict[int, Encoding]:
    """Return the encodings of the types or the attributes of ``dialect`` by code; none if it is not specified."""
    if dialect not in known_dialects():
        return {}
    return {each.code: each for spelling in spellings_of(dialect, kind) for each in spelling.encodings}


@cache
def foreign_encodings(dialect: str) -> dict[int, Encoding]:
    """Return the encodings of the attributes of a dialect that stands beside VHLO, by code; none if it is not known.

    The conversions carry such attributes as bytes; whoever compares those of two files must look into them.
    """
    if dialect not in _FOREIGN:
        return {}
    spellings = load_spellings(dialect, "attribute")
    return {each.code: each for spelling in spellings for each in spelling.encodings}


def _to_spelling(entry: dict[str, Any]) -> Spelling:
    check_entry(entry, name=str, min=str, max=str, last_read=str, bits=int, encoding=[dict])
    for each in entry["encoding"]:
        check_entry(each, code=int, fields=[str])
    return Spelling(
        name=entry["name"],
        encodings=tuple(
            Encoding(entry["name"], each["code"], tuple(map(Field.parse, each.get("fields", ()))))
            for each in entry["encoding"]
        ),
        bits=entry.get("bits"),
        min=Version(entry["min"]) if "min" in entry else None,
        max=Version(entry["max"]) if "max" in entry else None,
        last_read=Version(entry["last_read"]) if "last_read" in entry else None,
    )
