"""Survey of a checkout: the definition of VHLO in its TableGen and C++ files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vhlo_tools.dialect.checkout.constraints import read_constraints
from vhlo_tools.dialect.checkout.definitions import Definitions, KindSource, OpSource, read_definitions
from vhlo_tools.dialect.checkout.encodings import EncodingSource, read_encodings
from vhlo_tools.dialect.checkout.files import Checkout
from vhlo_tools.dialect.checkout.rewrites import StepSource, read_steps
from vhlo_tools.dialect.checkout.tablegen import TableGen, find_tablegen, read_records
from vhlo_tools.dialect.checkout.version_sources import (
    bytecode_versions,
    dates_of,
    read_current,
    read_minimum,
    version_log,
)
from vhlo_tools.dialect.survey.facts import Survey, constraint_name, encoding_text, requirement_text
from vhlo_tools.version import Version


def survey_checkout(folder: Path, tablegen: TableGen | None = None) -> Survey:
    """The days of versions are known only if the checkout has its git history."""
    checkout = Checkout.open(folder)
    current, minimum = read_current(checkout), read_minimum(checkout)
    records = read_records(checkout, tablegen or find_tablegen())
    definitions = read_definitions(records, checkout)
    encodings = read_encodings(checkout, definitions)
    steps, defaults = read_steps(records, checkout, definitions)
    constraints = read_constraints(checkout, definitions)
    notes = version_log(checkout)
    bytecode = bytecode_versions(checkout, {*notes, current})
    begins = [
        *(op.min for op in definitions.ops),
        *(kind.min for kind in (*definitions.types, *definitions.attributes)),
    ]
    versions = {*notes, current, *(each for each in begins if each is not None)}
    places = {("op", op.name): op.place for op in definitions.ops}
    places |= {("step", _step_name(step)): step.newer.place for step in steps}
    places |= {("constraint", constraint_name(each.op.name, each.since)): each.place for each in constraints}
    for kind, sources in (("type", definitions.types), ("attribute", definitions.attributes)):
        places |= {(kind, source.name): source.place for source in sources}
    for enum in definitions.enums:
        names = [("enum", enum.attribute.name), *(("case", f"{enum.attribute.name}.{case}") for case in enum.cases)]
        places |= dict.fromkeys(names, enum.attribute.place)
    required: dict[str, dict[str, Any]] = {}
    requirements: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for each in constraints:
        name = constraint_name(each.op.name, each.since)
        requirements[name] = (*requirements.get(name, ()), *each.requires)
        required[name] = {"min": str(each.since), "requires": sorted(map(requirement_text, requirements[name]))}
    return Survey(
        f"the checkout {folder}",
        current,
        minimum,
        {
            "version": {str(each): {"bytecode": bytecode[each]} if each in bytecode else {} for each in bytecode},
            "type": {source.name: _kind(source, encodings) for source in definitions.types},
            "attribute": {source.name: _kind(source, encodings) for source in definitions.attributes},
            "enum": {enum.attribute.name: _life(enum.attribute) for enum in definitions.enums},
            "case": dict(_cases(definitions)),
            "op": {op.name: _op(op) for op in definitions.ops},
            "step": {_step_name(step): _step(step) for step in steps},
            "constraint": required,
        },
        places=places,
        notes=notes,
        dates=dates_of(checkout, versions),
        defaults=defaults,
        requirements=requirements,
        encodings={kind.name: tuple(fields) for kind, fields in _fields(definitions, encodings)},
        unread=tuple(dict.fromkeys(checkout.unread)),
    )


def _life(source: KindSource | OpSource) -> dict[str, Any]:
    first = {} if source.min is None else {"min": str(source.min)}
    return first | {"max": None if source.max is None else str(source.max)}


def _kind(source: KindSource, encodings: Mapping[str, tuple[EncodingSource, ...]]) -> dict[str, Any]:
    facts = _life(source)
    if source.cpp in encodings:
        found = encodings[source.cpp]
        facts["encodings"] = sorted(encoding_text(each.code, [kind for _, kind in each.fields]) for each in found)
    return facts


def _fields(
    definitions: Definitions, encodings: Mapping[str, tuple[EncodingSource, ...]]
) -> Iterable[tuple[KindSource, list[tuple[int, tuple[str, ...]]]]]:
    for kind in (*definitions.types, *definitions.attributes):
        found = sorted(encodings.get(kind.cpp, ()), key=lambda each: each.code)
        yield kind, [(each.code, tuple(f"{name}: {what}" for name, what in each.fields)) for each in found]


def _cases(definitions: Definitions) -> Iterable[tuple[str, dict[str, Any]]]:
    for enum in definitions.enums:
        for name, value in enum.cases.items():
            begins: Version | None = enum.begins.get(name)
            facts = {"value": value, **({"min": str(begins)} if begins else {})}
            yield f"{enum.attribute.name}.{name}", facts


def _op(op: OpSource) -> dict[str, Any]:
    slots = {"operands": op.operands, "results": op.results, "regions": op.regions}
    return {
        **_life(op),
        **{key: [str(slot) for slot in each] for key, each in slots.items()},
        "attributes": sorted(op.attributes),
    }


def _step_name(step: StepSource) -> str:
    return f"{step.newer.op}.{step.older.number}-{step.newer.number}"


def _step(step: StepSource) -> dict[str, Any]:
    begins = {} if step.newer.min is None else {"min": str(step.newer.min)}
    return begins | {
        "added": dict(step.added),
        "removed": dict(step.removed),
        "single": sorted(step.single),
        "empty": sorted(step.empty),
    }
