"""``vhlo spec diff``: changes between two versions, as a changelog.

The changes are derived from the version ranges of the entries, not recorded a second time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from vhlo_tools.dialect.specification import ENCODING_KINDS
from vhlo_tools.dialect.wording import constraint_text
from vhlo_tools.errors import UnknownTargetError
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.dialect.ops import Op, OpStep, OpVersion
    from vhlo_tools.dialect.specification import Specification
    from vhlo_tools.version import Version

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
    return tuple(
        replace(change, action=_REVERSED[change.action], detail=_reversed_detail(change))
        for change in sorted(changes, key=lambda change: change.version, reverse=True)
    )


def _reversed_detail(change: Change) -> str:
    if change.kind != "bytecode":
        return change.detail
    before, after = change.detail.removeprefix("MLIR bytecode ").split(" to ")
    return f"MLIR bytecode {after} to {before}"


def _changes(specs: Specification) -> Iterator[Change]:
    """The changes of the first version are included."""
    for op in specs.ops:
        yield from _changes_of(specs, op)
    for kind, spellings in (("type", specs.types), ("attribute", specs.attributes), ("enum", specs.enums)):
        for each in spellings:
            # An enum is an attribute as well, and is reported as one.
            if each.min is not None and kind != "enum":
                yield Change(each.min, "added", kind, each.name)
            if each.max is not None and kind != "enum" and (end := specs.after(each.max)):
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
    for older, newer in pairwise(specs.versions):
        if older.bytecode != newer.bytecode:
            detail = f"MLIR bytecode {older.bytecode} to {newer.bytecode}"
            yield Change(newer.version, "changed", "bytecode", str(newer.bytecode), detail)


def _changes_of(specs: Specification, op: Op) -> Iterator[Change]:
    if op.versions:
        yield Change(op.versions[0].min, "added", "op", op.versions[0].name)
        last = op.versions[-1]
        if last.max is not None and (end := specs.after(last.max)):
            yield Change(end, "removed", "op", last.name)
    for _, step, older, newer in (found for found in specs.steps() if found[0] is op):
        yield Change(newer.min, "added", "op version", newer.name, ", ".join(what_differs(older, newer, step)))


def what_differs(older: OpVersion, newer: OpVersion, step: OpStep | None = None) -> Iterator[str]:
    defaults = {**step.added, **step.removed} if step else {}
    for name in newer.attributes:
        if name not in older.attributes:
            yield f"new attribute {name}" + (f" (default {defaults[name]})" if name in defaults else "")
    for name in older.attributes:
        if name not in newer.attributes:
            yield f"without attribute {name}"
    slots = (
        *zip(older.operands, newer.operands, strict=False),
        *zip(older.results, newer.results, strict=False),
    )
    for before, after in slots:
        if after.variadic and not before.variadic:
            yield f"any number of {after.name}"
    for slot in newer.regions[len(older.regions) :]:
        yield f"new regions {slot}"
