"""Shardings of Shardy in the form that XLA of jaxlib 0.4.35 to 0.6 reads: by these, and by the newest one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from support.expansions import expanded
from support.release_runs import run_sharded_by_release
from support.sharded_programs import PROGRAMS, WHOLE, annotated, mesh

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider
from vhlo_tools.findings import Finding

FEATURE = "mixed_dialects"
#: What the first consumers do not know: they are those of 1.7.8, in jaxlib 0.4.35.
SINCE_1_8_5 = {"groups", "manual in another"}


def _written(name: str, target: str = "1.8.5") -> tuple[vt.Artifact, list[Finding]]:
    return expanded(PROGRAMS[name].text, FEATURE, target)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_the_program_with_shardy(name: str) -> None:
    program = PROGRAMS[name]
    artifact, _ = _written(name)
    assert "sdy" not in artifact.dialects
    inputs = [program.inputs()]
    before, after = (vt.run_parallel(each, inputs, partitions=program.devices) for each in (program.text, artifact))
    for one, other in zip(before[0], after[0], strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.mark.parametrize("name", [name for name in PROGRAMS if "manual" not in name and "inlined" not in name])
def test_xla_reads_the_same_shardings_back(name: str) -> None:
    """The pass is the first one of XLA's import; it leaves constraints as calls with the attribute of Shardy."""
    provider = get_provider()
    artifact, _ = _written(name)
    read = provider.deserialize(provider.new_context(), bytes(artifact))
    provider.run_passes(read.operation, "xla-sdy-round-trip-import-shardy-attrs", verify=True)
    expected = provider.text(provider.parse(provider.new_context(), PROGRAMS[name].text))
    found = provider.text(read)
    signature = re.compile(r"func\.func @main.*")
    assert signature.findall(found) == signature.findall(expected)
    meshes = re.compile(r"sdy\.mesh .*")
    assert sorted(meshes.findall(found)) == sorted(meshes.findall(expected))
    told = re.findall(r"sdy\.sharding_constraint %\w+ (<.*>) :", expected)
    assert re.findall(r"@Sharding\(%\w+\) \{sdy\.sharding = #sdy\.sharding_per_value<\[(.*)\]>\}", found) == told


@pytest.mark.long
@pytest.mark.parametrize(("release", "target"), [("jaxlib==0.4.35", "1.7.8"), ("jaxlib==0.5.3", "1.10.0")])
def test_old_releases_compile_and_run_it(release: str, target: str) -> None:
    names = [name for name in PROGRAMS if name not in SINCE_1_8_5 or target != "1.7.8"]
    shardings: dict[str, Any] = {}
    for devices in (2, 4, 8):
        chosen = [name for name in names if PROGRAMS[name].devices == devices]
        found = _run_on(release, devices, {name: _written(name, target)[0] for name in chosen})
        shardings |= {name: found[f"{name}/shardings"].tolist() for name in chosen if f"{name}/shardings" in found}
        for name in chosen:
            inputs = PROGRAMS[name].inputs()
            (expected,) = vt.run_parallel(PROGRAMS[name].text, [inputs], partitions=devices)
            assert f"{name}/error" not in found, found[f"{name}/error"]
            for number, one in enumerate(expected):
                np.testing.assert_array_equal(found[f"{name}/{number}"], np.asarray(one), name, strict=True)
    # Values are split as the program says.
    argument, _, first, _ = shardings["two axes"]
    assert argument == "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"
    assert first == "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"


def _run_on(release: str, devices: int, artifacts: dict[str, vt.Artifact]) -> dict[str, Any]:
    given = {name: (artifact, PROGRAMS[name].inputs()) for name, artifact in artifacts.items()}
    return run_sharded_by_release(release, devices, given)


def test_the_form() -> None:
    artifact, notes = _written("manual in another")
    text = str(vt.deserialize(artifact))
    assert 'xla.sdy.meshes = "{m = #sdy.mesh<[\\22a\\22=2, \\22b\\22=2]>}"' in text
    # What releases up to 0.5.3 read from the call, and later ones from the custom calls around it.
    for call in ("call @xla.sdy.manual_computation_body_0", "custom_call @xla.sdy.GlobalToLocalShape"):
        assert re.search(rf'{call}\(%\w+\) \{{.*xla\.sdy\.manual_axes = "#sdy<manual_axes', text)
    assert text.count("func.func") == 3
    constraint, manual = "sdy.sharding_constraint", "sdy.manual_computation"
    assert [each.op for each in notes] == ["sdy.mesh", constraint, manual, manual]


def test_names_of_functions_are_not_taken_twice() -> None:
    text = PROGRAMS["manual, 2"].text + f"func.func @xla.sdy.manual_computation_body(%a: {WHOLE}) {{ return }}"
    artifact, _ = expanded(text, FEATURE, "1.8.5")
    assert "call @xla.sdy.manual_computation_body_0(" in str(vt.deserialize(artifact))


def test_aliases_attributes_and_locations_are_carried() -> None:
    program = PROGRAMS["manual, 2"].text.replace(f"%a: {WHOLE}", f"%a: {WHOLE} {{tf.aliasing_output = 0 : i32}}")
    program = program.replace(
        "  return %3", f'  %4 = sdy.sharding_constraint %3 <@m, [{{}}, {{}}]> {{my.mark = 1 : i64, '
        f'mhlo.frontend_attributes = {{mine = "2"}}}} : {WHOLE} loc("here.py":3:4)\n  return %4'
    )  # fmt: skip
    artifact, notes = expanded(program, FEATURE, "1.8.5")
    text = str(vt.deserialize(artifact))
    assert "tf.aliasing_output = 0" in text
    assert re.search(r'@Sharding\(.*mine = "2", xla\.sdy\.sharding = .*my\.mark = 1', text)
    (constraint,) = [each for each in notes if each.op == "sdy.sharding_constraint"]
    assert str(constraint.location) == "here.py:3:4"


@pytest.mark.parametrize(("target", "is_kept"), [("1.10.9", True), ("1.10.4", False), ("1.7.8", False)])
def test_rules_are_kept_for_releases_that_read_them(target: str, is_kept: bool) -> None:
    """XLA of jaxlib 0.4.35 to 0.6.0 rejects rules of the program on custom calls, or aborts on them."""
    rule = "#sdy.op_sharding_rule<([i, j])->([i, k]) {i=8, j=8, k=8} need_replication={j, k}, custom>"
    call = f"%4 = stablehlo.custom_call @f(%3) {{sdy.sharding_rule = {rule}}} : ({WHOLE}) -> {WHOLE}\n  return %4"
    program = PROGRAMS["two axes"].text.replace("return %3", call)
    artifact, notes = expanded(program, FEATURE, target)
    assert (f'xla.sdy.sharding_rule = "{rule}"' in str(vt.deserialize(artifact))) == is_kept
    assert "sdy.sharding_rule =" not in str(vt.deserialize(artifact)).replace("xla.sdy", "")
    (note,) = [each for each in notes if "sdy.sharding_rule of stablehlo.custom_call was" in each.message]
    assert ("was removed: XLA does not read it before StableHLO 1.10.9" in note.message) != is_kept


def test_what_has_no_such_form_is_refused_by_name() -> None:
    group = mesh("m", [2, 2]) + annotated('[{"a"}, {}]', "[{}, {}]", "[{}, {}]")
    reasons = {
        f"%9 = sdy.reshard %0 <@m, [{{}}, {{}}]> : {WHOLE}": "sdy.reshard has no form that XLA reads before",
        f"%9 = sdy.propagation_barrier %0 allowed_direction=NONE : {WHOLE}": "sdy.propagation_barrier has no form",
        f"sdy.sharding_group %0 group_id=0 : {WHOLE}": "sdy.sharding_group has no form that XLA reads before "
        "StableHLO 1.8.5",
        f'%9 = sdy.sharding_constraint %0 <@m, [{{}}, {{}}], unreduced={{"a"}}> : {WHOLE}': "unreduced axes",
    }
    for op, reason in reasons.items():
        program = group.replace("  return", f"  {op}\n  return")
        with pytest.raises(vt.DowngradeError) as refused:
            vt.serialize(program, "1.7.8", expand=True)
        assert reason in str(refused.value)
        assert "it cannot be expanded" in str(refused.value)
    other = group + f"func.func @other(%a: {WHOLE} {{sdy.sharding = #sdy.sharding<@m, [{{}}, {{}}]>}}) {{ return }}"
    with pytest.raises(vt.DowngradeError, match=r"func\.func @other has no such form: only shardings of @main"):
        vt.serialize(other, "1.8.5", expand=True)
    with pytest.raises(vt.DowngradeError, match=r"aborts on a sdy\.manual_computation in another one"):
        vt.serialize(PROGRAMS["manual in another"].text, "1.7.8", expand=True)


def test_without_permission_the_remedy_names_the_flag() -> None:
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(PROGRAMS["two axes"].text, "1.8.5")
    assert all("rewrite it with --expand" in (each.remedy or "") for each in refused.value.findings)


def test_nothing_changes_where_shardy_may_remain_or_is_for_one_device() -> None:
    text = PROGRAMS["two axes"].text
    assert bytes(vt.serialize(text, "1.11.0", expand=True)) == bytes(vt.serialize(text, "1.11.0"))
    single = mesh("m", [1, 1]) + annotated('[{"a"}, {}]', "[{}, {}]", '[{}, {"b"}]')
    assert bytes(vt.serialize(single, "1.7.8", expand=True)) == bytes(vt.serialize(single, "1.7.8"))


@pytest.mark.parametrize("options", [{"expand": True}, {"allow_relaxed": [FEATURE]}])
def test_what_is_for_one_device_is_dropped_from_artifacts_too(options: dict[str, Any]) -> None:
    single = mesh("m", [1, 1]) + annotated('[{"a"}, {}]', "[{}, {}]", '[{}, {"b"}]')
    newest = vt.serialize(single, allow_other_dialects=True)
    assert "sdy" in newest.dialects
    artifact = vt.retarget(newest, "1.0.0", **options)
    assert str(vt.deserialize(artifact)) == str(vt.deserialize(vt.serialize(single, "1.0.0")))


def test_an_artifact_with_shardy_is_retargeted() -> None:
    newest = vt.serialize(PROGRAMS["manual, 4"].text)
    artifact = vt.retarget(newest, "1.8.5", expand=True)
    assert str(vt.deserialize(artifact)) == str(vt.deserialize(_written("manual, 4")[0]))
