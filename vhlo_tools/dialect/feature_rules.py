"""Rules of ``vhlo spec lint`` about features and the entries that they name.

Everything that a version introduces and a program can contain must have a feature, by which findings name it; and a
feature must belong to something that its version introduced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vhlo_tools.dialect.rules import file_of, rule
from vhlo_tools.dialect.specification import ENCODING_KINDS

if TYPE_CHECKING:
    from vhlo_tools.dialect.features import Feature
    from vhlo_tools.dialect.ops import Op
    from vhlo_tools.dialect.rules import Complaint
    from vhlo_tools.dialect.specification import Specification
    from vhlo_tools.version import Version


@rule(
    "feature-missing",
    "ops, types, attributes and cases introduced after the first version are named by a feature",
    "add a feature to vhlo/features.toml that names it and is introduced by its version",
)
def _feature_missing(specs: Specification) -> Iterator[Complaint]:
    # A fork may have no features at all; findings then use the names of the entries.
    if not specs.features:
        return
    oldest = specs.versions[0].version
    named = {(name, each.introduced) for each in specs.features for name in (*each.ops, *each.names)}
    for file, entry, name, version in _arrivals(specs):
        if version > oldest and (name, version) not in named:
            yield file, entry, f"it was introduced in {version}, but no feature of {version} names {name}"


def _arrivals(specs: Specification) -> Iterator[tuple[str, str, str, Version]]:
    """Yield each introduced entry: its file, its name, the name that a feature uses for it, and the version."""
    for op in specs.ops:
        yield file_of(op), op.versions[0].name, op.name, op.versions[0].min
    for file, spellings in (("types", specs.types), ("attributes", specs.attributes)):
        for each in spellings:
            if each.min is not None:
                yield f"vhlo/{file}.toml", each.name, each.name, each.min
    for enum in specs.enums:
        yield from (("vhlo/enums.toml", f"{enum.name}.{case.name}", enum.name, case.min) for case in enum.cases)


@rule(
    "feature-ops",
    "only the features of steps and constraints name the op",
    "add the op to ops, or remove it",
)
def _feature_ops(specs: Specification) -> Iterator[Complaint]:
    for op in specs.ops:
        for identifier in sorted(_features_used_by(op)):
            feature = specs.feature(identifier)
            if feature is not None and op.name not in feature.ops:
                yield "vhlo/features.toml", feature.id, f"it does not name {op.name}, which uses it"
    for feature in specs.features:
        for name in feature.ops:
            named = specs.op(name)
            # The data does not specify which ops can contain a type, an attribute or a case.
            if named is not None and not feature.names and not _has(named, feature):
                yield "vhlo/features.toml", feature.id, f"it names {name}, but introduces nothing of it"


def _features_used_by(op: Op) -> set[str]:
    steps = {step.feature for step in op.steps if step.feature is not None}
    return steps | {constraint.feature for constraint in op.constraints}


def _has(op: Op, feature: Feature) -> bool:
    """Return whether the version of ``feature`` introduced something of ``op`` that an older version can refuse."""
    idle = {step.newer for step in op.steps if not (step.added or step.single or step.empty)}
    began = {version.min for version in op.versions if version.number not in idle}
    return feature.introduced in began or feature.id in _features_used_by(op)


@rule(
    "feature-once",
    "types, attributes and enums are named by one feature of a version, which findings refer to",
    "merge the two features",
)
def _feature_once(specs: Specification) -> Iterator[Complaint]:
    first: dict[tuple[str, Version], str] = {}
    for feature in specs.features:
        for name in feature.names:
            known = first.setdefault((name, feature.introduced), feature.id)
            if known != feature.id:
                yield "vhlo/features.toml", feature.id, f"{name} is also named by {known} of {feature.introduced}"


@rule("feature-kind", "only features of constraints have the kind constraint", "correct the kind")
def _feature_kind(specs: Specification) -> Iterator[Complaint]:
    constrained = {constraint.feature for op in specs.ops for constraint in op.constraints}
    for feature in specs.features:
        if feature.id in constrained and feature.kind != "constraint":
            yield "vhlo/features.toml", feature.id, f"its kind is {feature.kind}, but it is the feature of a constraint"
        elif specs.ops and feature.kind == "constraint" and feature.id not in constrained:
            yield "vhlo/features.toml", feature.id, "its kind is constraint, but no op has such a constraint"


@rule(
    "feature-empty",
    "a feature names ops, types, attributes or enums that its version introduced",
    "add them to ops or names, or correct the kind or version",
)
def _feature_empty(specs: Specification) -> Iterator[Complaint]:
    arrived = {(name, version) for _, _, name, version in _arrivals(specs)}
    known = {name for name, _ in arrived}
    for feature in specs.features:
        if not (feature.ops or feature.names or feature.kind in ENCODING_KINDS):
            yield "vhlo/features.toml", feature.id, "it names no op, type, attribute or enum"
        # The types and attributes that a constraint allows may be older than the feature.
        for name in () if feature.kind == "constraint" else feature.names:
            if name in known and (name, feature.introduced) not in arrived:
                yield "vhlo/features.toml", feature.id, f"{name} was not changed in {feature.introduced}"
