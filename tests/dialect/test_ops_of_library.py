"""The specification of ops, enums and defaults, proven against the installed library.

Every op version is made as text out of the specification, and `vhlo-to-version` brings it to every version that the
library writes: what comes out, or that nothing does, must be what the specification says. What the library has and the
specification lacks is found in its binary. The names of operands, results and regions occur nowhere in the library but
in its accessors: they are from its source, and not proven here.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from attribute_bytes import attribute_entries, property_entries, string_values
from corpus import writable_versions
from vhlo_text import TENSOR, OpText, converted, find, op_text, structure_text, tensor_of

from vhlo_tools.bindings import MLIRFailure, Provider, get_provider
from vhlo_tools.bytecode.reader import ByteReader
from vhlo_tools.dialect import (
    Constraint,
    Default,
    Enum,
    EnumCase,
    Op,
    OpVersion,
    Slot,
    Step,
    find_enum,
    known_default,
    known_defaults,
    known_enums,
    known_feature,
    known_ops,
)
from vhlo_tools.version import Version

CURRENT = get_provider().library.current
VERSIONS = writable_versions()
OP_VERSIONS = [(op, version) for op in known_ops() for version in op.versions if version.min <= CURRENT]
STEPS = [(op, step) for op in known_ops() for step in op.steps if op.versions[step.newer - 1].min <= CURRENT]
CONSTRAINTS = [(op, constraint) for op in known_ops() for constraint in op.constraints if constraint.since <= CURRENT]
ENUMS = [enum for enum in known_enums() if enum.min <= CURRENT]
CASES = [(enum, case) for enum in ENUMS for case in enum.cases if case.min <= CURRENT]

EACH_OP_VERSION = pytest.mark.parametrize(("op", "version"), OP_VERSIONS, ids=[v.name for _, v in OP_VERSIONS])
EACH_STEP = pytest.mark.parametrize(("op", "step"), STEPS, ids=[f"{op.name}_v{s.older}-v{s.newer}" for op, s in STEPS])
EACH_CONSTRAINT = pytest.mark.parametrize(
    ("op", "constraint"), CONSTRAINTS, ids=[f"{op.name}-{c.feature}-{c.requires}" for op, c in CONSTRAINTS]
)
EACH_CASE = pytest.mark.parametrize(("enum", "case"), CASES, ids=[f"{e.name}-{c.name}" for e, c in CASES])


#: The properties of the module around each op: neither of its optional attributes is there.
OF_MODULE = [0, 0]


class Vhlo:
    """A context of the library, and what it makes of VHLO text."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.context: Any = provider.new_context()

    def generic(self, text: OpText | str) -> str:
        """Return `text` as the library prints it; it must parse."""
        return self.provider.text(self.provider.parse(self.context, str(text)), generic=True)

    def refuses(self, text: OpText) -> str | None:
        """Return why `text` does not parse, `None` if it does."""
        try:
            self.provider.parse(self.context, str(text))
        except MLIRFailure as failure:
            return str(failure)
        return None

    def at(self, text: OpText, version: Version) -> str | None:
        """Return `text` converted to `version`, `None` if the library refuses that."""
        module = self.provider.parse(self.context, str(text))
        try:
            self.provider.run_passes(module, f"vhlo-to-version{{target={version}}}", verify=True)
        except MLIRFailure:
            return None
        return self.provider.text(module, generic=True)

    def is_type(self, text: str) -> bool:
        try:
            self.provider.ir.Type.parse(text, self.context)
        except self.provider.ir.MLIRError:
            return False
        return True

    def bytecode(self, text: OpText | str) -> bytes:
        return b"".join(self.provider.bytecode(self.provider.parse(self.context, str(text)), CURRENT))


@pytest.fixture(scope="module")
def vhlo(provider: Provider) -> Vhlo:
    return Vhlo(provider)


@cache
def names_in_binary() -> frozenset[str]:
    """Return every name after ``vhlo.`` in the shared objects of the library: ops, types and attributes among them."""
    package = Path(get_provider().module("ir").__file__).parents[1]
    names: set[str] = set()
    for file in package.rglob("*.so*"):
        with file.open("rb") as binary, mmap.mmap(binary.fileno(), 0, access=mmap.ACCESS_READ) as data:
            names.update(match[1].decode() for match in re.finditer(rb"\bvhlo\.([A-Za-z0-9_-]+_v[0-9]+)", data))
    return frozenset(names)


# What there is


def test_the_library_has_these_ops_and_no_others(vhlo: Vhlo) -> None:
    registered = {name for name in names_in_binary() if vhlo.context.is_registered_operation(f"vhlo.{name}")}
    assert registered == {version.name for _, version in OP_VERSIONS}


def test_no_op_has_another_version(vhlo: Vhlo) -> None:
    # Does not rest on what can be found in a binary.
    candidates = [f"{op.name}_v{number}" for op in known_ops() for number in range(10)]
    registered = [name for name in candidates if vhlo.context.is_registered_operation(f"vhlo.{name}")]
    assert sorted(registered) == sorted(version.name for _, version in OP_VERSIONS)


def test_the_library_has_these_enums_and_no_others(vhlo: Vhlo) -> None:
    cases = {name: cases_in_library(vhlo, name) for name in names_in_binary()}
    assert {name: of_enum for name, of_enum in cases.items() if of_enum} == {
        enum.name: [case.name for case in enum.cases if case.min <= CURRENT] for enum in ENUMS
    }


def cases_in_library(vhlo: Vhlo, name: str) -> list[str]:
    """Return the cases of the enum attribute ``name``, none if it is not one: the parser of an enum lists them."""
    try:
        vhlo.provider.ir.Attribute.parse(f"#vhlo<{name} there_is_no_such_case>", vhlo.context)
    except vhlo.provider.ir.MLIRError as error:
        said = "\n".join(str(diagnostic.message) for diagnostic in error.error_diagnostics)
        listed = re.search(r"to be one of: (.*)", said)
        return listed[1].split(", ") if listed else []
    return []


# The shape of each op


@EACH_OP_VERSION
def test_op_has_these_operands_results_and_regions(vhlo: Vhlo, op: Op, version: OpVersion) -> None:
    text = op_text(op, version)
    assert vhlo.refuses(text) is None

    def accepts(operands: Sequence[str] = text.operands, results: Sequence[str] = text.results) -> bool:
        return vhlo.refuses(replace(text, operands=tuple(operands), results=tuple(results))) is None

    # Where several operands are variadic, the library takes uneven numbers of values too, and drops what is over.
    fewest, any_number = numbers(version.operands)
    assert accepts(operands=[TENSOR] * fewest)
    assert accepts(operands=[*text.operands, TENSOR]) == any_number
    assert fewest == 0 or not accepts(operands=[TENSOR] * (fewest - 1))
    fewest, any_number = numbers(version.results)
    assert accepts(results=[TENSOR] * fewest)
    assert accepts(results=[*text.results, TENSOR]) == any_number
    assert fewest == 0 or not accepts(results=[TENSOR] * (fewest - 1))
    fewest, any_number = numbers(version.regions)
    assert (vhlo.refuses(replace(text, regions=text.regions + 1)) is None) == any_number
    assert fewest == 0 or vhlo.refuses(replace(text, regions=fewest - 1)) is not None


def numbers(slots: tuple[Slot, ...]) -> tuple[int, bool]:
    """Return how many values fill `slots` at the least, and whether any number more may follow."""
    return sum(not slot.variadic for slot in slots), any(slot.variadic for slot in slots)


@EACH_OP_VERSION
def test_op_needs_every_attribute(vhlo: Vhlo, op: Op, version: OpVersion) -> None:
    text = op_text(op, version)
    for name in version.attributes:
        others = {other: value for other, value in text.attributes.items() if other != name}
        reason = vhlo.refuses(replace(text, attributes=others))
        assert reason is not None
        assert f"requires attribute '{name}'" in reason


@EACH_OP_VERSION
def test_properties_hold_the_attributes_in_this_order_and_nothing_else(vhlo: Vhlo, op: Op, version: OpVersion) -> None:
    text = op_text(op, version)
    named = replace(text, attributes={name: f'#vhlo.string_v1<"{name}">' for name in version.attributes})
    data = vhlo.bytecode(named)
    values = string_values(data)
    entries = [[values[index] for index in entry] for entry in property_entries(data) if entry != OF_MODULE]
    expected = [[name.encode() for name in version.attributes]] if version.attributes else []
    if version.operands:
        expected.append([b"value"])  # of the constants that they are
    assert sorted(entries, key=str) == sorted(expected, key=str)


# The life of each op


@EACH_OP_VERSION
def test_op_is_kept_converted_or_refused_at_every_version(vhlo: Vhlo, op: Op, version: OpVersion) -> None:
    text = op_text(op, version)
    for target in VERSIONS:
        there = op.at(target)
        expected = vhlo.generic(converted(op, text, there.number)) if there else None
        assert vhlo.at(text, target) == expected, target


def accuracy(mode: str = "DEFAULT", atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> str:
    in_mode = f"mode = #vhlo<result_accuracy_mode_v1 {mode}>"
    return f"#vhlo.result_accuracy_v1<atol = {atol:e}, rtol = {rtol:e}, ulps = {ulps}, {in_mode}>"


#: For each default that is looked for, values that are not it, however near, and values that count as it all the same.
OTHERS: dict[str, tuple[list[str], list[str]]] = {
    "default_result_accuracy": (
        [accuracy("HIGHEST"), accuracy("TOLERANCE"), accuracy(atol=1.0), accuracy(rtol=-1.0), accuracy(ulps=1)],
        [accuracy(atol=-0.0), accuracy(rtol=-0.0)],
    ),
    "empty_array": (["#vhlo.array_v1<[#vhlo.array_v1<[]>]>", "#vhlo.bool_v1<false>"], []),
    "empty_tensor": (
        ["#vhlo.tensor_v1<dense<0> : tensor<1xi64>>", "#vhlo.array_v1<[]>"],
        ["#vhlo.tensor_v1<dense<> : tensor<0x2xi64>>", "#vhlo.tensor_v1<dense<> : tensor<0xi32>>"],
    ),
    "false": (["#vhlo.bool_v1<true>", "#vhlo.integer_v1<0 : i64>"], []),
    "none_type": (["#vhlo.type_v1<!vhlo.f32_v1>", "#vhlo.array_v1<[]>"], []),
}


@EACH_STEP
def test_downgrade_asks_for_the_defaults(vhlo: Vhlo, op: Op, step: Step) -> None:
    older, newer = op.versions[step.older - 1], op.versions[step.newer - 1]
    text = op_text(op, newer)
    assert older.max is not None
    lowered = vhlo.at(text, older.max)
    assert lowered is not None
    for name, default in step.added.items():
        different, same = OTHERS[default]
        assert bool(same) == (known_default(default).equals != "same")
        for value in same:
            assert vhlo.at(text.with_attribute(name, value), older.max) == lowered, value
        for value in different:
            other = text.with_attribute(name, value)
            assert vhlo.at(other, older.max) is None, value
            assert vhlo.at(other, newer.min) == vhlo.generic(other)


@EACH_STEP
def test_downgrade_asks_for_single_values_and_no_regions(vhlo: Vhlo, op: Op, step: Step) -> None:
    older, newer = op.versions[step.older - 1], op.versions[step.newer - 1]
    text = op_text(op, newer)
    widened = [replace(text, operands=text.operands * 2, results=text.results * 2)] if step.single else []
    widened += [replace(text, regions=number) for number in (1, 2) if step.empty]
    assert older.max is not None
    for other in widened:
        assert vhlo.at(other, older.max) is None
        assert vhlo.at(other, newer.min) == vhlo.generic(other)


@pytest.mark.parametrize("rank", [2, 3, 5])
def test_padding_of_convolution_is_computed(vhlo: Vhlo, rank: int) -> None:
    op = find("dynamic_conv")
    lhs = f"!vhlo.tensor_v1<{'8x' * rank}!vhlo.f32_v1>"
    text = op_text(op, op.versions[1]).with_operand("lhs", [lhs])
    assert vhlo.at(text, Version("0.19.0")) == vhlo.generic(converted(op, text, 1))


@pytest.mark.parametrize(
    "default", [default for default in known_defaults() if default.text], ids=lambda default: default.id
)
def test_default_is_printed_so(vhlo: Vhlo, default: Default) -> None:
    assert str(vhlo.provider.ir.Attribute.parse(default.text, vhlo.context)) == default.text
    assert default.value is not None
    assert structure_text(default.value) == default.text


# Constraints

FUTURE = f"!vhlo.future_v1<{TENSOR}>"
DICTIONARY = '#vhlo.dict_v1<{#vhlo.string_v1<"key"> = #vhlo.bool_v1<true>}>'


def forbidden(constraint: Constraint) -> str:
    """Return, as text, the type or attribute that ``constraint`` does not want."""
    if constraint.value is not None:
        return structure_text(constraint.value)
    return {"dict_v1": DICTIONARY, "future_v1": FUTURE}[str(constraint.kind)]


def allowed(constraint: Constraint) -> list[str]:
    """Return values that the attributes of ``constraint`` may have, as close to the forbidden one as can be."""
    value = constraint.value
    if value is None:
        return ['#vhlo.string_v1<"">', f"#vhlo.array_v1<[{DICTIONARY}]>"]
    if "case" in value:
        case = structure_text(value)
        return [other for other in cases_beside(case) if other != case]
    return ["#vhlo.type_v1<!vhlo.f8E5M2_v1>", "#vhlo.type_v1<!vhlo.f32_v1>"]


def violations(constraint: Constraint, text: OpText) -> Iterator[OpText]:
    """Yield ops that do not hold to ``constraint``, each for one reason."""
    if constraint.requires == "same_element_types":
        other = tensor_of("bf16_v1")
        for index in range(len(text.results)):
            yield replace(text, operands=(*text.operands[:index], other, *text.operands[index + 1 :]))
            yield replace(text, results=(*text.results[:index], other, *text.results[index + 1 :]))
    elif constraint.requires == "attributes_are_not":
        for name in constraint.attributes:
            yield text.with_attribute(name, forbidden(constraint))
    elif constraint.requires == "operands_are_not":
        for name in constraint.operands:
            yield text.with_operand(name, [forbidden(constraint), TENSOR])
            yield text.with_operand(name, [TENSOR, forbidden(constraint)])
    else:
        for pair in permutations(constraint.types, 2):
            yield with_elements(constraint, text, pair)


def near_misses(vhlo: Vhlo, constraint: Constraint, text: OpText) -> Iterator[OpText]:
    """Yield ops that come close to violating ``constraint`` and do not."""
    if constraint.requires == "same_element_types":
        other = tensor_of("bf16_v1")
        yield replace(text, operands=(other,) * len(text.operands), results=(other,) * len(text.results))
        if len(text.operands) > len(text.results):
            yield replace(text, operands=(*text.operands[:-1], tensor_of("bf16_v1")))
    elif constraint.requires == "attributes_are_not":
        for name in constraint.attributes:
            for value in allowed(constraint):
                yield text.with_attribute(name, value)
        # The library takes the kind of `api_version` for granted.
        for name in set(text.attributes) - set(constraint.attributes) - {"api_version"}:
            yield text.with_attribute(name, forbidden(constraint))
    elif constraint.requires == "operands_are_not":
        yield replace(text, results=(forbidden(constraint),))
    else:
        for type_ in constraint.types:
            yield with_elements(constraint, text, (type_, type_))
            for outside in element_types(vhlo) - set(constraint.types):
                yield with_elements(constraint, text, (type_, outside))
                yield with_elements(constraint, text, (outside, type_))


def element_types(vhlo: Vhlo) -> set[str]:
    """Return the types of the library that have no parameters and can be elements."""
    return {name for name in names_in_binary() if vhlo.is_type(tensor_of(name))}


def with_elements(constraint: Constraint, text: OpText, types: Sequence[str]) -> OpText:
    """Return ``text`` with the element types ``types`` of the operands that ``constraint`` names."""
    for name, type_ in zip(constraint.operands, types, strict=True):
        text = text.with_operand(name, [tensor_of(type_)])
    return text


@EACH_CONSTRAINT
def test_constraint_refuses_below_its_version_and_not_from_it_on(vhlo: Vhlo, op: Op, constraint: Constraint) -> None:
    since = op.at(constraint.since)
    assert since is not None
    for version in (op.versions[number - 1] for number in constraint.versions):
        below = [target for target in VERSIONS if version.is_in(target) and target < constraint.since]
        for text in violations(constraint, op_text(op, version)):
            accepted = [str(target) for target in below if vhlo.at(text, target) is not None]
            assert accepted == [], text
            assert vhlo.at(text, constraint.since) == vhlo.generic(converted(op, text, since.number))


@EACH_CONSTRAINT
def test_constraint_refuses_nothing_else(vhlo: Vhlo, op: Op, constraint: Constraint) -> None:
    for version in (op.versions[number - 1] for number in constraint.versions):
        last = [target for target in VERSIONS if version.is_in(target) and target < constraint.since][-1]
        for text in near_misses(vhlo, constraint, op_text(op, version)):
            assert vhlo.at(text, last) == vhlo.generic(text)


@EACH_OP_VERSION
def test_library_refuses_nothing_for_which_there_is_no_constraint(vhlo: Vhlo, op: Op, version: OpVersion) -> None:
    # A library does not know the constraints of its future, and writes what newer ones refuse.
    constraints = [c for c in op.constraints if version.number in c.versions and c.since <= CURRENT]
    text = op_text(op, version)
    reads_elements = any(constraint.requires not in ATTRIBUTES_AND_KINDS for constraint in constraints)
    # What the oldest version of an op takes, all take.
    for other in (*provocations(text), *(() if reads_elements else futures(text))):
        target = max(version.min, FUTURES_SINCE) if FUTURE in other.operands else version.min
        if version.is_in(target):
            held = all(target >= constraint.since or holds(constraint, other, version) for constraint in constraints)
            assert (vhlo.at(other, target) is not None) == held, other


# The predicates that do not read element types: of a type that has none, the library reads it all the same and may die.
ATTRIBUTES_AND_KINDS = ("attributes_are_not", "operands_are_not")
FUTURES_SINCE = known_feature("async").introduced


def provocations(text: OpText) -> Iterator[OpText]:
    """Yield variations of an op such as constraints are made of: other element types, other kinds of attributes."""
    for element in ("bf16_v1", "f8E5M2_v1"):
        other = tensor_of(element)
        for index in range(len(text.operands)):
            yield replace(text, operands=(*text.operands[:index], other, *text.operands[index + 1 :]))
        for index in range(len(text.results)):
            yield replace(text, results=(*text.results[:index], other, *text.results[index + 1 :]))
    eights = (tensor_of("f8E5M2_v1"), tensor_of("f8E4M3FN_v1"))
    yield replace(text, operands=(*eights, *text.operands[2:])[: len(text.operands)])
    for name, value in text.attributes.items():
        # The library takes these kinds for granted.
        if name not in ("api_version", "function_type", "result_accuracy"):
            for other in (DICTIONARY, "#vhlo.type_v1<!vhlo.f8E4M3FN_v1>", "#vhlo.type_v1<!vhlo.f8E5M2_v1>"):
                yield text.with_attribute(name, other)
        if value.startswith("#vhlo<"):
            yield from (text.with_attribute(name, case) for case in cases_beside(value))


def futures(text: OpText) -> Iterator[OpText]:
    """Yield the op with a future in place of each operand."""
    for index in range(len(text.operands)):
        yield replace(text, operands=(*text.operands[:index], FUTURE, *text.operands[index + 1 :]))


def cases_beside(value: str) -> list[str]:
    """Return all cases of the enum of which ``value`` is one."""
    name = value.removeprefix("#vhlo<").partition(" ")[0]
    enum = find_enum(name)
    assert enum is not None
    return [f"#vhlo<{name} {case.name}>" for case in enum.cases]


def holds(constraint: Constraint, text: OpText, version: OpVersion) -> bool:
    """Evaluate a predicate, as the README of the ops defines it."""
    slices = version.operand_slices(len(text.operands))
    operands = [type_ for name in constraint.operands for type_ in text.operands[slices[name]]]
    if constraint.requires == "same_element_types":
        return all(before == after for before, after in zip(text.operands, text.results, strict=False))
    if constraint.requires == "attributes_are_not":
        values = [text.attributes[name] for name in constraint.attributes]
        kind = "#vhlo.dict_v1" if constraint.kind == "dict_v1" else forbidden(constraint)
        return not any(value.startswith(kind) for value in values)
    if constraint.requires == "operands_are_not":
        return forbidden(constraint) not in operands
    mixed = {type_ for type_ in operands if type_ in map(tensor_of, constraint.types)}
    return len(mixed) <= 1


def test_mixed_dynamic_convolution_slips_through_below_0_20(vhlo: Vhlo) -> None:
    # A hole in the library that the specification mirrors, because what the library writes is what there is.
    op = find("dynamic_conv")
    text = op_text(op, op.versions[1])
    mixed = text.with_operand("lhs", [tensor_of("f8E4M3FN_v1")]).with_operand("rhs", [tensor_of("f8E5M2_v1")])
    assert vhlo.at(mixed, Version("0.19.0")) == vhlo.generic(converted(op, mixed, 1))


# Enums


def holder(enum: Enum, case: EnumCase) -> OpText:
    """Return an op that holds a case as its one attribute, of which the library takes nothing for granted."""
    op = find("iota")
    return op_text(op, op.versions[0]).with_attribute("iota_dimension", f"#vhlo<{enum.name} {case.name}>")


@EACH_CASE
def test_case_is_printed_so(vhlo: Vhlo, enum: Enum, case: EnumCase) -> None:
    text = f"#vhlo<{enum.name} {case.name}>"
    assert str(vhlo.provider.ir.Attribute.parse(text, vhlo.context)) == text


@EACH_CASE
def test_case_has_this_value_in_the_bytecode(vhlo: Vhlo, enum: Enum, case: EnumCase) -> None:
    data = vhlo.bytecode(holder(enum, case))
    (index,) = next(entry for entry in property_entries(data) if entry != OF_MODULE)
    reader = ByteReader(memoryview(attribute_entries(data)[index]))
    reader.varint()  # the code of the attribute
    assert (reader.varint(), reader.remaining) == (case.value, 0)


@EACH_CASE
def test_case_is_there_from_its_version_on(vhlo: Vhlo, enum: Enum, case: EnumCase) -> None:
    accepted = [version for version in VERSIONS if vhlo.at(holder(enum, case), version) is not None]
    assert accepted == [version for version in VERSIONS if version >= case.min]
