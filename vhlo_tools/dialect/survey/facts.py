"""Facts of a source and of a specification, in one form in which they can be compared.

A source is a checkout of its C++ and TableGen files (:mod:`vhlo_tools.dialect.checkout`) or an installed library. It
need not say everything: a key that it leaves out is not compared, and what it could not be asked is listed in
:attr:`Survey.unread` instead of being taken for absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import date
from typing import Any, Final, TypeAlias

from vhlo_tools.dialect.encodings import Encoding, Field, Spelling
from vhlo_tools.dialect.ops import Constraint, OpVersion, Slot
from vhlo_tools.dialect.specification import Specification
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

#: The facts about each entry, by key: texts, numbers, lists and tables, as JSON has them.
Entries: TypeAlias = Mapping[str, Mapping[str, Any]]

#: The kinds of entries, in the order in which differences are listed and drafted.
KINDS: Final = ("version", "type", "attribute", "enum", "case", "op", "step", "constraint")


@dataclass(frozen=True, slots=True)
class Unread:
    place: str  # the file, with its line if there is one, or the other source
    expected: str  # the pattern that matched nothing there
    unknown: str  # what is therefore not compared

    def __str__(self) -> str:
        return f"{self.place}: {self.expected} was not found: {self.unknown}"


@dataclass(frozen=True, slots=True)
class Survey:
    source: str
    version: Version
    minimum: Version | None  # the oldest version that it writes
    entries: Mapping[str, Entries]  # for each of KINDS that was read, facts by name
    places: Mapping[tuple[str, str], str] = field(default_factory=dict, hash=False)  # by kind and name
    notes: Mapping[Version, str] = field(default_factory=dict, hash=False)  # what a version brought, in a sentence
    #: the day, and what dates it (``tag`` or ``commit``)
    dates: Mapping[Version, tuple[date, str]] = field(default_factory=dict, hash=False)
    #: Values by id, as VHLO text prints them and as TOML; None where that could not be read.
    defaults: Mapping[str, tuple[str, str] | None] = field(default_factory=dict, hash=False)
    #: What constraints require, by name: entries as in the files of ops, without feature and versions.
    requirements: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict, hash=False)
    #: each a code and its fields, as in ``types.toml``
    encodings: Mapping[str, tuple[tuple[int, tuple[str, ...]], ...]] = field(default_factory=dict, hash=False)
    #: Values, as VHLO text, that op versions get for attributes that their predecessors lack, where the source shows
    #: them instead of naming defaults.
    implied: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)
    unread: tuple[Unread, ...] = ()

    def place(self, kind: str, name: str) -> str:
        return self.places.get((kind, name), self.source)


def facts_of(specs: Specification, at: Version) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the facts of ``specs`` as a source of version ``at`` can say them.

    Entries that ended at ``at`` or later are current there. Later entries are left in, for the caller to set aside.
    """
    at = at.minor_release
    return {
        "version": {str(each.version): {"bytecode": each.bytecode} for each in specs.versions},
        "type": {each.name: _spelling(each, at) for each in specs.types},
        "attribute": {each.name: _spelling(each, at) for each in specs.attributes},
        "enum": {enum.name: {"min": str(enum.min), "max": _end(enum.max, at)} for enum in specs.enums},
        "case": {
            f"{enum.name}.{case.name}": {"value": case.value, "min": str(case.min)}
            for enum in specs.enums
            for case in enum.cases
        },
        "op": {name: _op_version(version, at) for name, version in specs.op_versions.items()},
        "step": {
            f"{op.name}.{step.older}-{step.newer}": {
                "min": str(newer.min),
                "added": dict(step.added),
                "sets": {
                    name: default.text if (default := specs.default(id_)) else None for name, id_ in step.added.items()
                },
                "removed": dict(step.removed),
                "single": sorted(step.single),
                "empty": sorted(step.empty),
            }
            for op, step, _, newer in specs.steps()
        },
        "constraint": dict(_constraints(specs)),
    }


def constraint_name(op_version: str, since: Version) -> str:
    return f"{op_version} before {since}"


def requirement_text(constraint: Mapping[str, Any]) -> str:
    words = [constraint["requires"], *constraint.get("operands", ()), *constraint.get("attributes", ())]
    value = constraint.get("value")
    case = f"{value['attribute']}.{value['case']}" if value and "case" in value else str(dict(value)) if value else None
    return " ".join([*words, *filter(None, [constraint.get("kind"), case]), *sorted(constraint.get("types", ()))])


def encoding_text(code: int, kinds: list[str]) -> str:
    return f"{code}: {', '.join(kinds)}" if kinds else str(code)


def _constraints(specs: Specification) -> Iterator[tuple[str, dict[str, Any]]]:
    found: dict[str, dict[str, Any]] = {}
    for _, op, constraint in specs.constraints():
        for number in constraint.versions:
            name = constraint_name(f"{op.name}_v{number}", constraint.since)
            facts = found.setdefault(name, {"min": str(constraint.since), "requires": []})
            facts["requires"] = sorted([*facts["requires"], requirement_text(_as_entry(constraint))])
    yield from found.items()


def _as_entry(constraint: Constraint) -> dict[str, Any]:
    keys = ("requires", "operands", "attributes", "kind", "value", "types")
    return {key: getattr(constraint, key) for key in keys if getattr(constraint, key)}


def _op_version(version: OpVersion, at: Version) -> dict[str, Any]:
    slots = {"operands": version.operands, "results": version.results, "regions": version.regions}
    return {
        "min": str(version.min),
        "max": _end(version.max, at),
        **{key: [str(slot) for slot in each] for key, each in slots.items()},
        **{f"number of {key}": number_text(each) for key, each in slots.items()},
        "attributes": sorted(version.attributes),
    }


def number_text(slots: tuple[Slot, ...]) -> str:
    """A number, or the least one and ``or more``."""
    fewest = sum(not slot.variadic for slot in slots)
    return f"{fewest} or more" if any(slot.variadic for slot in slots) else str(fewest)


def _spelling(spelling: Spelling, at: Version) -> dict[str, Any]:
    return {
        "min": str(spelling.min),
        "max": _end(spelling.max, at),
        "code": spelling.encodings[0].code,
        "encodings": sorted(_encoding(encoding) for encoding in spelling.encodings),
    }


def _encoding(encoding: Encoding) -> str:
    return encoding_text(encoding.code, [_kind(field) for field in encoding.fields])


def _kind(field: Field) -> str:
    return f"enum {field.enum}" if field.enum else f"{field.kind}[]" if field.is_list else field.kind


def _end(end: Version | None, at: Version) -> str | None:
    return None if end is None or end >= at else str(end)
