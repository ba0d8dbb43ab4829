"""Ops moved by the data alone: every real step and constraint of VHLO, in both directions.

That the data say what the C++ conversion does is proven in ``test_ops_of_library``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

import vhlo_tools as vt
from vhlo_tools.spec import Constraint, Op, OpStep, OpVersion, known_default, known_versions
from vhlo_tools.spec.specification import known_specification
from vhlo_tools.spec.version_steps import OpStructure, downgrade, floor_of, matches, obstacles, upgrade
from vhlo_tools.spec_tools.samples import OTHER_VALUE, sample

SPECS = known_specification()
VERSIONS = [entry.version for entry in known_versions()]
STEPS = list(SPECS.steps())
EACH_STEP = pytest.mark.parametrize(
    ("op", "step", "older", "newer"), STEPS, ids=[f"{op.name}-{step.older}-{step.newer}" for op, step, _, _ in STEPS]
)
CONSTRAINTS = list(SPECS.constraints())
F32 = {"type": "f32_v1"}


def tensor(element: str, *shape: int) -> dict[str, Any]:
    return {"type": "tensor_v1", "shape": list(shape or (4,)), "element": {"type": element}}


def at(version: OpVersion) -> vt.Version:
    assert version.max is not None
    return version.max


def features(refused: pytest.ExceptionInfo[vt.DowngradeError]) -> list[str]:
    return [finding.feature for finding in refused.value.findings]


@EACH_STEP
def test_default_goes_down_and_up_again(op: Op, step: OpStep, older: OpVersion, newer: OpVersion) -> None:
    operation = sample(SPECS, newer)
    lower = downgrade(operation, at(older))
    assert lower.name == older.name
    assert list(lower.attributes) == list(older.attributes)
    for name, default in step.removed.items():
        assert known_default(default).computed == "no_padding"
        assert lower.attributes[name]["type"]["shape"] == [2, 2]
    higher = upgrade(lower, newer.min)
    assert higher == operation
    assert list(higher.attributes) == list(newer.attributes)


@EACH_STEP
def test_old_ops_go_up_and_down_again(op: Op, step: OpStep, older: OpVersion, newer: OpVersion) -> None:
    operation = sample(SPECS, older)
    higher = upgrade(operation, SPECS.newest)
    assert higher.name == op.versions[-1].name
    assert all(higher.attributes[name] == known_default(id_).value for name, id_ in step.added.items())
    if not step.removed:
        assert downgrade(higher, at(older)) == operation


@EACH_STEP
def test_what_the_older_version_cannot_say_is_refused(op: Op, step: OpStep, older: OpVersion, newer: OpVersion) -> None:
    operation = sample(SPECS, newer)
    others = [
        (f"{name} is not its default, {default}", with_attribute(operation, name, OTHER_VALUE))
        for name, default in step.added.items()
    ]
    if step.single:
        twice = replace(operation, operands=operation.operands * 2, results=operation.results * 2)
        others.append(("it has 2 operands, but only one of each can be written", twice))
    others += [(f"it has {name}", replace(operation, regions=operation.regions + 1)) for name in step.empty]
    assert bool(others) == (step.feature is not None)
    for reason, other in others:
        assert downgrade(other, newer.min) == other
        with pytest.raises(vt.DowngradeError, match=f"{newer.name} cannot be downgraded to StableHLO") as refused:
            downgrade(other, at(older))
        assert set(features(refused)) == {step.feature}
        assert reason in str(refused.value)
        finding = refused.value.findings[0]
        assert (finding.introduced, finding.target, finding.op) == (newer.min, at(older), op.name)


def with_attribute(operation: OpStructure, name: str, value: Mapping[str, Any]) -> OpStructure:
    return replace(operation, attributes={**operation.attributes, name: value})


@pytest.mark.parametrize(("name", "op", "constraint"), CONSTRAINTS, ids=[name for name, _, _ in CONSTRAINTS])
def test_constraints(name: str, op: Op, constraint: Constraint) -> None:
    version = next(each for each in op.versions if each.number == constraint.versions[0])
    last = next(each for each in reversed(VERSIONS) if version.is_in(each) and each < constraint.since)
    operation = sample(SPECS, version)
    assert list(obstacles(operation, last)) == []
    found = {finding.feature for finding in obstacles(violating(operation, constraint), last)}
    assert constraint.feature in found
    # A future is younger than the constraint on it is at places: nothing else is in the way.
    assert found <= {constraint.feature, "async"}
    with pytest.raises(vt.DowngradeError) as refused:
        downgrade(violating(operation, constraint), last)
    assert constraint.feature in features(refused)
    assert list(obstacles(violating(operation, constraint), constraint.since)) == []


def violating(operation: OpStructure, constraint: Constraint) -> OpStructure:
    if constraint.requires == "same_element_types":
        return replace(operation, results=(tensor("bf16_v1"), *operation.results[1:]))
    if constraint.requires == "attributes_are_not":
        value = constraint.value or {"attribute": constraint.kind, "elements": []}
        return with_attribute(operation, constraint.attributes[0], value)
    if constraint.requires == "operands_are_not":
        return replace(operation, operands=({"type": constraint.kind, "elements": []},))
    return replace(operation, operands=(tensor("f8E5M2_v1"), tensor("f8E4M3FN_v1"), *operation.operands[2:]))


def test_constraints_apply_to_what_the_steps_leave() -> None:
    typed_ffi = {"attribute": "api_version_v1", "case": "API_VERSION_TYPED_FFI"}
    operation = with_attribute(sample(SPECS, SPECS.op_versions["custom_call_v2"]), "api_version", typed_ffi)
    assert downgrade(operation, vt.Version("1.3.0")).name == "custom_call_v1"
    with pytest.raises(vt.DowngradeError, match="it has API_VERSION_TYPED_FFI as api_version") as refused:
        downgrade(operation, vt.Version("1.2.0"))
    assert features(refused) == ["custom_call_dictionary_backend_config"]


def test_a_constraint_on_a_number_tells_zeros_apart() -> None:
    op = next(op for op in SPECS.ops if op.name == "batch_norm_inference")
    zero = {"attribute": "float_v1", "type": {"type": "f32_v1"}, "value": 0.0}
    constraint = Constraint("x", VERSIONS[1], (1,), "attributes_are_not", attributes=("epsilon",), value=zero)
    specs = replace(SPECS, ops=(replace(op, constraints=(constraint,)),))
    for value, found in ((0.0, ["x"]), (-0.0, [])):
        operation = with_attribute(sample(SPECS, op.versions[0]), "epsilon", zero | {"value": value})
        assert [each.feature for each in obstacles(operation, VERSIONS[0], specs)] == found


def test_younger_ops_types_attributes_and_cases() -> None:
    tan = sample(SPECS, SPECS.op_versions["tan_v2"])
    with pytest.raises(
        vt.DowngradeError, match="tan is introduced in 1.4.0; the op tan needs StableHLO 1.4.0"
    ) as refused:
        downgrade(tan, vt.Version("1.3.0"))
    assert features(refused) == ["tan"]
    small = replace(sample(SPECS, SPECS.op_versions["abs_v1"]), operands=(tensor("f4E2M1FN_v1"),))
    assert downgrade(small, vt.Version("1.8.0")) == small
    with pytest.raises(vt.DowngradeError, match="it contains f4E2M1FN_v1") as refused:
        downgrade(small, vt.Version("1.7.3"))
    assert features(refused) == ["mx_floats"]
    weak = {"attribute": "comparison_type_v1", "case": "WEAKORDER"}
    compare = with_attribute(sample(SPECS, SPECS.op_versions["compare_v1"]), "compare_type", weak)
    with pytest.raises(vt.DowngradeError, match="it contains comparison_type_v1.WEAKORDER") as refused:
        downgrade(compare, vt.Version("1.21.0"))
    assert features(refused) == ["weak_order_comparison"]


def accuracy(**changes: Any) -> dict[str, Any]:
    mode = {"attribute": "result_accuracy_mode_v1", "case": "DEFAULT"}
    return {"attribute": "result_accuracy_v1", "atol": 0.0, "rtol": 0.0, "ulps": 0, "mode": mode} | changes


@pytest.mark.parametrize(
    ("identifier", "value", "expected"),
    [
        ("default_result_accuracy", accuracy(), True),
        ("default_result_accuracy", accuracy(atol=-0.0), True),
        ("default_result_accuracy", accuracy(rtol=1e-9), False),
        ("default_result_accuracy", accuracy(ulps=1), False),
        ("empty_tensor", {"attribute": "tensor_v1", "type": tensor("i32_v1", 0, 2), "data": ""}, True),
        ("empty_tensor", {"attribute": "tensor_v1", "type": tensor("i64_v1", 1), "data": "00" * 8}, False),
        ("empty_tensor", {"attribute": "array_v1", "elements": []}, False),
        ("false", {"attribute": "bool_v1", "value": False}, True),
        ("false", {"attribute": "bool_v1", "value": 0}, False),
        ("none_type", {"attribute": "type_v1", "type": {"type": "none_v1"}}, True),
        ("none_type", {"attribute": "type_v1", "type": F32}, False),
        ("zero_convolution_padding", {"attribute": "tensor_v1", "type": tensor("i64_v1", 0, 2), "data": ""}, False),
    ],
)
def test_what_counts_as_a_default(identifier: str, value: dict[str, Any], expected: bool) -> None:
    assert matches(known_default(identifier), value) is expected


@pytest.mark.parametrize(("rank", "shape", "data"), [(2, [0, 2], ""), (3, [1, 2], "00" * 8), (5, [3, 2], "00" * 8)])
def test_padding_is_computed(rank: int, shape: list[int], data: str) -> None:
    operation = sample(SPECS, SPECS.op_versions["dynamic_conv_v2"])
    operation = replace(operation, operands=(tensor("f32_v1", *[8] * rank), *operation.operands[1:]))
    padding = downgrade(operation, vt.Version("0.19.0")).attributes["padding"]
    assert (padding["type"]["shape"], padding["data"]) == (shape, data)


def test_ops_that_are_none() -> None:
    tanh = sample(SPECS, SPECS.op_versions["tanh_v1"])
    for operation, message in (
        (replace(tanh, name="tanh_v9"), "tanh_v9 is not an op version"),
        (replace(tanh, attributes={"x": F32}), r"tanh_v1 has the attributes none, not \['x'\]"),
        (replace(tanh, operands=()), "tanh_v1 cannot have 0 operands"),
        (replace(tanh, results=tanh.results * 2), "tanh_v1 cannot have 2 results"),
        (replace(tanh, regions=1), "tanh_v1 cannot have 1 regions"),
    ):
        with pytest.raises(vt.InvalidProgramError, match=message):
            upgrade(operation, SPECS.newest)
    with pytest.raises(ValueError, match="is an upgrade"):
        downgrade(tanh, SPECS.newest)
    with pytest.raises(ValueError, match="is a downgrade"):
        upgrade(upgrade(tanh, SPECS.newest), vt.Version("0.9.0"))


def test_an_attribute_stays_down_to_the_oldest_version_in_a_row_that_has_it() -> None:
    checked = 0
    for op in SPECS.ops:
        for number, version in enumerate(op.versions):
            for name in version.attributes:
                with_it = [name in each.attributes for each in op.versions[: number + 1]]
                first = number + 1 - [*with_it[::-1], False].index(False)
                assert floor_of(version, name) == op.versions[first].min, (version.name, name)
                checked += 1
    assert checked > 250
