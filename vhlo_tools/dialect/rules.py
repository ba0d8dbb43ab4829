"""What must hold inside one specification: the rules of ``vhlo spec lint`` that need no release to compare with.

A rule has an id, what it asks for, what to do when it is not so, and a generator of complaints.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from vhlo_tools.dialect.defaults import Structure
from vhlo_tools.dialect.ops import Op, Slot
from vhlo_tools.dialect.specification import Specification, defaults_of, structures_in
from vhlo_tools.version import Version

__all__ = ["RULES", "Complaint", "Rule", "Violation", "file_of", "rule"]

#: Where something is wrong: a file, an entry in it, and what is wrong with it.
Complaint = tuple[str, str, str]
_T = TypeVar("_T", bound=Hashable)
_Check = Callable[[Specification], Iterator[Complaint]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Attributes:
        id: A stable name.
        requires: What it asks for.
        remedy: What to do when it is not so.
        check: What finds where it is not so.
    """

    id: str
    requires: str
    remedy: str
    check: _Check


@dataclass(frozen=True, slots=True)
class Violation:
    """A place where a rule does not hold.

    Attributes:
        rule: The id of the rule.
        file: The file, as a path inside the folder of the specification.
        entry: The entry in it.
        message: What was found.
        remedy: What to do.
    """

    rule: str
    file: str
    entry: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}: {self.entry}: {self.rule}: {self.message}\n    {self.remedy}"


RULES: list[Rule] = []


def rule(identifier: str, requires: str, remedy: str) -> Callable[[_Check], _Check]:
    """Make a rule of the function that checks it."""

    def register(check: _Check) -> _Check:
        RULES.append(Rule(identifier, requires, remedy, check))
        return check

    return register


def file_of(op: Op) -> str:
    """Return the file that ``op`` stands in."""
    return f"vhlo/ops/{op.family}.toml"


# Names


@rule("name-form", "names have the form of their kind", "rename the file or the entry")
def _name_form(specs: Specification) -> Iterator[Complaint]:
    named = [(file_of(op), op.family, "[a-z][a-z0-9_]*", "a family is words_like_this") for op in specs.ops]
    named += [(file_of(op), op.name, r"(?!.*_v\d+$)[a-z][a-z0-9_-]*", "an op has no version here") for op in specs.ops]
    kinds = (("types", specs.types), ("attributes", specs.attributes), ("enums", specs.enums))
    for file, entries in kinds:
        named += [
            (f"vhlo/{file}.toml", e.name, r"[A-Za-z]\w*_v[1-9]\d*", "expected a version, as in f32_v1") for e in entries
        ]
    named += [("vhlo/features.toml", f.id, r"[A-Za-z]\w*", "an id is words_like_this") for f in specs.features]
    for file, name, form, expected in dict.fromkeys(named):
        if not re.fullmatch(form, name, re.ASCII):
            yield file, name, f"{name!r} is no name for this: {expected}"


@rule("name-unique", "each name is given once", "rename or remove one of them")
def _name_unique(specs: Specification) -> Iterator[Complaint]:
    named = [
        ("vhlo/types.toml", [each.name for each in specs.types]),
        ("vhlo/attributes.toml", [each.name for each in specs.attributes]),
        ("builtin/types.toml", [each.name for each in specs.builtin_types]),
        ("builtin/attributes.toml", [each.name for each in specs.builtin_attributes]),
        ("vhlo/enums.toml", [each.name for each in specs.enums]),
        ("vhlo/features.toml", [each.id for each in specs.features]),
        ("vhlo/defaults.toml", [each.id for each in specs.defaults]),
    ]
    for file, names in named:
        for name in _repeated(names):
            yield file, name, f"{name} is there {names.count(name)} times"


@rule("op-once", "each op stands in one family file, once", "keep it in one place, with all its versions")
def _op_once(specs: Specification) -> Iterator[Complaint]:
    for name in _repeated(op.name for op in specs.ops):
        files = [file_of(op) for op in specs.ops if op.name == name]
        yield files[-1], name, f"the op is there {len(files)} times: in {' and '.join(files)}"


# Versions


@rule("version-order", "versions strictly ascend", "put the versions in order, each once")
def _version_order(specs: Specification) -> Iterator[Complaint]:
    for older, newer in pairwise(specs.versions):
        if newer.version <= older.version:
            yield "versions.toml", str(newer.version), f"{newer.version} stands behind {older.version}"


@rule(
    "bytecode-minor", "a new MLIR bytecode version arrives only with a minor version", "bump the minor version instead"
)
def _bytecode_minor(specs: Specification) -> Iterator[Complaint]:
    for older, newer in pairwise(specs.versions):
        if newer.version.patch and newer.bytecode != older.bytecode:
            change = f"from {older.bytecode} to {newer.bytecode}"
            yield "versions.toml", str(newer.version), f"a patch version changes the MLIR bytecode version {change}"


@rule("bytecode-descends", "the MLIR bytecode version never decreases", "write at least the version of the one before")
def _bytecode_descends(specs: Specification) -> Iterator[Complaint]:
    for older, newer in list(pairwise(specs.versions))[:-1]:
        if newer.bytecode < older.bytecode:
            yield "versions.toml", str(newer.version), f"MLIR bytecode goes from {older.bytecode} to {newer.bytecode}"


@rule("bytecode-newest", "the newest version writes the newest MLIR bytecode", "map it to the newest MLIR bytecode")
def _bytecode_newest(specs: Specification) -> Iterator[Complaint]:
    last, newest = specs.versions[-1], max(entry.bytecode for entry in specs.versions)
    if last.bytecode < newest:
        yield (
            "versions.toml",
            str(last.version),
            f"the newest version writes MLIR bytecode {last.bytecode}, not {newest}",
        )


@rule("version-unknown", "every bound is a version in versions.toml", "add the version to versions.toml, or correct it")
def _version_unknown(specs: Specification) -> Iterator[Complaint]:
    known = {entry.version for entry in specs.versions}
    for file, name, low, high in _lives(specs):
        for version in (low, high):
            if version is not None and version not in known:
                yield file, name, f"{version} is no known version"


@rule("range-inverted", "min is not above max", "exchange or correct the bounds")
def _range_inverted(specs: Specification) -> Iterator[Complaint]:
    for file, name, low, high in _lives(specs):
        if high is not None and low is not None and low > high:
            yield file, name, f"min {low} is above max {high}"


@rule("op-numbers", "the versions of an op are counted from 1, oldest first", "number them in order")
def _op_numbers(specs: Specification) -> Iterator[Complaint]:
    for op in specs.ops:
        numbers = [version.number for version in op.versions]
        if numbers != list(range(1, len(numbers) + 1)):
            yield file_of(op), op.name, f"its versions are numbered {', '.join(map(str, numbers))}"


@rule("range-gap", "a version of an op begins where the one before ends", "let the ranges meet")
def _range_gap(specs: Specification) -> Iterator[Complaint]:
    for op in specs.ops:
        for older, newer in pairwise(op.versions):
            follows = older.max and specs.after(older.max)
            if follows and follows < newer.min:
                missing = f"no version of the op is in {follows}"
                yield (
                    file_of(op),
                    newer.name,
                    f"{older.name} ends at {older.max} and {newer.name} begins at {newer.min}: {missing}",
                )


@rule(
    "range-overlap", "no StableHLO version has two versions of an op", "end the older one before the newer one begins"
)
def _range_overlap(specs: Specification) -> Iterator[Complaint]:
    for op in specs.ops:
        for older, newer in pairwise(op.versions):
            if older.max is None:
                yield file_of(op), older.name, f"it has no max although {newer.name} begins at {newer.min}"
            elif older.max >= newer.min:
                yield (
                    file_of(op),
                    newer.name,
                    f"{newer.name} begins at {newer.min}, but {older.name} ends at {older.max}",
                )


# Encodings


@rule("code-unique", "a code belongs to one type, or to one attribute", "give the newer one the next free code")
def _code_unique(specs: Specification) -> Iterator[Complaint]:
    for file, spellings in (
        ("vhlo/types.toml", specs.types),
        ("vhlo/attributes.toml", specs.attributes),
        ("builtin/types.toml", specs.builtin_types),
        ("builtin/attributes.toml", specs.builtin_attributes),
    ):
        owners: dict[int, str] = {}
        for encoding in (encoding for spelling in spellings for encoding in spelling.encodings):
            if encoding.code in owners:
                yield file, encoding.name, f"code {encoding.code} is that of {owners[encoding.code]} already"
            owners.setdefault(encoding.code, encoding.name)


@rule(
    "case-unique", "the cases of an enum have names and values of their own", "take a new name and the next free value"
)
def _case_unique(specs: Specification) -> Iterator[Complaint]:
    for enum in specs.enums:
        for value in _repeated(case.value for case in enum.cases):
            names = " and ".join(case.name for case in enum.cases if case.value == value)
            yield "vhlo/enums.toml", enum.name, f"{names} have the same value, {value}"
        for name in _repeated(case.name for case in enum.cases):
            yield "vhlo/enums.toml", enum.name, f"{name} is there twice"


@rule("enum-unknown", "the enums of fields are in enums.toml", "add the enum, or correct its name")
def _enum_unknown(specs: Specification) -> Iterator[Complaint]:
    for spelling in specs.attributes:
        for each in (each for encoding in spelling.encodings for each in encoding.fields):
            if each.enum is not None and specs.enum(each.enum) is None:
                yield (
                    "vhlo/attributes.toml",
                    spelling.name,
                    f"the enum {each.enum} of its field {each.name} is not there",
                )


@rule(
    "kind-unknown", "values name types, attributes and cases that are there", "add what is missing, or correct the name"
)
def _kind_unknown(specs: Specification) -> Iterator[Complaint]:
    values = [("vhlo/defaults.toml", default.id, default.value) for default in specs.defaults]
    values += [(file_of(op), name, constraint.value) for name, op, constraint in specs.constraints()]
    for file, name, value in values:
        for node in structures_in(value):
            yield from ((file, name, message) for message in _wrong_with(specs, node))
    every = specs.kinds["type"].keys() | specs.kinds["attribute"].keys()
    for name, op, constraint in specs.constraints():
        for kind in (*constraint.types, *([constraint.kind] if constraint.kind else [])):
            if every and kind not in every:
                yield file_of(op), name, f"there is no {kind}"


def _wrong_with(specs: Specification, node: Structure) -> Iterator[str]:
    for kind, names in specs.kinds.items():
        name = node.get(kind)
        # A fork that specifies ops alone takes the types and attributes of others.
        if isinstance(name, str) and names and name not in names:
            yield f"there is no {kind} {name}"
    enum = specs.enum(str(node.get("attribute")))
    if enum is not None and "case" in node and enum.case(node["case"]) is None:
        yield f"{enum.name} has no case {node['case']}"


# Ops


@rule("attribute-order", "attributes stand in alphabetical order, as in a properties entry", "sort them")
def _attribute_order(specs: Specification) -> Iterator[Complaint]:
    for version in specs.op_versions.values():
        if list(version.attributes) != sorted(set(version.attributes)):
            op = next(op for op in specs.ops if op.name == version.op)
            yield file_of(op), version.name, f"its attributes are {', '.join(version.attributes)}"


@rule(
    "step-missing", "there is one step between neighbours, and no other", "add [[op.step]] between them, or remove it"
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
                yield file_of(op), op.name, f"there is a step between {older} and {newer}, which are no neighbours"
            elif count > 1:
                yield file_of(op), op.name, f"there are {count} steps between versions {older} and {newer}"


@rule(
    "step-attributes",
    "steps add and remove what the attributes of both versions differ in",
    "name each that differs, once",
)
def _step_attributes(specs: Specification) -> Iterator[Complaint]:
    for op, step, older, newer in specs.steps():
        for verb, said, attributes in (
            ("added", step.added, set(newer.attributes) - set(older.attributes)),
            ("removed", step.removed, set(older.attributes) - set(newer.attributes)),
        ):
            for name in sorted(attributes - said.keys()):
                yield (
                    file_of(op),
                    f"{op.name}.{step.older}-{step.newer}",
                    f"{name} is {verb}, which the step does not say",
                )
            for name in sorted(said.keys() - attributes):
                yield (
                    file_of(op),
                    f"{op.name}.{step.older}-{step.newer}",
                    f"the step says that {name} is {verb}, which it is not",
                )


@rule(
    "step-values",
    "steps say which operands, results and regions became variadic or are new",
    "name them in single or empty",
)
def _step_values(specs: Specification) -> Iterator[Complaint]:
    for op, step, older, newer in specs.steps():
        entry = f"{op.name}.{step.older}-{step.newer}"
        counts = [(len(version.operands), len(version.results)) for version in (older, newer)]
        if counts[0] != counts[1] or newer.regions[: len(older.regions)] != older.regions:
            yield (
                file_of(op),
                entry,
                "the versions differ in operands, results or regions in a way that no step can say",
            )
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
    "the defaults of steps are in defaults.toml, and can be looked for",
    "add the default, or correct its id",
)
def _default_unknown(specs: Specification) -> Iterator[Complaint]:
    for op, step, _, newer in specs.steps():
        entry = f"{op.name}.{step.older}-{step.newer}"
        for identifier in sorted(defaults_of(step)):
            default = specs.default(identifier)
            if default is None:
                yield file_of(op), entry, f"there is no default {identifier}"
            elif default.computed and identifier in step.added.values():
                yield file_of(op), entry, f"{identifier} is computed: a downgrade cannot look for it"
            elif default.of is not None and default.of not in {slot.name for slot in newer.operands}:
                yield file_of(op), entry, f"{identifier} is computed of {default.of}, which is no operand"


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
    used = [(op, f"{op.name}.{step.older}-{step.newer}", step.feature) for op in specs.ops for step in op.steps]
    used += [(op, name, constraint.feature) for name, op, constraint in specs.constraints()]
    for op, entry, feature in used:
        if feature is not None and specs.feature(feature) is None:
            yield file_of(op), entry, f"there is no feature {feature}"


@rule(
    "feature-guard",
    "a step that can refuse names the feature that stands in the way, and no other does",
    "name it, or drop it",
)
def _feature_guard(specs: Specification) -> Iterator[Complaint]:
    for op, step, _, _ in specs.steps():
        guarded = bool(step.added or step.single or step.empty)
        if guarded != (step.feature is not None):
            found = (
                "it can refuse a downgrade and names no feature"
                if guarded
                else f"it names {step.feature} and refuses nothing"
            )
            yield file_of(op), f"{op.name}.{step.older}-{step.newer}", found


@rule(
    "feature-introduced", "a feature is introduced by the version that its steps and constraints say", "let them agree"
)
def _feature_introduced(specs: Specification) -> Iterator[Complaint]:
    said = [
        (op, f"{op.name}.{step.older}-{step.newer}", step.feature, newer.min) for op, step, _, newer in specs.steps()
    ]
    said += [(op, name, constraint.feature, constraint.since) for name, op, constraint in specs.constraints()]
    for op, entry, identifier, version in said:
        feature = specs.feature(identifier)
        if feature is not None and feature.introduced != version:
            yield file_of(op), entry, f"it is of {version}, but the feature {feature.id} of {feature.introduced}"


@rule("feature-names", "features name ops, types and attributes that are there", "correct the name")
def _feature_names(specs: Specification) -> Iterator[Complaint]:
    ops = {op.name for op in specs.ops}
    names = specs.kinds["type"].keys() | specs.kinds["attribute"].keys() | {enum.name for enum in specs.enums}
    for feature in specs.features:
        # A fork may specify ops alone, or types alone.
        missing = (set(feature.ops) - ops if ops else set()) | (set(feature.names) - names if names else set())
        for name in sorted(missing):
            yield "vhlo/features.toml", feature.id, f"there is no {name}"


def _lives(specs: Specification) -> Iterator[tuple[str, str, Version | None, Version | None]]:
    for op in specs.ops:
        yield from ((file_of(op), version.name, version.min, version.max) for version in op.versions)
    for name, op, constraint in specs.constraints():
        yield file_of(op), name, constraint.since, None
    for file, spellings in (("types", specs.types), ("attributes", specs.attributes)):
        yield from ((f"vhlo/{file}.toml", spelling.name, spelling.min, spelling.max) for spelling in spellings)
    for enum in specs.enums:
        yield "vhlo/enums.toml", enum.name, enum.min, enum.max
        yield from (("vhlo/enums.toml", f"{enum.name}.{case.name}", case.min, None) for case in enum.cases)
    for feature in specs.features:
        yield "vhlo/features.toml", feature.id, feature.introduced, None


def _repeated(values: Iterable[_T]) -> list[_T]:
    return [value for value, count in Counter(values).items() if count > 1]
