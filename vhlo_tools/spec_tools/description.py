"""``vhlo spec show`` and ``vhlo spec diff``: descriptions of names, and changes between versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from vhlo_tools.errors import UnknownTargetError
from vhlo_tools.records import dataclass
from vhlo_tools.spec import ENCODING_KINDS, constraint_text, defaults_of, field_text, step_texts

if TYPE_CHECKING:
    from vhlo_tools.spec import (
        Default,
        Enum,
        Feature,
        Op,
        OpStep,
        OpVersion,
        Specification,
        Spelling,
        VersionEntry,
    )
    from vhlo_tools.version import Version

# ``vhlo spec diff``: changes between two versions, as a changelog
#
# The changes are derived from the version ranges of the entries, not recorded a second time.

Action = Literal["added", "removed", "changed", "allowed", "refused"]
_REVERSED: dict[Action, Action] = {
    "added": "removed",
    "removed": "added",
    "changed": "changed",
    "allowed": "refused",
    "refused": "allowed",
}


@dataclass(frozen=True, slots=True)
class Change:
    version: Version  # the newer of the two
    action: Action  # in a diff from newer to older, the effect of going back
    #: ``op``, ``op version``, ``type``, ``attribute``, ``enum``, ``case``, ``constraint``, ``encoding`` or
    #: ``bytecode``
    kind: str
    name: str
    detail: str = ""


def diff(specs: Specification, start: Version, end: Version) -> tuple[Change, ...]:
    """Return the changes version by version, in the direction from ``start`` to ``end``."""
    known = [entry.version for entry in specs.versions]
    for version in (start, end):
        if version.minor_release not in known:
            raise UnknownTargetError(
                f"{version} is not a version of the specification: expected one from {known[0]} to {known[-1]}"
            )
    low, high = sorted((start.minor_release, end.minor_release))
    changes = sorted(
        (change for change in _changes(specs) if low < change.version <= high), key=lambda change: change.version
    )
    if start.minor_release <= end.minor_release:
        return tuple(changes)
    reverted = []
    for change in sorted(changes, key=lambda change: change.version, reverse=True):
        detail = change.detail
        if change.kind == "bytecode":
            before, after = detail.removeprefix("MLIR bytecode ").split(" to ")
            detail = f"MLIR bytecode {after} to {before}"
        reverted.append(replace(change, action=_REVERSED[change.action], detail=detail))
    return tuple(reverted)


def _changes(specs: Specification) -> Iterator[Change]:
    """The changes of the first version are included."""
    for op in specs.ops:
        if op.versions:
            yield Change(op.versions[0].min, "added", "op", op.versions[0].name)
            last = op.versions[-1]
            if last.max is not None and (end := specs.after(last.max)):
                yield Change(end, "removed", "op", last.name)
        for _, step, older, newer in (found for found in specs.steps() if found[0] is op):
            yield Change(newer.min, "added", "op version", newer.name, ", ".join(what_differs(older, newer, step)))
    # An enum is an attribute as well, and is reported as one.
    for kind, spellings in (("type", specs.types), ("attribute", specs.attributes)):
        for each in spellings:
            if each.min is not None:
                yield Change(each.min, "added", kind, each.name)
            if each.max is not None and (end := specs.after(each.max)):
                yield Change(end, "removed", kind, each.name)
    for enum in specs.enums:
        for case in enum.cases:
            if case.min > enum.min:
                yield Change(case.min, "added", "case", f"{enum.name}.{case.name}")
    for name, _, constraint in specs.constraints():
        yield Change(constraint.since, "allowed", "constraint", name, constraint_text(constraint))
    for feature in specs.features:
        if feature.kind in ENCODING_KINDS:
            yield Change(feature.introduced, "allowed", "encoding", feature.id, feature.title)
    for before, after in pairwise(specs.versions):
        if before.bytecode != after.bytecode:
            detail = f"MLIR bytecode {before.bytecode} to {after.bytecode}"
            yield Change(after.version, "changed", "bytecode", str(after.bytecode), detail)


def what_differs(older: OpVersion, newer: OpVersion, step: OpStep | None = None) -> Iterator[str]:
    defaults = {**step.added, **step.removed} if step else {}
    for name in newer.attributes:
        if name not in older.attributes:
            yield f"new attribute {name}" + (f" (default {defaults[name]})" if name in defaults else "")
    for name in older.attributes:
        if name not in newer.attributes:
            yield f"without attribute {name}"
    slots = (*zip(older.operands, newer.operands, strict=False), *zip(older.results, newer.results, strict=False))
    for before, after in slots:
        if after.variadic and not before.variadic:
            yield f"any number of {after.name}"
    for slot in newer.regions[len(older.regions) :]:
        yield f"new regions {slot}"


# ``vhlo spec show``: describe a name of a specification as plain data

Description = dict[str, Any]

_PREFIXES = ("!vhlo.", "#vhlo.", "vhlo.", "stablehlo.")


def describe(specs: Specification, name: str) -> tuple[Description, ...]:
    """``name`` is with or without its version."""
    plain = next((name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)), name)
    found = tuple(_found(specs, plain))
    if not found:
        raise UnknownTargetError(
            f"{name!r} is not an op, type, attribute, enum, feature, default or version of the "
            f"specification{nearest(specs, plain)}"
        )
    return found


def nearest(specs: Specification, name: str) -> str:
    """Return the closest names as the end of an error message; empty if none is close."""
    names = {_stem(entry.name) for entry in specs.entries() if entry.kind not in ("constraint", "step")}
    # Imported here because few names are misspelt.
    from difflib import get_close_matches

    close = get_close_matches(name, sorted(names), n=3)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _stem(name: str) -> str:
    stem, _, number = name.rpartition("_v")
    return stem if number.isdecimal() else name


def _found(specs: Specification, name: str) -> Iterator[Description]:
    for op in specs.ops:
        if name == op.name or name in {version.name for version in op.versions}:
            yield _op(specs, op)
    for kind, spellings in (("type", specs.types), ("attribute", specs.attributes)):
        for spelling in spellings:
            if name in (spelling.name, _stem(spelling.name)):
                yield _spelling(specs, kind, spelling)
    attributes = {spelling.name for spelling in specs.attributes}
    for enum in specs.enums:
        # An enum is an attribute, and is described as an attribute if it is specified as one.
        by_name = name in (enum.name, _stem(enum.name)) and enum.name not in attributes
        if by_name or enum.case(name.removeprefix(f"{enum.name}.")):
            yield _enum(specs, enum)
    yield from (_feature(specs, feature) for feature in specs.features if feature.id == name)
    yield from (_default(specs, default) for default in specs.defaults if default.id == name)
    yield from (_version(specs, entry) for entry in specs.versions if str(entry.version) == name)


def _op(specs: Specification, op: Op) -> Description:
    steps = {(older.number, newer.number): step for _, step, older, newer in specs.steps() if op.name == older.op}
    before: tuple[OpVersion | None, ...] = (None, *op.versions[:-1])
    return {
        "kind": "op",
        "name": op.name,
        "family": op.family,
        "min": _text(op.versions[0].min),
        "max": _text(op.versions[-1].max),
        "versions": [
            {
                "name": version.name,
                "min": _text(version.min),
                "max": _text(version.max),
                "operands": list(map(str, version.operands)),
                "results": list(map(str, version.results)),
                "attributes": list(version.attributes),
                "regions": list(map(str, version.regions)),
                "forgotten": version.forgotten,
                "changes": list(what_differs(older, version)) if older else [],
                "refuses": [
                    {
                        "what": constraint_text(constraint),
                        "before": str(constraint.since),
                        "feature": constraint.feature,
                    }
                    for constraint in op.constraints
                    if version.number in constraint.versions
                ],
            }
            for older, version in zip(before, op.versions, strict=True)
        ],
        "steps": [
            {
                "between": [f"{op.name}_v{number}" for number in between],
                "feature": step.feature,
                "does": [
                    {"direction": direction, "what": what, "guard": guard}
                    for direction, what, guard in step_texts(step)
                ],
            }
            for between, step in sorted(steps.items())
        ],
        "features": [_brief(feature) for feature in specs.features_of(op.name)],
    }


def _spelling(specs: Specification, kind: str, spelling: Spelling) -> Description:
    enum = specs.enum(spelling.name) if kind == "attribute" else None
    return {
        "kind": kind,
        "name": spelling.name,
        "min": _text(spelling.min),
        "max": _text(spelling.max),
        **({"bits": spelling.bits} if spelling.bits else {}),
        "encodings": [{"code": each.code, "fields": list(map(field_text, each.fields))} for each in spelling.encodings],
        **({"cases": _cases(enum)} if enum else {}),
        "features": [_brief(feature) for feature in specs.features_of(spelling.name)],
    }


def _enum(specs: Specification, enum: Enum) -> Description:
    features = [_brief(feature) for feature in specs.features_of(enum.name)]
    life = {"min": _text(enum.min), "max": _text(enum.max)}
    return {"kind": "enum", "name": enum.name, **life, "cases": _cases(enum), "features": features}


def _cases(enum: Enum) -> list[Description]:
    return [{"name": case.name, "value": case.value, "min": str(case.min)} for case in enum.cases]


def _feature(specs: Specification, feature: Feature) -> Description:
    return {
        "kind": "encoding" if feature.kind in ENCODING_KINDS else "feature",
        "name": feature.id,
        "min": str(feature.introduced),
        "max": None,
        "title": feature.title,
        "is_of_kind": feature.kind,
        "remedy": feature.remedy,
        "ops": list(feature.ops),
        "names": list(feature.names),
        "steps": [f"{older.name} to {newer.name}" for _, s, older, newer in specs.steps() if s.feature == feature.id],
        "constraints": [
            f"{op.name}: no {constraint_text(constraint)}"
            for _, op, constraint in specs.constraints()
            if constraint.feature == feature.id
        ],
    }


def _default(specs: Specification, default: Default) -> Description:
    return {
        "kind": "default",
        "name": default.id,
        "text": default.text,
        "equals": default.equals,
        "computed": default.computed,
        "of": default.of,
        "steps": [
            f"{older.name} to {newer.name}" for _, s, older, newer in specs.steps() if default.id in defaults_of(s)
        ],
    }


def _version(specs: Specification, entry: VersionEntry) -> Description:
    before = specs.before(entry.version)
    return {
        "kind": "version",
        "name": str(entry.version),
        "date": str(entry.date),
        "bytecode": entry.bytecode,
        "brought": entry.brought,
        "changes": [f"{change.action} {change.kind} {change.name}" for change in diff(specs, before, entry.version)]
        if before
        else [],
    }


def _brief(feature: Feature) -> Description:
    return {"id": feature.id, "introduced": str(feature.introduced), "title": feature.title, "remedy": feature.remedy}


def _text(version: Version | None) -> str | None:
    return None if version is None else str(version)
