"""Compare a specification with a survey of another source: differences, and entries that are merely newer here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from vhlo_tools.dialect.specification import Specification
from vhlo_tools.dialect.survey.facts import KINDS, Survey, facts_of
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

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
            if name not in there and _begins_after(kind, name, here[name], survey.version):
                newer.append((kind, name))
            elif name in there or not _is_quiet(specs, kind, name):
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


def _begins_after(kind: str, name: str, facts: Mapping[str, Any], version: Version) -> bool:
    begins = name if kind == "version" else facts.get("min")
    return begins is not None and Version(begins) > version.minor_release


def _is_quiet(specs: Specification, kind: str, name: str) -> bool:
    if kind == "version":
        return True
    return kind == "op" and specs.op_versions[name].forgotten


def _order(name: str) -> tuple[int, int, int, str]:
    try:
        version = Version(name)
    except ValueError:
        return (0, 0, 0, name)
    return (version.major, version.minor, version.patch, "")


def _shown(value: object) -> str:
    return "absent" if value is None else value if isinstance(value, str) else json.dumps(value)
