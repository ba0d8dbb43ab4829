"""Rules of ``vhlo spec lint`` about features and ops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from vhlo_tools.spec import ENCODING_KINDS, defaults_of
from vhlo_tools.spec_tools.rules import file_of, rule, step_name

if TYPE_CHECKING:
    from vhlo_tools.spec import Op, Slot, Specification
    from vhlo_tools.spec_tools.rules import Complaint
    from vhlo_tools.version import Version

# Rules of ``vhlo spec lint`` about features and the entries that they name
#
# Everything that a version introduces and a program can contain must have a feature, by which findings name it; and a
# feature must belong to something that its version introduced.


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


@rule("feature-ops", "only the features of steps and constraints name the op", "add the op to ops, or remove it")
def _feature_ops(specs: Specification) -> Iterator[Complaint]:
    for op in specs.ops:
        for identifier in sorted(_features_used_by(op)):
            feature = specs.feature(identifier)
            if feature is not None and op.name not in feature.ops:
                yield "vhlo/features.toml", feature.id, f"it does not name {op.name}, which uses it"
    for feature in specs.features:
        for name in feature.ops:
            op_named = specs.op(name)
            # The data does not specify which ops can contain a type, an attribute or a case.
            if op_named is None or feature.names:
                continue
            # What an older version cannot refuse needs no feature.
            idle = {step.newer for step in op_named.steps if not (step.added or step.single or step.empty)}
            began = {version.min for version in op_named.versions if version.number not in idle}
            if feature.introduced not in began and feature.id not in _features_used_by(op_named):
                yield "vhlo/features.toml", feature.id, f"it names {name}, but introduces nothing of it"


def _features_used_by(op: Op) -> set[str]:
    steps = {step.feature for step in op.steps if step.feature is not None}
    return steps | {constraint.feature for constraint in op.constraints}


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


# Rules of ``vhlo spec lint`` about ops, their steps and constraints, and the features that these name

# Ops


@rule("attribute-order", "attributes are in alphabetical order, as in a properties entry", "sort them")
def _attribute_order(specs: Specification) -> Iterator[Complaint]:
    for version in specs.op_versions.values():
        if list(version.attributes) != sorted(set(version.attributes)):
            op = next(op for op in specs.ops if op.name == version.op)
            yield file_of(op), version.name, f"its attributes are {', '.join(version.attributes)}"


@rule(
    "step-missing",
    "there is one step between consecutive versions, and no other",
    "add [[op.step]] between them, or remove it",
)
def _step_missing(specs: Specification) -> Iterator[Complaint]:
    for op in specs.ops:
        neighbours = [(older.number, newer.number) for older, newer in pairwise(op.versions)]
        steps = Counter((step.older, step.newer) for step in op.steps)
        for older, newer in neighbours:
            if not steps[older, newer]:
                yield file_of(op), op.name, f"there is no step between versions {older} and {newer}"
        for (older, newer), count in steps.items():
            if (older, newer) not in neighbours:
                yield file_of(op), op.name, f"there is a step between {older} and {newer}, which are not consecutive"
            elif count > 1:
                yield file_of(op), op.name, f"there are {count} steps between versions {older} and {newer}"


@rule(
    "step-attributes",
    "steps add and remove exactly the attributes in which the versions differ",
    "list each different attribute once",
)
def _step_attributes(specs: Specification) -> Iterator[Complaint]:
    for op, step, older, newer in specs.steps():
        for verb, said, attributes in (
            ("added", step.added, set(newer.attributes) - set(older.attributes)),
            ("removed", step.removed, set(older.attributes) - set(newer.attributes)),
        ):
            for name in sorted(attributes - said.keys()):
                yield file_of(op), step_name(op, step), f"{name} is {verb}, but the step does not list it"
            for name in sorted(said.keys() - attributes):
                yield file_of(op), step_name(op, step), f"the step lists {name} as {verb}, but it is not"


@rule(
    "step-values",
    "steps list the operands, results and regions that became variadic or are new",
    "list them in single or empty",
)
def _step_values(specs: Specification) -> Iterator[Complaint]:
    for op, step, older, newer in specs.steps():
        entry = step_name(op, step)
        counts = [(len(version.operands), len(version.results)) for version in (older, newer)]
        if counts[0] != counts[1] or newer.regions[: len(older.regions)] != older.regions:
            what = "the versions differ in operands, results or regions in a way that no step can express"
            yield file_of(op), entry, what
            continue
        widened = _widened(older.operands, newer.operands) | _widened(older.results, newer.results)
        if widened != set(step.single):
            yield file_of(op), entry, f"single must be {sorted(widened)}: these became variadic"
        added = [slot.name for slot in newer.regions[len(older.regions) :]]
        if set(added) != set(step.empty):
            yield file_of(op), entry, f"empty must be {added}: these regions are new"


def _widened(older: Iterable[Slot], newer: Iterable[Slot]) -> set[str]:
    return {slot.name for before, slot in zip(older, newer, strict=True) if slot.variadic and not before.variadic}


@rule(
    "default-unknown",
    "the defaults of steps are in defaults.toml, and can be matched",
    "add the default, or correct its id",
)
def _default_unknown(specs: Specification) -> Iterator[Complaint]:
    for op, step, _, newer in specs.steps():
        entry = step_name(op, step)
        for identifier in sorted(defaults_of(step)):
            default = specs.default(identifier)
            if default is None:
                yield file_of(op), entry, f"there is no default {identifier}"
            elif default.computed and identifier in step.added.values():
                yield file_of(op), entry, f"{identifier} is computed: a downgrade cannot match it"
            elif default.of is not None and default.of not in {slot.name for slot in newer.operands}:
                yield file_of(op), entry, f"{identifier} is computed from {default.of}, which is not an operand"


@rule("constraint-unknown", "constraints name versions, operands and attributes of their op", "correct the name")
def _constraint_unknown(specs: Specification) -> Iterator[Complaint]:
    for name, op, constraint in specs.constraints():
        for number in constraint.versions:
            version = specs.op_versions.get(f"{op.name}_v{number}")
            if version is None:
                yield file_of(op), name, f"there is no version {number} of {op.name}"
                continue
            missing = set(constraint.operands) - {slot.name for slot in version.operands}
            for each in sorted(missing | set(constraint.attributes) - set(version.attributes)):
                yield file_of(op), name, f"{version.name} has no {each}"


# Features


@rule(
    "feature-unknown",
    "the features of steps and constraints are in features.toml",
    "add the feature, or correct its id",
)
def _feature_unknown(specs: Specification) -> Iterator[Complaint]:
    used = [(op, step_name(op, step), step.feature) for op in specs.ops for step in op.steps]
    used += [(op, name, constraint.feature) for name, op, constraint in specs.constraints()]
    for op, entry, feature in used:
        if feature is not None and specs.feature(feature) is None:
            yield file_of(op), entry, f"there is no feature {feature}"


@rule(
    "feature-guard",
    "only steps that can reject a downgrade name a feature, which is the reason",
    "add the feature, or remove it",
)
def _feature_guard(specs: Specification) -> Iterator[Complaint]:
    for op, step, _, _ in specs.steps():
        guarded = bool(step.added or step.single or step.empty)
        if guarded and step.feature is None:
            yield file_of(op), step_name(op, step), "it can reject a downgrade, but names no feature"
        elif not guarded and step.feature is not None:
            found = f"it names {step.feature}, but cannot reject a downgrade"
            yield file_of(op), step_name(op, step), found


@rule(
    "feature-introduced",
    "a feature is introduced by the version that its steps and constraints specify",
    "make the versions equal",
)
def _feature_introduced(specs: Specification) -> Iterator[Complaint]:
    said = [(op, step_name(op, step), step.feature, newer.min) for op, step, _, newer in specs.steps()]
    said += [(op, name, constraint.feature, constraint.since) for name, op, constraint in specs.constraints()]
    for op, entry, identifier, version in said:
        feature = specs.feature(identifier)
        if feature is not None and feature.introduced != version:
            yield file_of(op), entry, f"its version is {version}, that of feature {feature.id} is {feature.introduced}"


@rule("feature-names", "features name existing ops, types and attributes", "correct the name")
def _feature_names(specs: Specification) -> Iterator[Complaint]:
    ops = {op.name for op in specs.ops}
    names = specs.kinds["type"].keys() | specs.kinds["attribute"].keys() | {enum.name for enum in specs.enums}
    for feature in specs.features:
        # A fork may specify only ops, or only types.
        missing = (set(feature.ops) - ops if ops else set()) | (set(feature.names) - names if names else set())
        for name in sorted(missing):
            yield "vhlo/features.toml", feature.id, f"there is no {name}"
