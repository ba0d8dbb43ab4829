"""The constraints of ops, proven against the installed library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations

import pytest
from support.vhlo_library import CURRENT, OP_VERSIONS, VERSIONS, Vhlo, names_in_binary
from support.vhlo_text import TENSOR, OpText, converted, find, op_text, structure_text, tensor_of

from vhlo_tools.spec import Constraint, Op, OpVersion, find_enum, known_feature, known_ops
from vhlo_tools.version import Version

pytestmark = pytest.mark.every_python

CONSTRAINTS = [(op, constraint) for op in known_ops() for constraint in op.constraints if constraint.since <= CURRENT]

EACH_CONSTRAINT = pytest.mark.parametrize(
    ("op", "constraint"), CONSTRAINTS, ids=[f"{op.name}-{c.feature}-{c.requires}" for op, c in CONSTRAINTS]
)
EACH_OP_VERSION = pytest.mark.parametrize(("op", "version"), OP_VERSIONS, ids=[v.name for _, v in OP_VERSIONS])

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
    for other in (*provocations(text), *(() if reads_elements or CURRENT < FUTURES_SINCE else futures(text))):
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
    for index in range(len(text.operands)):
        yield replace(text, operands=(*text.operands[:index], FUTURE, *text.operands[index + 1 :]))


def cases_beside(value: str) -> list[str]:
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
