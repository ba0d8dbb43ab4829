"""Shardings of Shardy in the form of GSPMD: by releases that know nothing else, and by the newest."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.expansions import expanded
from support.release_runs import run_sharded_by_release
from support.sharded_programs import PROGRAMS, WHOLE, annotated, mesh

import vhlo_tools as vt
from vhlo_tools.aliasing import Array, subshape
from vhlo_tools.files import read_hlo_module, view

FEATURE = "mixed_dialects"
#: What GSPMD cannot say.
REFUSED = {
    "manual in another": "sdy.manual_computation in another one has no form in GSPMD",
    "groups": "sdy.sharding_group has no form in GSPMD",
}
NAMES = [name for name in PROGRAMS if name not in REFUSED]


def _written(name: str, target: str = "0.19.0") -> vt.Artifact:
    return expanded(PROGRAMS[name].text, FEATURE, target)[0]


@pytest.mark.parametrize("name", REFUSED)
def test_what_gspmd_cannot_say_is_refused(name: str) -> None:
    with pytest.raises(vt.DowngradeError, match=REFUSED[name]):
        _written(name)


def parts(sharding: str, rank: int, devices: int) -> list[tuple[int, ...]]:
    """Return for each device which part of a value it has: the number of parts of each dimension, and its place."""
    if sharding == "{replicated}":
        return [(1,) * rank + (0,) * rank] * devices
    found = re.fullmatch(
        r"\{devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))( last_tile_dim_replicate)?\}", sharding
    )
    assert found is not None, sharding
    tiles, source, order, listed = ([int(each) for each in (found[at] or "").split(",") if each] for at in range(1, 5))
    ids = np.array(listed) if listed else np.arange(devices).reshape(source).transpose(order or range(len(source)))
    places = np.argwhere(np.argsort(ids.reshape(-1))[:, None] == np.arange(devices))[:, 1]
    split = np.stack(np.unravel_index(places, tiles), 1)[:, :rank]
    return [(*tiles[:rank], *map(int, each)) for each in split]


@pytest.mark.long
@pytest.mark.parametrize(
    ("release", "target"),
    [
        ("jaxlib==0.4.13", "0.9.0"),
        ("jaxlib==0.4.26", "0.19.0"),
        ("jaxlib==0.4.31", "1.4.0"),
        ("jaxlib==0.6.2", "1.7.5"),
    ],
)
def test_releases_compile_and_run_it(release: str, target: str) -> None:
    for devices in (2, 4, 8):
        chosen = [name for name in NAMES if PROGRAMS[name].devices == devices]
        inputs = {name: PROGRAMS[name].inputs() for name in chosen}
        written = {name: (_written(name, target), inputs[name]) for name in chosen}
        found = run_sharded_by_release(release, devices, written, shardy=False)
        with_shardy = {name: (_written(name, "1.10.0"), inputs[name]) for name in chosen}
        wanted = run_sharded_by_release("jaxlib==0.5.3", devices, with_shardy)
        for name in chosen:
            assert f"{name}/error" not in found, (name, found[f"{name}/error"])
            for number in range(PROGRAMS[name].text.count("return %3, %1 :") + 1):
                np.testing.assert_array_equal(found[f"{name}/{number}"], wanted[f"{name}/{number}"], name, strict=True)
            # The argument and the result that have shardings, as far as the program does not leave them open.
            said = re.findall(r"sdy\.sharding = #sdy\.sharding<\S+ \[(.*?)\](?:, repl|>)", PROGRAMS[name].text)
            pairs = list(zip(found[f"{name}/shardings"], wanted[f"{name}/shardings"], strict=True))
            for at, held in zip((0, 2), said if "manual" not in name else [], strict=False):
                one, other = (parts(str(each), 2, devices) for each in pairs[at])
                assert "?" in held or one == other, name


@pytest.mark.releases
@pytest.mark.parametrize("name", ["two axes", "order of devices", "other meshes", "inlined mesh", "axes of one"])
def test_a_tpu_of_each_time_has_the_same_parts(name: str) -> None:
    """libtpu 0.0.3 has StableHLO 1.7.0, and no Shardy."""
    # The newest fails on parts that are smaller than a tile.
    count = f"mhlo.num_partitions = {PROGRAMS[name].devices} : i32"
    text = f"module attributes {{{count}}} {{\n{PROGRAMS[name].text.replace('8x8', '1024x1024')}\n}}"
    before = vt.compile_for(vt.serialize(text, "1.11.0"), "libtpu==0.0.52@v5e:2x2")
    after = vt.compile_for(expanded(text, FEATURE, "1.7.0")[0], "libtpu==0.0.3@v5e:2x2")
    one, other = (read_hlo_module(view(each.hlo or b"")).signature for each in (before, after))
    # What the program says: of its first argument and its first result.
    assert one is not None
    assert other is not None
    assert one.parameters[0] == other.parameters[0]
    assert subshape(one.result, (0,)) == subshape(other.result, (0,))
    assert isinstance(one.parameters[0], Array)
    assert one.parameters[0].sizes != (1024, 1024)


def test_the_form() -> None:
    text = str(vt.deserialize(_written("two axes")))
    assert "mhlo.num_partitions = 4" in text
    assert '%arg0: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}"}' in text
    assert '@Sharding(%0) {mhlo.sharding = "{devices=[2,2]0,1,2,3}"}' in text
    text = str(vt.deserialize(_written("manual, 4")))
    assert "xla.sdy" not in text
    assert re.search(r'@SPMDFullToShardShape\(%0\) \{mhlo.sharding = "\{manual\}"\} : .*-> tensor<2x8xf32>', text)
    assert re.search(r'@SPMDShardToFullShape\(%3\) \{mhlo.sharding = "\{devices=\[4,1\]0,1,2,3\}"\}', text)
    text = str(vt.deserialize(_written("order of devices")))
    assert "{devices=[2,1,2]3,1,0,2 last_tile_dim_replicate}" in text


def test_shardings_of_ops_of_several_results_and_of_one_device() -> None:
    both = f"{WHOLE}, {WHOLE}"
    held = '#sdy.sharding_per_value<[<@m, [{"a"}, {}]>, <@m, [{}, {}]>]>'
    program = (
        mesh("m", [2])
        + f"""func.func @main(%a: {WHOLE}) -> ({WHOLE}, {WHOLE}) {{
      %0:2 = stablehlo.optimization_barrier {{sdy.sharding = {held}}} %a, %a : {WHOLE}, {WHOLE}
      return %0#0, %0#1 : {WHOLE}, {WHOLE}
    }}"""
    )
    program = program.replace(
        f"stablehlo.optimization_barrier {{sdy.sharding = {held}}} %a, %a : {WHOLE}, {WHOLE}",
        f'"stablehlo.optimization_barrier"(%a, %a) {{sdy.sharding = {held}}} : ({both}) -> ({both})',
    )
    assert 'mhlo.sharding = "{{devices=[2,1]0,1}, {replicated}}"' in str(
        vt.deserialize(expanded(program, FEATURE, "1.0.0")[0])
    )


def test_what_is_written_in_another_way_is_refused() -> None:
    text = mesh("m", [2]).replace('"a"', '"a }"') + annotated('[{"a }"}, {}]', "[{}, {}]", "[{}, {}]")
    with pytest.raises(vt.DowngradeError, match="of another form than GSPMD's writer knows"):
        expanded(text, FEATURE, "1.0.0")


CALLED = """func.func private @inner(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = sdy.sharding_constraint %x <@m, [{}, {"b"}]> : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func private @outer(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = func.call @inner(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"a"}, {}]>] out_shardings=[<@m, [{"a"}, {}]>]
      manual_axes={"a"} (%p: tensor<4x8xf32>) {
    %1 = func.call @outer(%p) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    sdy.return %1 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}"""


def test_shardings_in_what_a_manual_computation_calls_are_refused() -> None:
    """XLA of jaxlib 0.4.31 ends the process on a sharding that does not say which axes are manual around it."""
    with pytest.raises(vt.DowngradeError, match="@inner, which is called in a sdy.manual_computation, has shardings"):
        expanded(mesh("m", [2, 2]) + CALLED, FEATURE, "1.4.0")
    plain = CALLED.replace('sdy.sharding_constraint %x <@m, [{}, {"b"}]>', "stablehlo.negate %x")
    text = str(vt.deserialize(expanded(mesh("m", [2, 2]) + plain, FEATURE, "1.4.0")[0]))
    assert "last_tile_dims={manual, replicated}" in text


def test_one_device_that_has_a_value_alone() -> None:
    constraint = f"%0 = sdy.sharding_constraint %a <@one, []> : {WHOLE}"
    main = f"func.func @main(%a: {WHOLE}) -> {WHOLE} {{\n{constraint}\nreturn %0 : {WHOLE}\n}}"
    for device in (0, 1):
        program = f"{mesh('m', [2])}sdy.mesh @one = <[], device_ids=[{device}]>\n{main}"
        text = str(vt.deserialize(expanded(program, FEATURE, "1.4.0")[0]))
        assert f'mhlo.sharding = "{{maximal device={device}}}"' in text
