"""Shardings of Shardy dropped: the program for one device has the results of the one for several."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.expansions import ENGINES, Engine, expanded
from support.sharded_programs import PROGRAMS, WHOLE, annotated, mesh

import vhlo_tools as vt

FEATURE = "mixed_dialects"
PLAIN = [name for name in PROGRAMS if "manual" not in name]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PLAIN)
def test_results_are_those_of_several_devices(name: str) -> None:
    program = PROGRAMS[name]
    artifact, notes = expanded(program.text, FEATURE, "0.9.0", relaxed=True)
    assert "sdy" not in artifact.dialects
    assert all("(relaxed: gives up how the program is spread over several devices" in each.message for each in notes)
    inputs = program.inputs()
    (expected,) = vt.run_parallel(program.text, [inputs], partitions=program.devices)
    for engine in ENGINES:
        for one, other in zip(expected, vt.run(artifact, inputs, engine=engine), strict=True):
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), engine


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("axes", ["of size 1", "without splits"])
def test_the_body_of_a_manual_computation_on_whole_values(axes: str, engine: Engine) -> None:
    dimensions = '[{"a"}, {}]' if axes == "of size 1" else "[{}, {}]"
    sizes = [1, 4] if axes == "of size 1" else [4, 1]
    program = (
        mesh("m", sizes)
        + f"""func.func @main(%a: {WHOLE}) -> {WHOLE} {{
      %0 = sdy.manual_computation(%a) in_shardings=[<@m, {dimensions}>] out_shardings=[<@m, {dimensions}>]
          manual_axes={{"a"}} (%p: {WHOLE}) {{
        %1 = stablehlo.add %p, %p : {WHOLE}
        sdy.return %1 : {WHOLE}
      }} : ({WHOLE}) -> {WHOLE}
      return %0 : {WHOLE}
    }}"""
    )
    artifact, _ = expanded(program, FEATURE, "1.0.0", relaxed=True)
    value = np.arange(64, dtype="f4").reshape(8, 8)
    (whole,) = vt.run_parallel(program, [[value]], partitions=4)[0]
    (found,) = vt.run(artifact, [value], engine=engine)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(whole))


@pytest.mark.parametrize("name", [name for name in PROGRAMS if "manual" in name])
def test_manual_computations_of_parts_are_refused(name: str) -> None:
    with pytest.raises(vt.DowngradeError, match=r"the body of sdy\.manual_computation runs once for each part"):
        vt.serialize(PROGRAMS[name].text, "1.0.0", allow_relaxed=[FEATURE])


def test_what_depends_on_the_device_is_refused() -> None:
    program = mesh("m", [2]) + annotated('[{"a"}, {}]', "[{}, {}]", "[{}, {}]")
    reasons = {
        "%9 = stablehlo.partition_id : tensor<ui32>": "stablehlo.partition_id is for several devices",
        f'%9 = sdy.sharding_constraint %0 <@m, [{{}}, {{}}], unreduced={{"a"}}> : {WHOLE}': "unreduced axes",
    }
    for op, reason in reasons.items():
        with pytest.raises(vt.DowngradeError, match=re.escape(reason)):
            vt.serialize(program.replace("  return", f"  {op}\n  return"), "1.0.0", allow_relaxed=[FEATURE])


def test_what_the_exact_expansion_leaves_is_dropped() -> None:
    """A barrier has no form for XLA before 1.11.0; propagation ends, and values remain."""
    barrier = f"  %9 = sdy.propagation_barrier %1 allowed_direction=NONE : {WHOLE}\n  return %3, %9"
    program = (mesh("m", [2]) + annotated('[{"a"}, {}]', "[{}, {}]", "[{}, {}]")).replace("  return %3, %1", barrier)
    artifact = vt.serialize(program, "1.8.5", expand=True, allow_relaxed=[FEATURE])
    text = str(vt.deserialize(artifact))
    assert "custom_call" not in text
    assert "sdy" not in text


def test_attributes_of_others_are_kept() -> None:
    program = mesh("m", [2]) + annotated('[{"a"}, {}]', "[{}, {}]", "[{}, {}]")
    program = program.replace("{sdy.sharding", '{jax.buffer_donor = true, mhlo.memory_kind = "device", sdy.sharding', 1)
    artifact, _ = expanded(program, FEATURE, "1.0.0", relaxed=True)
    assert f'%arg0: {WHOLE} {{jax.buffer_donor = true, mhlo.memory_kind = "device"}}' in str(vt.deserialize(artifact))
