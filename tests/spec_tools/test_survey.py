"""Drafts of what sources say that know little: an op without attributes, a value without a known form, an end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.specs_folder import OURS, copy_of

from vhlo_tools.spec import Specification, known_specification, load_specification
from vhlo_tools.spec_tools import Plan, Survey, compare, draft, lint, write_edits
from vhlo_tools.version import Version

NEWEST = known_specification().newest
NEXT = Version(f"{NEWEST.major}.{NEWEST.minor + 1}.0")
SOURCE = "a library of tomorrow"
ONE = {"number of operands": "1", "number of results": "1", "number of regions": "0", "min": str(NEXT), "max": None}


def written(
    folder: Path, ops: Mapping[str, Mapping[str, Any]], implied: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[Specification, Plan]:
    """Return our specification with what a source says of ``ops``, and the plan that wrote it."""
    specs = copy_of(OURS, folder)
    present = load_specification(specs)
    known = {name: {"min": str(each.min)} for name, each in present.op_versions.items() if not each.forgotten}
    survey = Survey(SOURCE, NEXT, None, {"op": {**known, **ops}}, implied=implied or {})
    plan = draft(present, survey, compare(present, survey))
    write_edits(plan.edits)
    drafted = load_specification(specs)
    assert lint(drafted) == ()
    return drafted, plan


def test_values_that_print_alike_are_one_default_and_others_are_not(tmp_path: Path) -> None:
    ops = {f"{op}_v2": {**ONE, "attributes": ["mode"]} for op in ("abs", "ceil", "floor")}
    modes = {"abs_v2": "#vhlo.mode_v1<a>", "ceil_v2": "#vhlo.mode_v1<b>", "floor_v2": "#vhlo.mode_v1<a>"}
    drafted, plan = written(tmp_path, ops, {name: {"mode": text} for name, text in modes.items()})
    used = {op.name: step.added["mode"] for op, step, _, newer in drafted.steps() if newer.name in ops}
    assert used == {"abs": "default_mode", "ceil": "default_mode_of_ceil", "floor": "default_mode"}
    texts = {each.id: each.text for each in drafted.defaults}
    assert all(texts[used[name.removesuffix("_v2")]] == text for name, text in modes.items())
    left = [each.what for each in plan.remaining if each.path.name == "defaults.toml"]
    assert len(left) == 2
    assert all(what == f"correct the value ({SOURCE}): this one is a guess" for what in left)


def test_a_value_that_is_known_is_the_default_that_is_known(tmp_path: Path) -> None:
    ops = {"abs_v2": {**ONE, "attributes": ["kind", "sure", "texts"]}}
    implied = {"kind": "#vhlo.type_v1<!vhlo.f32_v1>", "sure": "#vhlo.bool_v1<false>", "texts": "#vhlo.array_v1<[]>"}
    drafted, plan = written(tmp_path, ops, {"abs_v2": implied})
    (step,) = [step for op, step, _, _ in drafted.steps() if op.name == "abs"]
    assert step.added == {"kind": "f32_type", "sure": "false", "texts": "empty_array"}
    f32 = drafted.default("f32_type")
    assert f32 is not None
    assert f32.value == {"attribute": "type_v1", "type": {"type": "f32_v1"}}
    assert not any("guess" in each.what for each in plan.remaining)


def test_what_is_not_known_is_left_to_a_person(tmp_path: Path) -> None:
    ops: dict[str, dict[str, Any]] = {
        "abs_v2": {"min": str(NEXT)},
        "brand_new_v1": {**ONE, "attributes": [], "number of operands": "2 or more"},
        "brief_v1": {**ONE, "attributes": [], "max": str(NEXT)},
        "late_v3": {**ONE, "attributes": []},
    }
    drafted, plan = written(tmp_path, ops)
    assert [str(slot) for slot in drafted.op_versions["brand_new_v1"].operands] == ["operand1", "operand2", "operands*"]
    assert {"abs_v2", "late_v3"}.isdisjoint(drafted.op_versions)
    left = {each.what for each in plan.remaining}
    assert f"decide: op abs_v2: only there ({SOURCE})" in left
    assert f"decide: op late_v3: only there ({SOURCE})" in left
    (abs_,) = [each for each in plan.remaining if each.what.startswith("decide: op abs_v2")]
    assert abs_.path.read_text().splitlines()[abs_.line - 1 :][:2] == ["[[op]]", 'name = "abs"']
    assert f"end brief_v1 at {NEXT}: no version of it follows" in left
    assert "correct the names of the operands, results and regions of brand_new_v1" in left
    assert "move brand_new into the file of its family" in left
