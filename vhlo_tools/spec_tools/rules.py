"""Rules of ``vhlo spec lint`` about a single specification, without a release to compare with.

A rule has an id, a requirement, a remedy for violations, and a generator of complaints.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from vhlo_tools.records import dataclass
from vhlo_tools.spec import Specification, structures_in

if TYPE_CHECKING:
    from vhlo_tools.spec import Op, OpStep, OpVersion
    from vhlo_tools.version import Version

#: A violation found by the check of a rule: the file, the entry in the file, and the message.
Complaint = tuple[str, str, str]
_T = TypeVar("_T", bound=Hashable)
_Check = Callable[[Specification], Iterator[Complaint]]


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    requires: str
    remedy: str
    check: _Check


@dataclass(frozen=True, slots=True)
class Violation:
    rule: str
    file: str  # a path inside the folder of the specification
    entry: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}: {self.entry}: {self.rule}: {self.message}\n    {self.remedy}"


RULES: list[Rule] = []


def rule(identifier: str, requires: str, remedy: str) -> Callable[[_Check], _Check]:
    def register(check: _Check) -> _Check:
        RULES.append(Rule(identifier, requires, remedy, check))
        return check

    return register


def follows(newer: Version, older: Version) -> bool:
    """Return whether ``newer`` can directly follow ``older``: next minor version, or first of the next major."""
    same = (newer.major, newer.minor) == (older.major, older.minor + 1)
    return same or (newer.major, newer.minor) == (older.major + 1, 0)


def file_of(op: Op) -> str:
    return f"vhlo/ops/{op.family}.toml"


def step_name(op: Op, step: OpStep) -> str:
    return f"{op.name}.{step.older}-{step.newer}"


# Names


@rule("name-form", "names have the form required for their kind", "rename the file or the entry")
def _name_form(specs: Specification) -> Iterator[Complaint]:
    named = [(file_of(op), op.family, "[a-z][a-z0-9_]*", "a family is lower_case_words") for op in specs.ops]
    named += [
        (file_of(op), op.name, r"(?!.*_v\d+$)[a-z][a-z0-9_-]*", "expected the name of an op, without a version")
        for op in specs.ops
    ]
    kinds = (("types", specs.types), ("attributes", specs.attributes), ("enums", specs.enums))
    for file, entries in kinds:
        named += [
            (f"vhlo/{file}.toml", e.name, r"[A-Za-z]\w*_v[1-9]\d*", "expected a version, as in f32_v1") for e in entries
        ]
    for file, ids in (("features", specs.features), ("defaults", specs.defaults)):
        named += [(f"vhlo/{file}.toml", each.id, r"[A-Za-z]\w*", "an id is lower_case_words") for each in ids]
    cases = (case.name for enum in specs.enums for case in enum.cases)
    named += [("vhlo/enums.toml", name, r"[A-Z][A-Z0-9_]*", "a case is UPPER_CASE_WORDS") for name in cases]
    held = [(op, name) for op in specs.ops for version in op.versions for names in _names_in(version) for name in names]
    named += [
        (file_of(op), name, r"[a-z]\w*", "names of attributes, operands, results and regions are lower_case_words")
        for op, name in held
    ]
    for file, name, form, expected in dict.fromkeys(named):
        if not re.fullmatch(form, name, re.ASCII):
            yield file, name, f"invalid name {name!r}: {expected}"


@rule("name-unique", "each name is unique", "rename or remove one of them")
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
            yield file, name, f"{name} occurs {names.count(name)} times"
    versions = [(file_of(op), version) for op in specs.ops for version in op.versions]
    lists = [(file, version.name, names) for file, version in versions for names in _names_in(version)]
    lists += [("vhlo/features.toml", each.id, names) for each in specs.features for names in (each.ops, each.names)]
    for file, entry, listed in lists:
        for name in _repeated(listed):
            yield file, entry, f"it names {name} {listed.count(name)} times"


def _names_in(version: OpVersion) -> tuple[tuple[str, ...], ...]:
    """Return the names of the operands, results, regions and attributes, one tuple for each kind."""
    slots = (version.operands, version.results, version.regions)
    return (*(tuple(slot.name for slot in each) for each in slots), version.attributes)


@rule("op-once", "each op is in one family file, once", "keep it in one place, with all its versions")
def _op_once(specs: Specification) -> Iterator[Complaint]:
    for name in _repeated(op.name for op in specs.ops):
        files = [file_of(op) for op in specs.ops if op.name == name]
        yield files[-1], name, f"the op occurs {len(files)} times: in {' and '.join(files)}"


# Versions


@rule("version-order", "versions are in strictly ascending order", "put the versions in order, each once")
def _version_order(specs: Specification) -> Iterator[Complaint]:
    for older, newer in pairwise(specs.versions):
        if newer.version <= older.version:
            yield "versions.toml", str(newer.version), f"{newer.version} is listed after {older.version}"


@rule("version-gap", "versions follow each other without a gap", "name the next minor version, or the next major one")
def _version_gap(specs: Specification) -> Iterator[Complaint]:
    minors = sorted({entry.version.minor_release for entry in specs.versions})
    for older, newer in pairwise(minors):
        if not follows(newer, older):
            yield "versions.toml", str(newer), f"{newer} cannot follow {older}"


@rule("bytecode-minor", "a new MLIR bytecode version requires a minor version", "bump the minor version instead")
def _bytecode_minor(specs: Specification) -> Iterator[Complaint]:
    for older, newer in pairwise(specs.versions):
        if newer.version.patch and newer.bytecode != older.bytecode:
            change = f"from {older.bytecode} to {newer.bytecode}"
            yield "versions.toml", str(newer.version), f"a patch version changes the MLIR bytecode version {change}"


@rule(
    "bytecode-descends",
    "the MLIR bytecode version never decreases",
    "use at least the MLIR bytecode version of the previous version",
)
def _bytecode_descends(specs: Specification) -> Iterator[Complaint]:
    for older, newer in list(pairwise(specs.versions))[:-1]:
        if newer.bytecode < older.bytecode:
            yield "versions.toml", str(newer.version), f"MLIR bytecode goes from {older.bytecode} to {newer.bytecode}"


@rule("bytecode-newest", "the newest version writes the newest MLIR bytecode", "map it to the newest MLIR bytecode")
def _bytecode_newest(specs: Specification) -> Iterator[Complaint]:
    last, newest = specs.versions[-1], max(entry.bytecode for entry in specs.versions)
    if last.bytecode < newest:
        message = f"the newest version writes MLIR bytecode {last.bytecode}, not {newest}"
        yield "versions.toml", str(last.version), message


@rule("version-unknown", "every bound is a version in versions.toml", "add the version to versions.toml, or correct it")
def _version_unknown(specs: Specification) -> Iterator[Complaint]:
    known = {entry.version for entry in specs.versions}
    for file, name, low, high in _lives(specs):
        for version in (low, high):
            if version is not None and version not in known:
                yield file, name, f"{version} is not a known version"


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


@rule(
    "range-gap",
    "a version of an op begins directly after the end of the previous one",
    "close the gap between the ranges",
)
def _range_gap(specs: Specification) -> Iterator[Complaint]:
    for op in specs.ops:
        for older, newer in pairwise(op.versions):
            follows = older.max and specs.after(older.max)
            if follows and follows < newer.min:
                gap = f"{older.name} ends at {older.max} and {newer.name} begins at {newer.min}"
                yield file_of(op), newer.name, f"{gap}: no version of the op is in {follows}"


@rule(
    "range-overlap", "no StableHLO version has two versions of an op", "end the older one before the newer one begins"
)
def _range_overlap(specs: Specification) -> Iterator[Complaint]:
    for op in specs.ops:
        for older, newer in pairwise(op.versions):
            if older.max is None:
                yield file_of(op), older.name, f"it has no max although {newer.name} begins at {newer.min}"
            elif older.max >= newer.min:
                message = f"{newer.name} begins at {newer.min}, but {older.name} ends at {older.max}"
                yield file_of(op), newer.name, message


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
                yield file, encoding.name, f"code {encoding.code} is already used by {owners[encoding.code]}"
            owners.setdefault(encoding.code, encoding.name)


@rule("case-unique", "the cases of an enum have unique names and values", "take a new name and the next free value")
def _case_unique(specs: Specification) -> Iterator[Complaint]:
    for enum in specs.enums:
        for value in _repeated(case.value for case in enum.cases):
            names = " and ".join(case.name for case in enum.cases if case.value == value)
            yield "vhlo/enums.toml", enum.name, f"{names} have the same value, {value}"
        for name in _repeated(case.name for case in enum.cases):
            yield "vhlo/enums.toml", enum.name, f"{name} occurs twice"


@rule("enum-unknown", "the enums of fields are in enums.toml", "add the enum, or correct its name")
def _enum_unknown(specs: Specification) -> Iterator[Complaint]:
    for file, spellings in (("types", specs.types), ("attributes", specs.attributes)):
        fields = ((each, field) for each in spellings for encoding in each.encodings for field in encoding.fields)
        for spelling, field in fields:
            if field.enum is not None and specs.enum(field.enum) is None:
                found = f"the enum {field.enum} of its field {field.name} does not exist"
                yield f"vhlo/{file}.toml", spelling.name, found


@rule("kind-unknown", "values name existing types, attributes and cases", "add what is missing, or correct the name")
def _kind_unknown(specs: Specification) -> Iterator[Complaint]:
    values = [("vhlo/defaults.toml", default.id, default.value) for default in specs.defaults]
    values += [(file_of(op), name, constraint.value) for name, op, constraint in specs.constraints()]
    for file, name, value in values:
        for node in structures_in(value):
            for kind, names in specs.kinds.items():
                found = node.get(kind)
                # A fork that specifies only ops uses the types and attributes of another specification.
                if isinstance(found, str) and names and found not in names:
                    yield file, name, f"there is no {kind} {found}"
            enum = specs.enum(str(node.get("attribute")))
            if enum is not None and "case" in node and enum.case(node["case"]) is None:
                yield file, name, f"{enum.name} has no case {node['case']}"
    every = specs.kinds["type"].keys() | specs.kinds["attribute"].keys()
    for name, op, constraint in specs.constraints():
        for kind in (*constraint.types, *([constraint.kind] if constraint.kind else [])):
            if every and kind not in every:
                yield file_of(op), name, f"there is no {kind}"


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
