"""Releases that lose what nests deep: what is said of each depth, and what jaxlib 0.8.3 does."""

from __future__ import annotations

from typing import Any

import pytest
from support.release_environments import read_by

import vhlo_tools as vt

DEPTHS = range(14)


def composite(depth: int) -> str:
    lists = f"{'[' * depth}1 : i64{']' * depth}"
    return f"""func.func private @inner(%a: tensor<2xf32>) -> tensor<2xf32> {{ return %a : tensor<2xf32> }}
        func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {{
          %0 = stablehlo.composite "x.y" %a {{composite_attributes = {{t = {lists}}}, decomposition = @inner}}
            : (tensor<2xf32>) -> tensor<2xf32>
          return %0 : tensor<2xf32> }}"""


def tuples(depth: int) -> str:
    held = f"{'tuple<' * depth}tensor<2xf32>{'>' * depth}"
    return f"func.func @main(%a: {held}) -> {held} {{ return %a : {held} }}"


def of_module(leaf: str, depth: int) -> str:
    return f"module attributes {{t.x = {'[' * depth}{leaf}{']' * depth}}} {{ func.func @main() {{ return }} }}"


#: Depths at which jaxlib 0.8.3 refuses the program, or does not end.
UNREAD = {
    "composite": (composite, {*range(4, 14)}),
    "tuples": (tuples, {*range(3, 14)}),
    "1": (None, {5, 12}),
    "tensor<2xf32>": (None, {4, 5, 11, 12}),
    "sparse<[[0]], [1]> : tensor<2xi32>": (None, {4, 5, 11, 12}),
    "!quant.uniform<i8:f32, 0.5>": (None, {4, 5, 11, 12}),
    'loc("f.py":1:2)': (None, set()),
}


def artifacts(name: str) -> list[vt.Artifact]:
    make = UNREAD[name][0] or (lambda depth: of_module(name, depth))
    return [vt.serialize(make(depth), "1.10.0", allow_other_dialects=True) for depth in DEPTHS]


@pytest.mark.parametrize("name", UNREAD)
def test_depths_that_are_not_read_are_named(name: str) -> None:
    made = artifacts(name)
    refused = set()
    for depth, artifact in enumerate(made):
        found = [each for each in vt.check(artifact, "jaxlib==0.8.3") if each.feature == "nested_entries"]
        refused |= {depth} if found else set()
        assert all(each.level == "error" and "jaxlib==0.8.3 does not read" in each.message for each in found)
        assert not [each for each in vt.check(artifact, "jaxlib==0.8.1,jaxlib==0.9.0") if each.level == "error"]
    assert refused == UNREAD[name][1]


def test_a_guard_refuses_it_and_writing_warns() -> None:
    artifact = vt.serialize(tuples(3), "jax==0.8.2")
    (warning,) = artifact.findings
    assert (warning.feature, warning.level) == ("nested_entries", "warning")
    with pytest.raises(vt.UnsupportedFeatureError, match="nests deeper than 5 levels"):
        vt.require(artifact, "jax==0.8.2")
    vt.require(artifact, "jax==0.9.0")


@pytest.mark.parametrize("engine", ["bytes", "mlir"])
def test_moving_it_warns(engine: Any) -> None:
    artifact = vt.serialize(tuples(3), "1.10.0")
    assert [each.feature for each in vt.retarget(artifact, "jax==0.8.2", engine=engine).findings] == ["nested_entries"]
    assert not vt.retarget(artifact, "jax==0.9.0", engine=engine).findings


def test_iree_3_10_loses_types_alone() -> None:
    """As measured: it reads a composite at every other depth, and tuples up to three."""

    def unread(name: str) -> set[int]:
        found = (vt.check(each, "iree-base-compiler==3.10.0") for each in artifacts(name))
        return {depth for depth, each in enumerate(found) if any(one.feature == "nested_entries" for one in each)}

    assert (unread("composite"), unread("tuples")) == ({5, 12}, {*range(4, 14)})


SHALLOW_FIRST = tuples(3).replace("@main(", "@main(%first: tensor<2xf32>, ")


def test_what_was_read_before_may_stand_at_any_depth() -> None:
    assert vt.serialize(tuples(3), "jaxlib==0.8.3").findings
    assert not vt.serialize(SHALLOW_FIRST, "jaxlib==0.8.3").findings


@pytest.mark.releases
@pytest.mark.parametrize("name", ["composite", "tuples", "1", 'loc("f.py":1:2)'])
def test_the_release_does_what_is_said(name: str) -> None:
    made = [*artifacts(name), vt.serialize(SHALLOW_FIRST, "jaxlib==0.8.3")]
    outcomes = read_by("jaxlib==0.8.3", map(bytes, made), text=False, timeout=10)
    assert {depth for depth, each in enumerate(outcomes) if "error" in each} == UNREAD[name][1]
