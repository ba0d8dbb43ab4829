"""Constraints of the specification that the verifier does not check: found in artifacts, and refused in runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from constraints import RECORD, Case, cases, drawn

import vhlo_tools as vt
from vhlo_tools.api import EngineChoice
from vhlo_tools.compat.constraints import CONSTRAINTS, SILENT, Checked

#: How the programs that the verifier lets pass end on both engines, by release of jaxlib.
RECORDED = [release["passed"] for release in json.loads(RECORD.read_text()).values()]
#: The sizes of its result depend on the value of an operand.
UNSEEN = "dynamic_conv C25 1"
CASES = {case.name: case for case in cases()}
CONFORMING = [case for case in CASES.values() if not case.constraint]
VIOLATING = [CASES[name] for name in RECORDED[0] if CASES[name].constraint and name != UNSEEN]
#: How a program ends with which engines agree.
AGREED = ("equal", "reference refuses, xla refuses")


def named(case: Case) -> str:
    return case.name


def violations(text: str) -> list[vt.Finding]:
    return [found for found in vt.check(text) if found.feature == "violates_specification"]


@pytest.mark.parametrize("case", VIOLATING, ids=named)
def test_a_violation_is_found(case: Case) -> None:
    (found,) = [each for each in violations(case.text) if f"({case.constraint})" in each.message]
    assert found.message.startswith(f"stablehlo.{case.op} violates constraint ({case.constraint}) ")
    assert ", expected " in found.message
    assert (found.op, found.kind, found.function) == (f"stablehlo.{case.op}", "constraint", "main")
    assert found.location is not None
    if found.level != "error":
        like = CASES[f"{case.op} conforms 1"].name
        assert all(each[case.name] in (*AGREED, each.get(like)) for each in RECORDED)


def needing(case: Case) -> Any:
    return pytest.param(case, marks=pytest.mark.needs("async") if case.op.startswith("async") else ())


@pytest.mark.parametrize("case", [*map(needing, CONFORMING)], ids=named)
def test_nothing_is_found_in_programs_that_conform(case: Case) -> None:
    assert violations(case.text) == []


def test_each_rule_has_a_program_that_violates_it() -> None:
    rules = {(op, rule.number) for op, each in CONSTRAINTS.items() for rule in each}
    assert rules == {(case.op, case.constraint) for case in VIOLATING}
    assert UNSEEN in RECORDED[0]


def test_equal_ops_are_counted() -> None:
    line = "%{} = stablehlo.compare LT, %a, %b, UNSIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(unknown)\n"
    body = "".join(map(line.format, range(3)))
    text = f"func.func @main(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i1> {{\n{body}return %0 : tensor<i1>\n}}"
    (found,) = violations(text)
    assert (found.count, found.path) == (3, "@main/0:stablehlo.compare")


def test_an_artifact_needs_no_mlir_for_it() -> None:
    artifact = vt.serialize(CASES["compare C3 1"].text, target="0.9.0")
    (found,) = artifact.requirements().violations
    assert found.level == "error"
    assert "compare_type is UNSIGNED, expected SIGNED for i32" in found.message


def test_rules_say_nothing_of_what_no_verifier_saw() -> None:
    for rules in CONSTRAINTS.values():
        for rule in rules:
            assert rule.violated_by(Checked({}, (), (), (), None)) is None
    huge = {"type": {"type": "tensor_v1", "shape": [2**40, 2]}, "data": "00" * 8}
    dimension = {"value": 9}
    kind = {"type": "tensor_v1", "shape": [2], "element": {"type": "f32_v1"}}
    op = Checked({"replica_groups": huge, "all_gather_dim": dimension}, [kind], [kind], [], (1, 1))
    assert [rule.violated_by(op) for rule in CONSTRAINTS["all_gather"]] == [None, None, None]
    op.attributes["replica_groups"]["type"]["shape"] = [1, 1]
    assert [rule.violated_by(op) for rule in CONSTRAINTS["all_gather"]] == [None, None, None]


@pytest.mark.parametrize("engine", ["reference", "xla"])
@pytest.mark.parametrize("name", ["all_gather C6 1", "compare C3 13", "fft C4 1", "reduce_scatter C8 1"])
def test_no_engine_runs_what_one_is_wrong_about_without_a_word(name: str, engine: EngineChoice) -> None:
    case = CASES[name]
    (found,) = violations(case.text)
    with pytest.raises(vt.EngineError) as caught:
        vt.run(case.text, [drawn(each, i) for i, each in enumerate(case.inputs)], engine=engine)
    assert str(caught.value) == f"{found.location}: {found.message}; {found.remedy}"


def test_all_rules_about_silence_are_read_from_mlir_as_from_files() -> None:
    silent = {(op, rule.number) for op, each in SILENT.items() for rule in each}
    refused = set()
    for case in VIOLATING:
        if (case.op, case.constraint) in silent:
            try:
                vt.load_executable(case.text, engine="reference")
            except vt.EngineError as error:
                assert f"({case.constraint})" in str(error)
                refused.add((case.op, case.constraint))
    assert refused == silent


@pytest.mark.parametrize("op", ["all_gather", "all_reduce", "compare", "fft", "reduce_scatter"])
def test_programs_that_conform_are_loaded(op: str) -> None:
    vt.load_executable(CASES[f"{op} conforms 1"].text, engine="reference")


def test_equality_of_integers_does_not_depend_on_the_type_of_comparison() -> None:
    text = CASES["compare C3 2"].text
    assert "EQ" in text
    (result,) = vt.run(text, [[1, -1], [1, 3]], engine="reference")
    assert result.tolist() == [True, False]


def test_verify_says_which_constraint() -> None:
    with pytest.raises(vt.EngineError, match=r"violates constraint \(C3\) of the specification"):
        vt.verify(CASES["compare C3 1"].text, CASES["compare conforms 1"].text)


@pytest.mark.parametrize(
    ("op", "channel", "groups", "size", "expected"),
    [
        ("all_gather", "", [[0, 1]], 4, set()),
        ("all_gather", "", [[0], [1]], 2, set()),
        ("all_gather", "", [[0, 1, 2]], 6, {"C3"}),
        # A group has all partitions of its replicas.
        ("all_gather", "channel", [[0, 1]], 12, set()),
        ("all_gather", "channel", [[0, 1]], 4, {"C6"}),
        ("all_gather", "channel", [[0, 1, 2]], 18, {"C3"}),
        # A group has numbers of devices.
        ("all_gather", "global", [[0, 1, 2, 3, 4, 5]], 12, set()),
        ("all_gather", "global", [[0, 1]], 4, {"C3"}),
        ("all_reduce", "channel", [[0, 1]], 2, set()),
        ("all_reduce", "channel", [[0, 1, 2]], 2, {"C2"}),
        ("all_reduce", "global", [[0, 1, 2, 3, 4, 5]], 2, set()),
        ("reduce_scatter", "channel", [[0, 1]], 1, set()),
        ("reduce_scatter", "channel", [[0, 1, 2]], 1, {"C4", "C8"}),
        # A group has partitions.
        ("all_to_all", "channel", [[0, 1, 2]], 6, set()),
        ("all_to_all", "channel", [[0, 1]], 6, {"C6"}),
        ("all_to_all", "", [[0, 1]], 6, set()),
        ("all_to_all", "", [[0, 1, 2]], 6, {"C6"}),
    ],
)
def test_groups_are_of_the_devices_of_the_module(
    op: str, channel: str, groups: list[list[int]], size: int, expected: set[str]
) -> None:
    given = 2 if op in ("all_gather", "all_reduce") else 6
    attributes = {
        "replica_groups": f"dense<{groups}> : tensor<{len(groups)}x{len(groups[0])}xi64>",
        **({"channel_handle": "#stablehlo.channel_handle<handle = 1, type = 0>"} if channel else {}),
        **({"use_global_device_ids": "unit"} if channel == "global" else {}),
        **({"all_gather_dim": "0 : i64"} if op == "all_gather" else {}),
        **({"scatter_dimension": "0 : i64"} if op == "reduce_scatter" else {}),
    }
    if op == "all_to_all":
        parts = f"{len(groups[0])} : i64"
        attributes |= {"split_dimension": "0 : i64", "concat_dimension": "0 : i64", "split_count": parts}
    listed = ", ".join(f"{name} = {value}" for name, value in attributes.items())
    types = f"(tensor<{given}xf32>) -> tensor<{size}xf32>"
    region = """({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32> stablehlo.return %s : tensor<f32> })"""
    text = f"""module attributes {{mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 3 : i32}} {{
      func.func @main(%a: tensor<{given}xf32>) -> tensor<{size}xf32> {{
        %r = "stablehlo.{op}"(%a) <{{{listed}}}> {region if "reduce" in op else ""} : {types}
        return %r : tensor<{size}xf32> }} }}"""
    found = {each.message.partition("(")[2].partition(")")[0] for each in violations(text)}
    assert found == expected


def test_what_ends_a_process_is_refused() -> None:
    silent = {(op, rule.number) for op, rules in CONSTRAINTS.items() for rule in rules if rule.is_silent}
    assert {("all_reduce", "C5"), ("reduce_scatter", "C7"), ("all_gather", "C6"), ("compare", "C3")} <= silent
    with pytest.raises(vt.EngineError, match=r"stablehlo.all_reduce violates constraint \(C5\)"):
        vt.run(CASES["all_reduce C5 1"].text, [[1, 2]], engine="xla")


@pytest.mark.parametrize("case", ["WEAKORDER", 5, None])
def test_orders_of_newer_versions_are_no_violation(case: object) -> None:
    kind = {"type": "tensor_v1", "shape": [2], "element": {"type": "f32_v1"}}
    op = Checked({"compare_type": {"case": case}}, [kind, kind], [kind], [], None)
    assert [rule.violated_by(op) for rule in CONSTRAINTS["compare"]] == [None, None]
