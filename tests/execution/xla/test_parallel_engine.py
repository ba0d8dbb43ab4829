"""Programs on several devices of XLA: collectives in every mode, shardings, handlers, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt

pytestmark = [pytest.mark.usefixtures("both_places"), pytest.mark.every_python]

F32, SCALAR = "tensor<4xf32>", "tensor<f32>"
SUM = f"""({{ ^bb0(%x: {SCALAR}, %y: {SCALAR}):
  %s = stablehlo.add %x, %y : {SCALAR}
  stablehlo.return %s : {SCALAR} }})"""
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
GLOBAL = f"{CHANNEL}, use_global_device_ids"


def groups(rows: list[list[int]], name: str = "replica_groups") -> str:
    return f"{name} = dense<{rows}> : tensor<{len(rows)}x{len(rows[0])}xi64>"


def collective(op: str, attributes: str, result: str = F32, argument: str = F32, body: str = "") -> str:
    call = f'"stablehlo.{op}"(%a) {body} {{{attributes}}} : ({argument}) -> {result}'
    return f"func.func @main(%a: {argument}) -> {result} {{ %0 = {call} return %0 : {result} }}"


def numbers(device: int) -> np.ndarray[Any, Any]:
    return np.arange(4, dtype=np.float32) + 10 * device


def run(text: str, replicas: int, partitions: int) -> list[list[float]]:
    given = [[numbers(device)] for device in range(replicas * partitions)]
    results = vt.run_parallel(text, given, replicas=replicas, partitions=partitions, engine="xla")
    return [result.tolist() for (result,) in results]


def sums(members: list[list[int]]) -> list[list[float]]:
    """Return for each device the sum of what the members of its group have."""
    return [sum(map(numbers, group), np.zeros(4, np.float32)).tolist() for group in members]


# The modes of groups: "Process grid" in the StableHLO specification


@pytest.mark.parametrize(
    ("attributes", "members"),
    [
        (groups([[0, 1]]), [[0, 2], [1, 3], [0, 2], [1, 3]]),
        (f"{groups([[0, 1]])}, {CHANNEL}", [[0, 1, 2, 3]] * 4),
        (f"{groups([[0], [1]])}, {CHANNEL}", [[0, 1], [0, 1], [2, 3], [2, 3]]),
        (f"{groups([[0, 3], [1, 2]])}, {GLOBAL}", [[0, 3], [1, 2], [1, 2], [0, 3]]),
        (f"{groups([[0, 1, 2], [3, -1, -1]])}, {GLOBAL}", [[0, 1, 2]] * 3 + [[3]]),
        ("replica_groups = dense<> : tensor<0x0xi64>", [[0, 2], [1, 3], [0, 2], [1, 3]]),
    ],
    ids=["replicas", "both", "both in groups", "flattened", "uneven", "all"],
)
def test_all_reduce_in_every_mode(attributes: str, members: list[list[int]]) -> None:
    assert run(collective("all_reduce", attributes, body=SUM), 2, 2) == sums(members)


@pytest.mark.parametrize(
    ("channel", "other"), [("", [2, 3, 0, 1]), (f", {CHANNEL}", [1, 0, 3, 2])], ids=["replicas", "partitions"]
)
def test_an_exchange_goes_across_replicas_or_across_partitions(channel: str, other: list[int]) -> None:
    pairs = groups([[0, 1], [1, 0]], "source_target_pairs")
    permuted = run(collective("collective_permute", pairs + channel), 2, 2)
    assert permuted == [numbers(device).tolist() for device in other]
    split = "split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, "
    exchanged = run(collective("all_to_all", split + groups([[0, 1]]) + channel), 2, 2)
    for device, there in enumerate(other):
        first, second = sorted((device, there))
        half = slice(0, 2) if device == first else slice(2, 4)
        assert exchanged[device] == [*numbers(first)[half], *numbers(second)[half]]


def test_what_nobody_sends_to_gets_zeros() -> None:
    pairs = groups([[0, 1]], "source_target_pairs")
    assert run(collective("collective_permute", pairs), 3, 1) == [[0] * 4, numbers(0).tolist(), [0] * 4]


def test_gathering_and_scattering() -> None:
    gathered = run(collective("all_gather", f"all_gather_dim = 0 : i64, {groups([[1, 0]])}", "tensor<8xf32>"), 2, 1)
    assert gathered == [[*numbers(1), *numbers(0)]] * 2
    scattered = collective(
        "reduce_scatter", f"scatter_dimension = 0 : i64, {groups([[0, 1]])}", "tensor<2xf32>", body=SUM
    )
    total = (numbers(0) + numbers(1)).tolist()
    assert run(scattered, 2, 1) == [total[:2], total[2:]]


@pytest.mark.parametrize(("replicas", "partitions"), [(1, 1), (1, 2), (3, 1), (2, 2), (2, 4), (8, 1)])
def test_each_device_knows_its_replica_and_its_partition(replicas: int, partitions: int) -> None:
    ids = "tensor<ui32>"
    text = f"""module attributes {{mhlo.num_replicas = {replicas} : i32, mhlo.num_partitions = {partitions} : i32}} {{
      func.func @main() -> ({ids}, {ids}) {{
        %0 = stablehlo.replica_id : {ids}
        %1 = stablehlo.partition_id : {ids}
        return %0, %1 : {ids}, {ids}
      }}
    }}"""
    results = vt.run_parallel(text, [[]] * (replicas * partitions))
    assert [tuple(map(int, each)) for each in results] == [
        (replica, partition) for replica in range(replicas) for partition in range(partitions)
    ]


# Values


def test_tuples_tokens_aliases_and_dynamic_shapes() -> None:
    pair, token, dynamic = f"tuple<{SCALAR}, {SCALAR}>", "!stablehlo.token", "tensor<?xf32>"
    text = f"""func.func @main(
        %p: {pair}, %t: {token}, %a: {dynamic} {{tf.aliasing_output = 2 : i32}}) -> ({pair}, {token}, {dynamic}) {{
      %0 = stablehlo.add %a, %a : {dynamic}
      return %p, %t, %0 : {pair}, {token}, {dynamic}
    }}"""
    given: list[list[Any]] = [[(1.0, 2.0), None, np.ones(3, np.float32) * device] for device in range(2)]
    for device, ((one, two), none, array) in enumerate(vt.run_parallel(text, given, replicas=2)):
        assert (one, two, none, array.tolist()) == (1, 2, None, [2 * device] * 3)
    assert given[1][2].tolist() == [1, 1, 1]


# Shardings


def weights() -> list[np.ndarray[Any, Any]]:
    chance = np.random.default_rng(0)
    return [chance.normal(size=shape).astype(np.float32) for shape in ((16, 32), (32, 64), (64, 32))]


def test_a_program_with_shardings_takes_and_gives_whole_values() -> None:
    path, inputs = EXAMPLES / "sharded_matmul.mlir", weights()
    ((result,),) = vt.run_parallel(path, [inputs])
    (alone,) = vt.run(path, inputs, engine="xla")
    np.testing.assert_allclose(result, alone, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [8, 6, 5])
def test_what_is_not_cut_evenly_is_put_together_again(rows: int) -> None:
    kind = f"tensor<{rows}x2xf32>"
    sharding = ' {mhlo.sharding = "{devices=[4,1]<=[4]}"}'
    text = f"""func.func @main(%a: {kind}{sharding}, %b: {kind}) -> ({kind}{sharding}, {kind}, {SCALAR}) {{
      %0 = stablehlo.add %a, %b : {kind}
      %zero = stablehlo.constant dense<0.0> : {SCALAR}
      %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1]
        : ({kind}, {SCALAR}) -> {SCALAR}
      return %0, %b, %1 : {kind}, {kind}, {SCALAR}
    }}"""
    a = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)
    ((total, same, number),) = vt.run_parallel(text, [[a, a]], partitions=4)
    assert np.array_equal(total, a + a)
    assert np.array_equal(same, a)
    assert number == 2 * a.sum()


# Handlers


def handled(handler: Callable[..., Any]) -> Any:
    ids = "tensor<ui32>"
    text = f"""func.func @main(%a: {F32}) -> {F32} {{
      %p = stablehlo.partition_id : {ids}
      %0 = stablehlo.custom_call @f(%a, %p) : ({F32}, {ids}) -> {F32}
      %1 = "stablehlo.all_reduce"(%0) {SUM} {{{groups([[0, 1, 2, 3]])}, {GLOBAL}}} : ({F32}) -> {F32}
      return %1 : {F32}
    }}"""
    return vt.run_parallel(text, [[numbers(0)]] * 4, partitions=4, handlers={"f": handler})


def test_a_handler_is_called_by_each_device() -> None:
    results = handled(lambda _, array, partition: array + partition.astype(np.float32))
    assert [result.tolist() for (result,) in results] == [(4 * numbers(0) + 6).tolist()] * 4


def test_the_devices_do_not_wait_for_one_whose_handler_failed() -> None:
    def failing(_: vt.CustomCall, array: np.ndarray[Any, Any], partition: np.ndarray[Any, Any]) -> Any:
        if partition == 2:
            raise LookupError("no third")
        return array

    with pytest.raises(vt.EngineError, match="custom call of f: its handler raised LookupError: no third"):
        handled(failing)


# Refusals


def test_what_xla_has_not_is_refused_by_name() -> None:
    text = collective("collective_broadcast", groups([[0, 1]]))
    with pytest.raises(vt.EngineError, match=r"text:1:\d+: .* stablehlo.collective_broadcast: .* reference can run it"):
        run(text, 2, 1)


def test_the_inputs_must_be_those_of_the_devices() -> None:
    text = collective("all_reduce", groups([[0, 1]]), body=SUM)
    with pytest.raises(
        vt.InvalidInputError, match="requires 2 sequences of inputs .one for each of 2 x 1 devices., got 1"
    ):
        vt.run_parallel(text, [[numbers(0)]], replicas=2)
    with pytest.raises(vt.InvalidInputError, match="input 0 is float32"):
        vt.run_parallel(text, [[numbers(0)], [numbers(0)[:2]]], replicas=2)
    with pytest.raises(vt.InvalidInputError, match="requires 1 sequences of inputs .one of whole values"):
        vt.run_parallel(EXAMPLES / "sharded_matmul.mlir", [weights()] * 8)
    with pytest.raises(vt.InvalidInputError, match="100000 devices are too many"):
        vt.run_parallel(text, [[numbers(0)]], replicas=100_000)
    with pytest.raises(vt.EngineError, match="runs such programs as one replica, not as 2"):
        vt.run_parallel(EXAMPLES / "sharded_matmul.mlir", [weights()] * 2, replicas=2)
    with pytest.raises(vt.InvalidInputError, match="invalid number of replicas: 0; expected at least 1"):
        vt.run_parallel(text, [], replicas=0)
