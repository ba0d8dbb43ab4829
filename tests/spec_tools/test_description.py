"""What a specification says of a name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import vhlo_tools as vt
from vhlo_tools.spec.specification import known_specification
from vhlo_tools.spec_tools.description import describe, nearest

SPECS = known_specification()


def described(name: str) -> dict[str, Any]:
    (found,) = describe(SPECS, name)
    return found


def test_an_op_with_its_versions_steps_and_features() -> None:
    op = described("all_reduce")
    assert all(
        describe(SPECS, name) == (op,) for name in ("all_reduce_v1", "vhlo.all_reduce_v2", "stablehlo.all_reduce")
    )
    assert (op["kind"], op["family"], op["min"], op["max"]) == ("op", "collectives", "0.9.0", None)
    one, two = op["versions"]
    assert (one["name"], one["min"], one["max"], one["changes"]) == ("all_reduce_v1", "0.9.0", "1.4.0", [])
    assert (one["operands"], two["operands"], two["max"]) == (["operand"], ["operands*"], None)
    assert two["changes"] == ["any number of operands", "any number of results"]
    assert one["refuses"] == [
        {
            "what": "operands and results of different element types",
            "before": "0.17.0",
            "feature": "mixed_precision_reduction",
        }
    ]
    assert two["refuses"] == []
    (step,) = op["steps"]
    assert step["between"] == ["all_reduce_v1", "all_reduce_v2"]
    assert step["does"] == [
        {"direction": "upgrade", "what": "only the name changes", "guard": False},
        {"direction": "downgrade", "what": "only with one value each of operands and results", "guard": True},
    ]
    assert {"mixed_precision_reduction", "variadic_collectives"} <= {each["id"] for each in op["features"]}


def test_a_step_that_adds_an_attribute() -> None:
    (step,) = described("tanh")["steps"]
    assert step["feature"] == "result_accuracy"
    assert step["does"] == [
        {"direction": "upgrade", "what": "result_accuracy is set to default_result_accuracy", "guard": False},
        {"direction": "downgrade", "what": "only if result_accuracy is default_result_accuracy", "guard": True},
    ]


def test_types_and_attributes() -> None:
    f4 = described("f4E2M1FN")
    assert (f4["kind"], f4["name"], f4["min"], f4["max"], f4["bits"]) == ("type", "f4E2M1FN_v1", "1.8.0", None, 4)
    assert [(each["code"], each["fields"]) for each in f4["encodings"]] == [(37, [])]
    assert "cases" not in f4
    assert "bits" not in described("unranked_tensor")
    assert described("unranked_tensor")["encodings"][0]["fields"] == ["element: type"]
    assert described("array_v1")["encodings"][0]["fields"] == ["elements: attribute[]"]


def test_an_enum_is_described_once_as_the_attribute_that_it_is() -> None:
    by_name, by_case = described("comparison_type"), described("comparison_type_v1.WEAKORDER")
    assert by_name["kind"] == "attribute"
    assert by_name["encodings"][0]["fields"] == ["value: enum comparison_type_v1"]
    assert {"name": "WEAKORDER", "value": 5, "min": "1.22.0"} in by_name["cases"]
    assert (by_case["kind"], by_case["cases"]) == ("enum", by_name["cases"])
    assert described("WEAKORDER") == by_case
    # Where attributes are not specified, it is found by its name too.
    alone = replace(SPECS, attributes=())
    assert describe(alone, "comparison_type") == describe(alone, "comparison_type_v1") == (by_case,)


def test_features_defaults_and_versions() -> None:
    algorithm = described("dot_algorithm")
    assert (algorithm["kind"], algorithm["min"], algorithm["steps"]) == (
        "feature",
        "1.6.0",
        ["dot_general_v1 to dot_general_v2"],
    )
    assert described("range_locations")["kind"] == "encoding"
    precision = described("mixed_precision_reduction")
    assert "all_reduce: no operands and results of different element types" in precision["constraints"]
    assert described("default_result_accuracy")["steps"].count("tanh_v1 to tanh_v2") == 1
    version = described("0.15.0")
    assert (version["date"], version["bytecode"], version["changes"]) == ("2023-11-08", 6, ["changed bytecode 6"])
    assert described(str(SPECS.versions[0].version))["changes"] == []


def test_two_things_of_one_name() -> None:
    assert [(each["kind"], each["name"]) for each in describe(SPECS, "tan")] == [("op", "tan"), ("feature", "tan")]


def test_names_that_are_not_there() -> None:
    with pytest.raises(
        vt.UnknownTargetError,
        match="'all_redcue' is not an op, type.* version of the specification; did you mean all_reduce or",
    ):
        describe(SPECS, "all_redcue")
    assert nearest(SPECS, "zzzzzz") == ""
    # Versions, steps and constraints are no names that anybody looks for.
    assert "_v" not in nearest(SPECS, "tanh_v")
