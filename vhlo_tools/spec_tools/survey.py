"""Surveys of other sources of VHLO, and their comparison with a specification."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import date
from typing import Any, Final, Literal, TypeAlias

from vhlo_tools.records import dataclass
from vhlo_tools.spec import OpVersion, Slot, Specification, Spelling, field_text
from vhlo_tools.spec_tools.rules import step_name
from vhlo_tools.version import Version

# Facts of a source and of a specification, in one form in which they can be compared
#
# A source is a checkout of its C++ and TableGen files (:mod:`.checkout`) or an installed library. It
# need not say everything: a key that it leaves out is not compared, and what it could not be asked is listed in
# :attr:`Survey.unread` instead of being taken for absent.

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
    places: Mapping[tuple[str, str], str] = field(default_factory=dict)  # by kind and name
    notes: Mapping[Version, str] = field(default_factory=dict)  # what a version brought, in a sentence
    #: the day, and what dates it (``tag`` or ``commit``)
    dates: Mapping[Version, tuple[date, str]] = field(default_factory=dict)
    #: Values by id, as VHLO text prints them and as TOML; None where that could not be read.
    defaults: Mapping[str, tuple[str, str] | None] = field(default_factory=dict)
    #: What constraints require, by name: entries as in the files of ops, without feature and versions.
    requirements: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    #: each a code and its fields, as in ``types.toml``
    encodings: Mapping[str, tuple[tuple[int, tuple[str, ...]], ...]] = field(default_factory=dict)
    #: Values, as VHLO text, that op versions get for attributes that their predecessors lack, where the source shows
    #: them instead of naming defaults.
    implied: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
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
            step_name(op, step): {
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
        "constraint": _constraints(specs),
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


def _constraints(specs: Specification) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for _, op, constraint in specs.constraints():
        for number in constraint.versions:
            name = constraint_name(f"{op.name}_v{number}", constraint.since)
            facts = found.setdefault(name, {"min": str(constraint.since), "requires": []})
            keys = ("requires", "operands", "attributes", "kind", "value", "types")
            text = requirement_text({key: getattr(constraint, key) for key in keys})
            facts["requires"] = sorted([*facts["requires"], text])
    return found


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
        "encodings": sorted(
            encoding_text(each.code, [field_text(field).partition(": ")[2] for field in each.fields])
            for each in spelling.encodings
        ),
    }


def _end(end: Version | None, at: Version) -> str | None:
    return None if end is None or end >= at else str(end)


# Compare a specification with a survey of another source: differences, and entries that are merely newer here

Action = Literal["missing", "extra", "changed"]


@dataclass(frozen=True, slots=True)
class Difference:
    kind: str  # one of ``survey.facts.KINDS``
    name: str
    action: Action  # ``missing`` if only the source has it, ``extra`` if only the specification
    key: str | None  # of a changed entry; None if it is missing or extra
    here: Any
    there: Any
    min: str | None  # None if unknown
    max: str | None  # None while it is current
    place: str  # in the source

    def __str__(self) -> str:
        match self.action:
            case "missing":
                return f"{self.kind} {self.name}: only there"
            case "extra":
                return f"{self.kind} {self.name}: only here"
        return f"{self.kind} {self.name}: {self.key} is {_shown(self.here)} here, and {_shown(self.there)} there"


@dataclass(frozen=True, slots=True)
class Comparison:
    differences: tuple[Difference, ...]
    newer: tuple[tuple[str, str], ...]  # kind and name of entries that are newer than the source


def compare(specs: Specification, survey: Survey) -> Comparison:
    """Return the differences, as far as the survey knows.

    No difference is: an entry that begins after the version of the source (it is newer), an op version that newer
    libraries forget, or a version without a change that the source does not list.
    """
    ours, differences, newer = facts_of(specs, survey.version), list[Difference](), list[tuple[str, str]]()
    for kind in (kind for kind in KINDS if kind in survey.entries):
        here, there = ours[kind], survey.entries[kind]
        for name in sorted(here.keys() | there.keys(), key=_order):
            begins = None if name in there else name if kind == "version" else here[name].get("min")
            is_quiet = kind == "version" or (kind == "op" and name in here and specs.op_versions[name].forgotten)
            if begins is not None and Version(begins) > survey.version.minor_release:
                newer.append((kind, name))
            elif name in there or not is_quiet:
                differences += _of_entry(kind, name, here.get(name), there.get(name), survey.place(kind, name))
    return Comparison(tuple(differences), tuple(newer))


def _of_entry(
    kind: str, name: str, here: Mapping[str, Any] | None, there: Mapping[str, Any] | None, place: str
) -> Iterator[Difference]:
    facts = there if there is not None else here or {}
    life = (facts.get("min"), facts.get("max"))
    if here is None or there is None:
        yield Difference(kind, name, "missing" if here is None else "extra", None, here, there, *life, place)
        return
    for key, value in there.items():
        if here.get(key) != value:
            yield Difference(kind, name, "changed", key, here.get(key), value, *life, place)


def _order(name: str) -> tuple[int, int, int, str]:
    try:
        version = Version(name)
    except ValueError:
        return (0, 0, 0, name)
    return (version.major, version.minor, version.patch, "")


def _shown(value: object) -> str:
    return "absent" if value is None else value if isinstance(value, str) else json.dumps(value)
