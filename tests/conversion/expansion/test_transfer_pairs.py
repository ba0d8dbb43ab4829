"""Transfers between devices as permutations, and pairs that mean nothing."""

from __future__ import annotations

import numpy as np
import pytest
from support.expansions import check_same_on_devices, expanded, version_before
from support.grouped_programs import ELEMENTS, GRIDS, dense, drawn, tensor

import vhlo_tools as vt

FEATURE = "send_recv_source_target_pairs"


def _channel(number: int = 1, kind: int = 1) -> str:
    return f"channel_handle = #stablehlo.channel_handle<handle = {number}, type = {kind}>"


def _program(pairs: list[list[int]], types: list[str], *, channel: int = 1, sent: str = "") -> str:
    names = ", ".join(f"%a{number}" for number in range(len(types)))
    arguments = ", ".join(f"%a{number}: {type_}" for number, type_ in enumerate(types))
    given, results = ", ".join(types), ", ".join(f"%r#{number}" for number in range(len(types)))
    held = f"{_channel(channel)}, is_host_transfer = false, source_target_pairs = {dense(pairs)}"
    return f"""func.func @main({arguments}) -> ({given}, !stablehlo.token) {{
      %t = stablehlo.create_token : !stablehlo.token
      {sent}
      %s = "stablehlo.send"({names}, %t) {{{held}}} : ({given}, !stablehlo.token) -> !stablehlo.token
      %r:{len(types) + 1} = "stablehlo.recv"(%s) {{{held}}}
        : (!stablehlo.token) -> ({given}, !stablehlo.token)
      return {results}, %r#{len(types)} : {given}, !stablehlo.token }}"""


def _without_token(program: str, count: int) -> str:
    return (
        program.replace(", !stablehlo.token) {\n", ") {\n", 1)
        .replace(f", %r#{count} :", " :")
        .replace(", !stablehlo.token }", " }")
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize(("replicas", "partitions"), GRIDS, ids=str)
@pytest.mark.parametrize("channel", [0, 1])
def test_transfers_are_permutations(replicas: int, partitions: int, channel: int) -> None:
    count = partitions if channel else replicas
    ring = [[each, (each + 1) % count] for each in range(count)]
    types = ["tensor<3xf32>", "tensor<i8>"]
    rng = np.random.default_rng(count)
    inputs = [[drawn(rng, (3,), "f32"), drawn(rng, (), "i8")] for _ in range(replicas * partitions)]
    for pairs in (ring, ring[:1], ring[::2]):
        program = _without_token(_program(pairs, types, channel=channel), 2)
        artifact, notes = expanded(program, FEATURE)
        assert [each.op for each in notes] == ["stablehlo.send", "stablehlo.recv"]
        text = str(vt.deserialize(artifact))
        assert text.count("stablehlo.collective_permute") == 2
        assert "token" not in text.replace("stablehlo.create_token", "").replace("!stablehlo.token", "")
        check_same_on_devices(
            program, artifact, inputs, expected_by="reference", replicas=replicas, partitions=partitions
        )


@pytest.mark.sample(4)
@pytest.mark.parametrize("element", ELEMENTS)
def test_every_type_of_elements(element: str) -> None:
    shapes: list[tuple[int, ...]] = [(), (0, 2), (1, 3)]
    program = _without_token(_program([[0, 1], [1, 0]], [tensor(each, element) for each in shapes]), 3)
    artifact, _ = expanded(program, FEATURE, "0.9.0")
    rng = np.random.default_rng(5)
    inputs = [[drawn(rng, shape, element) for shape in shapes] for _ in range(2)]
    check_same_on_devices(program, artifact, inputs, expected_by="reference", replicas=1, partitions=2)


def test_tokens_are_passed_on() -> None:
    artifact, _ = expanded(_program([[0, 1]], ["tensor<2x!quant.uniform<i8:f32, 5.000000e-01:3>>"]), FEATURE, "0.9.0")
    text = str(vt.deserialize(artifact))
    assert "%0 = stablehlo.create_token" in text
    assert "return %1, %0 : tensor<2x!quant.uniform<i8:f32, 5.000000e-01:3>>, !stablehlo.token" in text


def test_attributes_of_the_send_are_carried() -> None:
    program = _program([[0, 1]], ["tensor<2xf32>"]).replace("is_host_transfer", 'my.mark = "kept", is_host_transfer', 1)
    artifact, (sent, _) = expanded(program, FEATURE)
    assert str(vt.deserialize(artifact)).count('{my.mark = "kept"}') == 1
    assert "without" not in sent.message


def test_several_channels_in_a_loop() -> None:
    first, second = (f"{_channel(each)}, is_host_transfer = false" for each in (1, 2))
    pairs, back = "source_target_pairs = dense<[[0, 1], [1, 2]]>", "source_target_pairs = dense<[[2, 0], [1, 1]]>"
    program = f"""func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {{
      %zero = stablehlo.constant dense<0> : tensor<i32> %one = stablehlo.constant dense<1> : tensor<i32>
      %n = stablehlo.constant dense<3> : tensor<i32> %t = stablehlo.create_token : !stablehlo.token
      %r:2 = stablehlo.while(%i = %zero, %v = %a) : tensor<i32>, tensor<2xf32>
      cond {{ %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1> }}
      do {{ %j = stablehlo.add %i, %one : tensor<i32>
        %s = "stablehlo.send"(%v, %t) {{{first}, {pairs} : tensor<2x2xi64>}}
          : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
        %u = "stablehlo.send"(%a, %s) {{{second}, {back} : tensor<2x2xi64>}}
          : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
        %p:2 = "stablehlo.recv"(%u) {{{second}, {back} : tensor<2x2xi64>}}
          : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
        %q:2 = "stablehlo.recv"(%p#1) {{{first}, {pairs} : tensor<2x2xi64>}}
          : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
        %x = stablehlo.add %p#0, %q#0 : tensor<2xf32> %y = stablehlo.add %x, %a : tensor<2xf32>
        stablehlo.return %j, %y : tensor<i32>, tensor<2xf32> }}
      return %r#1 : tensor<2xf32> }}"""
    artifact, notes = expanded(program, FEATURE)
    assert len(notes) == 4
    inputs = [[np.array([each, 10 * each], "f4")] for each in (1, 2, 4)]
    check_same_on_devices(program, artifact, inputs, expected_by="reference", replicas=1, partitions=3)


# Pairs that mean nothing

_ARGUMENT = "%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}"
_TRANSFERS = {
    "send": '%0 = "stablehlo.send"(%a, %t) {HELD} : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token',
    "recv": '%1:2 = "stablehlo.recv"(%t) {HELD} : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)',
}


@pytest.mark.parametrize(
    ("is_host", "pairs"),
    [
        (True, "dense<[[0, 1]]> : tensor<1x2xi64>"),
        (True, "dense<> : tensor<0x2xi64>"),
        (False, "dense<> : tensor<0x2xi64>"),
    ],
)
@pytest.mark.parametrize("op", _TRANSFERS)
def test_pairs_that_mean_nothing_are_left_out(op: str, is_host: bool, pairs: str) -> None:
    kind = {"send": 2, "recv": 3}[op] if is_host else 1
    held = f'{_channel(1, kind)}, is_host_transfer = {str(is_host).lower()}, my.mark = "kept"'
    token = {"send": "%0", "recv": "%1#1"}[op]

    def program(told: str) -> str:
        return f"""func.func @main({_ARGUMENT}, %t: !stablehlo.token) -> (tensor<2xf32>, !stablehlo.token) {{
          {_TRANSFERS[op].replace("HELD", f"{held}{told}")} return %a, {token} : tensor<2xf32>, !stablehlo.token }}"""

    artifact, (note,) = expanded(program(f", source_target_pairs = {pairs}"), FEATURE, "0.9.0")
    assert str(vt.deserialize(artifact)) == str(vt.deserialize(vt.serialize(program(""), "0.9.0")))
    assert ", without its source_target_pairs, because" in note.message


# Refusals

_PAIRS = [[0, 1], [1, 0]]
_OTHER = f"{_channel()}, is_host_transfer = false, source_target_pairs = {dense(_PAIRS)}"
_TWICE = f'%s2 = "stablehlo.send"(%a0, %t) {{{_OTHER}}} : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token'


def _refused(program: str) -> str:
    with pytest.raises(vt.DowngradeError) as caught:
        vt.serialize(program, version_before(FEATURE), expand=True)
    return str(caught.value)


_PER_AXIS = "tensor<2x!quant.uniform<i8:f32:0, {5.000000e-01:3,2.500000e-01}>>"


def _of_other_type() -> str:
    before, received = _program(_PAIRS, ["tensor<2xf32>"]).split("%r:2")
    before = before.replace("-> (tensor<2xf32>", "-> (tensor<2xi32>", 1)
    return f"{before}%r:2{received.replace('tensor<2xf32>', 'tensor<2xi32>')}"


def _lonely(op: str) -> str:
    lines = _program(_PAIRS, ["tensor<2xf32>"]).replace("\n        :", " :").splitlines()
    other = "recv" if op == "send" else "send"
    kept = "\n".join(each for each in lines if f"stablehlo.{other}" not in each)
    if op == "send":
        return kept.replace("return %r#0, %r#1", "return %a0, %s")
    return kept.replace("(%s)", "(%t)")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (_lonely("send"), "channel 1 has 1 send and 0 recv, expected one of each"),
        (_lonely("recv"), "the program has no send on its channel, 1"),
        (_program(_PAIRS, ["tensor<2xf32>"], sent=_TWICE), "channel 1 has 2 send and 1 recv, expected one of each"),
        (
            _program(_PAIRS, ["tensor<2xf32>"]).replace(dense(_PAIRS), dense([[0, 1]]), 1),
            "the recv on channel 1 has other source_target_pairs",
        ),
        (_of_other_type(), "the recv on channel 1 has results of other types than what is sent"),
        (_program(_PAIRS, [_PER_AXIS]), f"{_PER_AXIS} is quantized along an axis"),
    ],
    ids=["no recv", "no send", "two sends", "other pairs", "other types", "per-axis quantization"],
)
def test_transfers_that_are_no_permutation_are_refused(program: str, reason: str) -> None:
    assert f"cannot be expanded: {reason}" in _refused(program)


def test_a_recv_in_front_of_its_send_is_refused() -> None:
    held = _OTHER
    program = f"""func.func @main(%a: tensor<2xf32>, %t: !stablehlo.token) -> tensor<2xf32> {{
      %r:2 = "stablehlo.recv"(%t) {{{held}}} : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
      %s = "stablehlo.send"(%a, %r#1) {{{held}}} : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
      return %r#0 : tensor<2xf32> }}"""
    assert "the recv on channel 1 does not follow in the same block" in _refused(program)


def test_transfers_in_a_branch_are_refused() -> None:
    program = f"""func.func @main(%a: tensor<2xf32>, %p: tensor<i1>, %t: !stablehlo.token) -> tensor<2xf32> {{
      %0 = "stablehlo.if"(%p) ({{
        %s = "stablehlo.send"(%a, %t) {{{_OTHER}}} : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
        %r:2 = "stablehlo.recv"(%s) {{{_OTHER}}} : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
        stablehlo.return %r#0 : tensor<2xf32> }}, {{ stablehlo.return %a : tensor<2xf32> }})
        : (tensor<i1>) -> tensor<2xf32>
      return %0 : tensor<2xf32> }}"""
    assert "it is in a region of stablehlo.if whose condition may differ" in _refused(program)


def test_transfers_without_pairs_remain_as_they_are() -> None:
    program = _program(_PAIRS, ["tensor<2xf32>"]).replace(f", source_target_pairs = {dense(_PAIRS)}", "")
    assert bytes(vt.serialize(program, "1.11.0", expand=True)) == bytes(vt.serialize(program, "1.11.0"))
