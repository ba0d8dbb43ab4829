"""``vhlo spec`` on the command line; linting and scaffolding are tested with their modules too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.json_records import body
from support.specs_folder import OURS, copy_of, edit

from vhlo_tools.cli.main import main
from vhlo_tools.spec import known_enums, known_features, known_ops, known_specification, known_versions

MY_OP = str(OURS.parent / "examples" / "specs" / "my_op")

ALL_REDUCE = """\
all_reduce: op of the family collectives, 0.9.0 to current

0.9.0 to 1.4.0       all_reduce_v1
  operands     operand
  results      result
  attributes   channel_id, replica_groups, use_global_device_ids
  regions      computation
  refuses      before 0.17.0: operands and results of different element types
               (mixed_precision_reduction)

  step all_reduce_v1 - all_reduce_v2
    upgrade      only the name changes
    downgrade    only with one value each of operands and results
                 (variadic_collectives)

1.5.0 to current     all_reduce_v2
  operands     operands*
  results      results*
  attributes   channel_id, replica_groups, use_global_device_ids
  regions      computation
  changed      any number of operands
  changed      any number of results

features
  0.17.0  mixed_precision_reduction: reductions that accumulate in a wider type
          than their inputs
  1.5.0   variadic_collectives: all_gather, all_reduce and all_to_all with
          several operands
  1.16.0  mesh_replica_groups: replica groups given by the axes of a mesh
"""

CHANGELOG = """\
StableHLO 1.13.0 to 1.22.0: 18 changes, MLIR bytecode 6

1.14.0 (2026-03-02)
  + op version composite_v2: new regions composite_regions*

1.15.0 (2026-03-27)
  + op async_done_v1
  + op async_start_v1
  + type future_v1

1.16.0 (2026-04-09)
  + attribute sub_axis_info_v1
  + attribute axis_ref_v1
  + attribute replica_group_mesh_axes_v1
  + attribute mesh_axis_v1
  + attribute mesh_v1

1.17.0 (2026-05-18)
  + allowed constraint custom_call.custom_call_futures: future_v1 as inputs

1.18.0 (2026-06-26)
  + op version custom_call_v2: new attribute result_tilings (default
    empty_array)
  + allowed encoding builtin_codes: types and attributes of MLIR itself that its
    encoding gained later, in attributes that VHLO keeps as they are

1.19.0 (2026-08-04)
  + op collective_reduce_v1

1.20.0 (2026-08-13)
  + op version collective_broadcast_v2: new attribute has_dynamic_root (default
    false), any number of operands, any number of results
  + allowed constraint convolution.mixed_f8_convolution: different element types
    of lhs and rhs among f8E3M4_v1 ... f8E8M0FNU_v1 (8 types)
  + allowed constraint dynamic_conv.mixed_f8_convolution: different element
    types of lhs and rhs among f8E3M4_v1 ... f8E8M0FNU_v1 (8 types)

1.21.0 (2026-10-16)
  + allowed constraint dot_general.dot_algorithm_f8E4M3FN: f8E4M3FN_v1 as
    lhs_precision_type or rhs_precision_type

1.22.0 (2026-10-16)
  + case comparison_type_v1.WEAKORDER
"""


NEWER = pytest.mark.whole_data("shows entries of newer versions")


def spec(*arguments: str) -> int:
    return main(["spec", *arguments])


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert spec(*arguments, "--output-format", "json") == 0
    return body(capsys.readouterr().out)


@pytest.mark.whole_data("shows entries of newer versions")
def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    entries = as_json(capsys, "list")["entries"]
    assert {"kind": "op", "name": "all_reduce_v1", "min": "0.9.0", "max": "1.4.0"} in entries
    assert {"kind": "type", "name": "f4E2M1FN_v1", "min": "1.8.0", "max": None} in entries
    assert {"kind": "attribute", "name": "mesh_v1", "min": "1.16.0", "max": None} in entries
    assert {"kind": "enum", "name": "comparison_type_v1", "min": "0.9.0", "max": None} in entries
    assert {"kind": "case", "name": "comparison_type_v1.WEAKORDER", "min": "1.22.0", "max": None} in entries
    assert {"kind": "encoding", "name": "range_locations", "min": "1.9.0", "max": None} in entries
    assert {"kind": "feature", "name": "dot_algorithm", "min": "1.6.0", "max": None} in entries
    refused = {"kind": "constraint", "name": "custom_call.custom_call_futures", "min": "0.9.0", "max": "1.16.0"}
    assert refused in entries
    assert len({(entry["kind"], entry["name"]) for entry in entries}) == len(entries)
    counts = {kind: sum(entry["kind"] == kind for entry in entries) for kind in ("op", "enum", "version")}
    ops = sum(len(op.versions) for op in known_ops())
    assert counts == {"op": ops, "enum": len(known_enums()), "version": len(known_versions())}
    named = [entry["name"] for entry in entries if entry["kind"] in ("feature", "encoding")]
    assert sorted(named) == sorted(feature.id for feature in known_features())


def test_list_of_some_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert spec("list", "--kind", "encoding", "--kind", "enum") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {line[0] for line in lines} == {"encoding", "enum"}
    assert ["encoding", "mixed_dialects", "1.11.0", "current"] in lines


def test_show_an_op(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("all_reduce", "all_reduce_v2", "vhlo.all_reduce_v1", "stablehlo.all_reduce"):
        assert spec("show", name) == 0
        assert capsys.readouterr().out == ALL_REDUCE
    (op,) = as_json(capsys, "show", "all_reduce")["entries"]
    assert [(version["name"], version["max"]) for version in op["versions"]] == [
        ("all_reduce_v1", "1.4.0"),
        ("all_reduce_v2", None),
    ]
    assert op["steps"][0]["feature"] == "variadic_collectives"


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("f4E2M1FN", ["f4E2M1FN_v1: type, 1.8.0 to current", "  encodings    code 37"]),
        ("!vhlo.f4E2M1FN_v1", ["  bits         4"]),
        pytest.param("comparison_type", ["               WEAKORDER = 5, since 1.22.0"], marks=NEWER),
        pytest.param("WEAKORDER", ["comparison_type_v1: enum, 0.9.0 to current"], marks=NEWER),
        ("dot_algorithm", ["  steps        dot_general_v1 to dot_general_v2"]),
        ("buffers", ["  remedy       pass tensors instead of buffers"]),
        ("empty_tensor", ["empty_tensor: default", "  equals       no_elements"]),
        ("0.15.0", ["  bytecode     6", "  changes      changed bytecode 6"]),
        ("tan", ["tan: op of the family elementwise_unary, 1.4.0 to current", "tan: feature, 1.4.0 to current"]),
    ],
)
def test_show_other_things(name: str, lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert spec("show", name) == 0
    assert set(lines) <= set(capsys.readouterr().out.splitlines())


def test_everything_is_shown_in_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {entry.name for entry in known_specification().entries() if entry.kind not in ("constraint", "step")}
    for name in shown:
        assert spec("show", name) == 0
        for line in capsys.readouterr().out.splitlines():
            assert len(line) <= 80 or len(line.split()) == 2 or "#vhlo" in line, line


def test_an_op_that_is_gone(capsys: pytest.CaptureFixture[str]) -> None:
    assert spec("show", "trace") == 0
    out = capsys.readouterr().out
    assert out.startswith("trace: op of the family forgotten, 0.9.0 to 0.19.0\n")
    assert "  forgotten    the library dropped it without a version of its own" in out
    assert spec("diff", "0.19.0", "0.20.0") == 0
    assert "\n  - op trace_v1\n" in capsys.readouterr().out


def test_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert spec("show", "all_redcue") == 2
    assert "did you mean all_reduce or" in capsys.readouterr().err
    assert spec("show", "zzzzzz") == 2
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.whole_data("shows entries of newer versions")
def test_diff(capsys: pytest.CaptureFixture[str]) -> None:
    assert spec("diff", "1.13.0", "1.22.0") == 0
    assert capsys.readouterr().out == CHANGELOG
    there = as_json(capsys, "diff", "0.9.0", "1.22.0")
    assert (there["start"], there["end"]) == ("0.9.0", "1.22.0")
    assert there["changes"][0]["version"] == "0.10.0"
    back = as_json(capsys, "diff", "1.22.0", "0.9.0")["changes"]
    assert len(back) == len(there["changes"])
    opposite = {"added": "removed", "removed": "added", "allowed": "refused", "changed": "changed"}
    assert sorted((change["kind"], change["name"], change["action"]) for change in back) == sorted(
        (change["kind"], change["name"], opposite[change["action"]]) for change in there["changes"]
    )
    assert {change["kind"] for change in there["changes"]} == {
        *("op", "op version", "type", "attribute", "case", "constraint", "encoding", "bytecode")
    }


def test_diff_of_bytecode_versions_and_patches(capsys: pytest.CaptureFixture[str]) -> None:
    assert spec("diff", "0.15.0", "0.14.0") == 0
    assert capsys.readouterr().out == (
        "StableHLO 0.15.0 to 0.14.0: 1 change, MLIR bytecode 6 to 4\n\n"
        "0.15.0 (2023-11-08) taken back\n  ~ bytecode 6: MLIR bytecode 6 to 4\n"
    )
    assert as_json(capsys, "diff", "1.8.0", "1.8.5")["changes"] == []
    assert spec("diff", "1.8.0", "9.0.0") == 2
    assert "9.0.0 is not a version of the specification: expected one from 0.9.0 to" in capsys.readouterr().err


def test_lint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert spec("lint") == 0
    assert "no violation" in capsys.readouterr().err
    assert as_json(capsys, "lint") == {"ok": True, "violations": []}
    specs = copy_of(OURS, tmp_path)
    edit(specs / "vhlo" / "types.toml", 'name = "i2_v1"', "code = 31", "code = 1")
    assert spec("lint", "--specs", str(specs), "--write-baseline") == 1
    out, err = capsys.readouterr()
    assert (
        "vhlo/types.toml: i2_v1: code-unique: code 1 is already used by complex_v1\n"
        "    give the newer one the next free code\n"
    ) in out
    assert "vhlo/types.toml: i2_v1: released-changed: encodings of the type i2_v1 is released as" in out
    assert "2 violations" in err
    assert "is now the last release" not in err
    assert spec("lint", "--specs", str(specs), "--output-format", "json") == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], {violation["rule"] for violation in report["violations"]}) == (
        False,
        {"code-unique", "released-changed"},
    )
    assert set(report["violations"][0]) == {"rule", "file", "entry", "message", "remedy"}


def test_lint_writes_what_is_released(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    specs = copy_of(OURS, tmp_path)
    (specs / "released.json").unlink()
    assert spec("lint", "--specs", str(specs)) == 0
    assert "the add-only rule was not checked" in capsys.readouterr().err
    assert spec("lint", "--specs", str(specs), "--write-baseline") == 0
    assert "released.json is now the last release" in capsys.readouterr().err
    assert (specs / "released.json").is_file()


def test_against(capsys: pytest.CaptureFixture[str]) -> None:
    assert spec("lint", "--against", str(OURS)) == 0
    assert spec("lint", "--against", "no-such-revision") == 2
    assert "expected a folder, or a git revision" in capsys.readouterr().err
    assert spec("lint", "--specs", MY_OP, "--against", str(OURS)) == 1
    assert "abs_v1: released-removed: the op abs_v1 is released, but was removed" in capsys.readouterr().out


def test_another_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {entry["name"] for entry in as_json(capsys, "list", "--specs", MY_OP)["entries"]}
    assert {"my_op_v1", "my_op_v2", "my_op.1-2", "my_op_attr", "0.11.0"} <= names
    (change,) = as_json(capsys, "diff", "0.10.0", "0.11.0", "--specs", MY_OP)["changes"]
    assert (change["kind"], change["name"]) == ("op version", "my_op_v2")
    assert spec("show", "all_reduce", "--specs", MY_OP) == 2
    for command in (["list"], ["show", "x"], ["diff", "1.0.0", "1.1.0"], ["lint"], ["new-version", "2.0.0"]):
        for folder in (tmp_path, tmp_path / "missing"):
            capsys.readouterr()
            assert spec(*command, "--specs", str(folder)) == 2
            assert "contains no specification" in capsys.readouterr().err


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["show"],
        ["list", "--kind", "nonsense"],
        ["diff", "1.0", "1.1.0"],
        ["nonsense"],
        ["new-version"],
    ):
        assert spec(*arguments) == 2
    assert spec("--help") == 0
    out = capsys.readouterr().out
    assert all(command in out for command in ("list", "show", "diff", "lint", "new-version"))
