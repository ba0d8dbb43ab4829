"""Operations that are started and awaited as the operations themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.expansions import check_same, check_same_on_devices, expanded, version_before
from support.grouped_programs import ADD, CHANNEL, GRIDS, dense, drawn, tensor

import vhlo_tools as vt

pytestmark = pytest.mark.needs("async")

FEATURE = "async"


def _program(op: str, takes: list[str], gives: str, *, held: str = "", done: str = "") -> str:
    """Return a program that starts an op, whose text has ``OPERANDS``, computes something else, and awaits the op."""
    arguments, inner = (
        ", ".join(f"%{name}{number}: {type_}" for number, type_ in enumerate(takes)) for name in ("a", "x")
    )
    names, inside = (", ".join(f"%{name}{number}" for number in range(len(takes))) for name in ("a", "x"))
    types = ", ".join(takes)
    return f"""func.func @main({arguments}) -> ({gives}, {takes[0]}) {{
      %f = "stablehlo.async_start"({names}) ({{ ^bb0({inner}):
        %g = {op.replace("OPERANDS", inside)} : ({types}) -> {gives}
        stablehlo.return %g : {gives} }}) {{{held}}} : ({types}) -> !stablehlo.future<{gives}>
      %n = stablehlo.negate %a0 : {takes[0]}
      %0 = "stablehlo.async_done"(%f) {{{done}}} : (!stablehlo.future<{gives}>) -> {gives}
      return %0, %n : {gives}, {takes[0]} }}"""


A = tensor((4, 8), "f32")


def _collectives(count: int, channel: str) -> dict[str, tuple[str, list[str], str]]:
    """Return the collectives that may be started, in one group."""
    groups = f"replica_groups = {dense([list(range(count))[::-1]])}{channel}"
    pairs = dense([[each, (each + 1) % count] for each in range(count)])
    split = f"split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = {count} : i64"
    return {
        "all_gather": (
            f'"stablehlo.all_gather"(OPERANDS) {{all_gather_dim = 0 : i64, {groups}}}',
            [A],
            tensor((4 * count, 8), "f32"),
        ),
        "all_reduce": (f'"stablehlo.all_reduce"(OPERANDS) {ADD} {{{groups}}}', [A], A),
        "all_to_all": (
            f'"stablehlo.all_to_all"(OPERANDS) {{{split}, {groups}}}',
            [A],
            tensor((4 * count, 8 // count), "f32"),
        ),
        "collective_permute": (
            f'"stablehlo.collective_permute"(OPERANDS) {{source_target_pairs = {pairs}{channel}}}',
            [A],
            A,
        ),
        "reduce_scatter": (
            f'"stablehlo.reduce_scatter"(OPERANDS) {ADD} {{scatter_dimension = 1 : i64, {groups}}}',
            [A],
            tensor((4, 8 // count), "f32"),
        ),
        "collective_broadcast": (f'"stablehlo.collective_broadcast"(OPERANDS) {{{groups}}}', [A], A),
    }


@pytest.mark.sample(2)
@pytest.mark.parametrize("op", _collectives(2, ""))
@pytest.mark.parametrize(("replicas", "partitions"), [each for each in GRIDS if 1 in each], ids=str)
def test_collectives(op: str, replicas: int, partitions: int) -> None:
    program = _program(*_collectives(max(replicas, partitions), f", {CHANNEL}" if partitions > 1 else "")[op])
    if partitions > 1 and op in ("all_gather", "all_reduce", "reduce_scatter"):
        program = program.replace(CHANNEL, f"{CHANNEL}, use_global_device_ids")
    artifact, notes = expanded(program, FEATURE)
    assert [each.op for each in notes] == ["stablehlo.async_start", "stablehlo.async_done"]
    rng = np.random.default_rng(replicas)
    inputs = [[rng.normal(size=(4, 8)).astype("f4")] for _ in range(replicas * partitions)]
    for target in [artifact, vt.serialize(program, "0.9.0", expand=True)]:
        engines: Any = ["reference"] if target is artifact else ["xla"]
        check_same_on_devices(
            program,
            target,
            inputs,
            engines=engines,
            expected_by="reference",
            ulps=4 if "reduce" in op else 0,
            replicas=replicas,
            partitions=partitions,
        )


_SCALAR = "tensor<i32>"
SLICES = {
    "slice": (
        '"stablehlo.slice"(OPERANDS) {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 3, 8>, '
        "strides = array<i64: 1, 2>}",
        [A],
        "tensor<2x4xf32>",
    ),
    "dynamic_slice": (
        '"stablehlo.dynamic_slice"(OPERANDS) {slice_sizes = array<i64: 2, 3>}',
        [A, _SCALAR, _SCALAR],
        "tensor<2x3xf32>",
    ),
    "dynamic_update_slice": ('"stablehlo.dynamic_update_slice"(OPERANDS)', [A, "tensor<2x2xf32>", _SCALAR, _SCALAR], A),
}


@pytest.mark.parametrize("op", SLICES)
def test_slices(op: str) -> None:
    text, takes, gives = SLICES[op]
    program = _program(text, takes, gives)
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    rng = np.random.default_rng(1)
    given = {A: (4, 8), "tensor<2x2xf32>": (2, 2)}
    inputs = [drawn(rng, given[type_], "f32") if type_ in given else np.array(2, "i4") for type_ in takes]
    check_same(program, artifact, [inputs], engines=["reference"])
    synchronous = vt.run(artifact, inputs, engine="xla")
    for one, other in zip(synchronous, vt.run(program, inputs, engine="reference"), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_a_value_that_is_awaited_twice_or_never_or_in_a_branch() -> None:
    op, _, gives = SLICES["slice"]
    inner = op.replace("OPERANDS", "%x")
    body = f"^bb0(%x: {A}): %g = {inner} : ({A}) -> {gives} stablehlo.return %g : {gives}"
    started = f'"stablehlo.async_start"(%a) ({{ {body} }})'
    future = f"!stablehlo.future<{gives}>"
    program = f"""func.func @main(%a: {A}, %p: tensor<i1>) -> ({gives}, {gives}) {{
      %f = {started} : ({A}) -> {future}
      %unused = {started} : ({A}) -> {future}
      %0 = "stablehlo.async_done"(%f) : ({future}) -> {gives}
      %1 = "stablehlo.if"(%p) ({{ %2 = "stablehlo.async_done"(%f) : ({future}) -> {gives}
        stablehlo.return %2 : {gives} }}, {{ %3 = stablehlo.negate %0 : {gives} stablehlo.return %3 : {gives} }})
        : (tensor<i1>) -> {gives}
      return %0, %1 : {gives}, {gives} }}"""
    artifact, notes = expanded(program, FEATURE)
    assert [each.op for each in notes].count("stablehlo.async_done") == 2
    text = str(vt.deserialize(artifact))
    assert "async" not in text
    assert text.count("stablehlo.slice") == 1
    value = np.arange(32, dtype="f4").reshape(4, 8)
    for chosen in (False, True):
        half = value[1:3, ::2]
        for engine in ("reference", "xla"):
            found = vt.run(artifact, [value, np.array(chosen)], engine=engine)
            np.testing.assert_array_equal(found, [half, half if chosen else -half])


def test_attributes_and_aliases_are_carried() -> None:
    op, takes, gives = _collectives(2, "")["all_reduce"]
    op = op.replace("{replica_groups", '{my.inner = "inner", my.both = "inner", replica_groups')
    program = _program(op, takes, gives, held='my.outer = "outer", my.both = "outer"', done='my.done = "done"')
    program = program.replace("%a0: tensor<4x8xf32>)", "%a0: tensor<4x8xf32> {tf.aliasing_output = 0 : i32})", 1)
    artifact, (start, done) = expanded(program, FEATURE)
    text = str(vt.deserialize(artifact))
    for each in ('my.inner = "inner"', 'my.both = "inner"', 'my.outer = "outer"', "{tf.aliasing_output = 0 : i32}"):
        assert text.count(each) == 1
    assert "without its my.both," in start.message
    assert "without its my.done," in done.message


# Refusals

_FUTURE = "!stablehlo.future<tensor<f32>>"
_START = """%f = "stablehlo.async_start"(%a) ({ ^bb0(%x: tensor<f32>):
  %g = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}
    : (tensor<f32>) -> tensor<f32>
  stablehlo.return %g : tensor<f32> }) : (tensor<f32>) -> !stablehlo.future<tensor<f32>>"""
_DONE = '%0 = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<f32>>) -> tensor<f32>'
_CALL = f"stablehlo.custom_call @wait(%f) : ({_FUTURE})"


@pytest.mark.needs("custom_call_futures")
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (
            f"func.func @main(%a: tensor<f32>) -> {_FUTURE} {{ {_START} return %f : {_FUTURE} }}",
            "its future is used by func.return, and not only awaited by stablehlo.async_done",
        ),
        (
            f"func.func @main(%f: {_FUTURE}) -> tensor<f32> {{ {_DONE} return %0 : tensor<f32> }}",
            "its future is an argument of a function or a block",
        ),
        (
            f"func.func private @other({_FUTURE}) -> tensor<f32> "
            f"func.func @main(%a: tensor<f32>) -> tensor<f32> {{ {_START} %1 = func.call @other(%f) : ({_FUTURE}) -> "
            "tensor<f32> return %1 : tensor<f32> }",
            "its future is used by func.call, and not only awaited by stablehlo.async_done",
        ),
        (
            f"func.func @main(%a: tensor<f32>) -> tensor<f32> {{ {_START} %0 = {_CALL} -> tensor<f32> "
            "return %0 : tensor<f32> }",
            "its future is used by stablehlo.custom_call @wait, and not only awaited by stablehlo.async_done",
        ),
        (
            f"func.func @main(%a: tensor<f32>) -> tensor<f32> {{ %f = stablehlo.custom_call @begin(%a) : (tensor<f32>) "
            f"-> {_FUTURE} {_DONE} return %0 : tensor<f32> }}",
            "its future is the result of stablehlo.custom_call @begin, not of stablehlo.async_start",
        ),
    ],
    ids=["returned", "taken", "passed on", "given to a custom call", "made by a custom call"],
)
def test_futures_that_others_make_or_get_are_refused(program: str, reason: str) -> None:
    with pytest.raises(vt.DowngradeError) as caught:
        vt.serialize(program, version_before(FEATURE), expand=True)
    assert f"cannot be expanded: {reason}" in str(caught.value)


@pytest.mark.needs("custom_call_futures")
def test_futures_on_custom_calls_have_no_expansion() -> None:
    """What a custom call makes of a future, only its target knows."""
    program = f"""func.func @main(%a: tensor<f32>) -> tensor<f32> {{ {_START}
      %0 = {_CALL} -> tensor<f32> return %0 : tensor<f32> }}"""
    with pytest.raises(vt.DowngradeError, match=r"needs StableHLO 1.17.0: future types on custom_call") as caught:
        vt.serialize(program, "1.16.0", expand=True)
    assert "it cannot be expanded: the target of the call starts or awaits something of its own" in str(caught.value)


def test_nothing_else_changes() -> None:
    program = _program(*_collectives(2, "")["all_gather"])
    assert bytes(vt.serialize(program, "1.15.0", expand=True)) == bytes(vt.serialize(program, "1.15.0"))
