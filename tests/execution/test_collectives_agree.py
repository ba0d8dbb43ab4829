"""Every collective, in every way of grouping, on eight devices: both engines give the same bits.

What XLA does not implement on a CPU is compared with what numpy makes of the specification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pytest
from support.element_types import TYPES

import vhlo_tools as vt

GRIDS = [(8, 1), (1, 8), (2, 4), (4, 2)]
STRATEGIES = {
    "cross_replica": "",
    "cross_partition": "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>",
    "cross_replica_and_partition": "channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>",
    "flattened_ids": "channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, use_global_device_ids",
}
#: Among what an exchange is; all else is among replicas, all devices, or told by the numbers of devices.
OF_ONE_AXIS = ("cross_replica", "cross_partition")
OF_ALL = ("cross_replica", "cross_replica_and_partition", "flattened_ids")


def unchanged(_: int) -> tuple[int, ...]:
    return 8, 8


@dataclass(frozen=True)
class Call:
    """A collective in a program."""

    op: str  # its name
    held: str = ""  # its attributes beside those that tell groups
    results: Callable[[int], tuple[int, ...]] = unchanged  # the sizes of its result for groups of so many
    reduction: str = ""  # the op that its body is of
    element: str = "f32"  # the type of its elements
    operands: int = 1  # how many it takes
    strategies: tuple[str, ...] = OF_ALL  # how its groups may be told

    def text(self, number: int, replicas: int, partitions: int, strategy: str) -> str:
        groups = ids(replicas, partitions, strategy)
        if self.op == "collective_permute":
            ring = [each for group in groups for each in zip(group, [*group[1:], group[0]], strict=True)]
            told = f"source_target_pairs = dense<{list(map(list, ring))}> : tensor<{len(ring)}x2xi64>"
        else:
            told = f"replica_groups = dense<{groups}> : tensor<{len(groups)}x{len(groups[0])}xi64>"
        size = len(groups[0]) * (partitions if strategy == "cross_replica_and_partition" else 1)
        held = ", ".join(filter(None, [self.held.format(size=size), told, STRATEGIES[strategy]]))
        takes, gives = tensor((8, 8), self.element), tensor(self.results(size), self.element)
        names, types = (", ".join([each] * self.operands) for each in (f"%{self.element}", takes))
        returned = ", ".join([gives] * self.operands)
        scalar = tensor((), self.element)
        body = (
            f"({{ ^bb0(%x: {scalar}, %y: {scalar}): %z = stablehlo.{self.reduction} %x, %y : {scalar} "
            f"stablehlo.return %z : {scalar} }})"
        )
        return (
            f'%r{number}:{self.operands} = "stablehlo.{self.op}"({names}) {body if self.reduction else ""} '
            f"{{{held}}} : ({types}) -> ({returned})"
        )

    def returned(self, number: int, size: int) -> Iterator[tuple[str, str]]:
        for each in range(self.operands):
            yield f"%r{number}#{each}", tensor(self.results(size), self.element)


def tensor(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def ids(replicas: int, partitions: int, strategy: str) -> list[list[int]]:
    """Return two groups out of order, or one of what there is only one of."""
    count = {"cross_partition": partitions, "flattened_ids": replicas * partitions}.get(strategy, replicas)
    return [list(range(count))[::-2], list(range(count))[-2::-2]] if count > 1 else [[0]]


CALLS = [
    Call("all_reduce", reduction="add", operands=2),
    Call("all_gather", "all_gather_dim = 1 : i64", lambda size: (8, 8 * size), operands=2, element="bf16"),
    Call("reduce_scatter", "scatter_dimension = 0 : i64", lambda size: (8 // size, 8), "maximum", "i32"),
    Call(
        "all_to_all",
        "split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = {size} : i64",
        lambda size: (8 // size, 8 * size),
        element="i8",
        operands=2,
        strategies=OF_ONE_AXIS,
    ),
    Call("all_gather", "all_gather_dim = 0 : i64", lambda size: (8 * size, 8), element="i2"),
    Call("collective_permute", element="f64", strategies=OF_ONE_AXIS),
    Call("collective_permute", element="i1", strategies=OF_ONE_AXIS),
]
REDUCTIONS = [
    Call("all_reduce", reduction=reduction, element=element)
    for element, reductions in {
        "f32": ("add", "multiply", "maximum", "minimum"),
        "f64": ("add", "minimum"),
        "f16": ("add", "maximum"),
        "bf16": ("add", "multiply"),
        "i32": ("add", "multiply", "maximum", "minimum"),
        "ui8": ("add", "maximum"),
        "i64": ("add", "minimum"),
        "i1": ("and", "or"),
        "complex<f32>": ("add", "multiply"),
    }.items()
    for reduction in reductions
]


def inputs_of(elements: list[str], devices: int) -> list[list[Any]]:
    chance = np.random.default_rng(devices)
    return [[drawn(chance, element) for element in elements] for _ in range(devices)]


def drawn(chance: np.random.Generator, element: str) -> Any:
    if element == "bf16":
        # XLA reduces in f32 and rounds once: so sums and products are such that nothing is rounded.
        return chance.choice([-2, -1, 1, 2], (8, 8)).astype(TYPES[element])
    values = chance.integers(-50, 50, (8, 8)) if "i" in element else chance.normal(size=(8, 8))
    if element == "complex<f32>":
        values = values + 1j * chance.normal(size=(8, 8))
    return (values % 2 if element == "i1" else np.abs(values) if element == "ui8" else values).astype(TYPES[element])


def program(calls: list[Call], replicas: int, partitions: int, strategy: str) -> tuple[str, list[str]]:
    """Return a program of calls, and the types of elements that it takes."""
    elements = list(dict.fromkeys(each.element for each in calls))
    groups = ids(replicas, partitions, strategy)
    size = len(groups[0]) * (partitions if strategy == "cross_replica_and_partition" else 1)
    lines = [each.text(number, replicas, partitions, strategy) for number, each in enumerate(calls)]
    given = [pair for number, each in enumerate(calls) for pair in each.returned(number, size)]
    names = {element: f"%a{number}" for number, element in enumerate(elements)}
    arguments = ", ".join(f"{names[element]}: {tensor((8, 8), element)}" for element in elements)
    body = "\n".join(lines)
    for element in elements:
        body = body.replace(f"%{element}", names[element])
    given += [("%p", "tensor<ui32>"), ("%q", "tensor<ui32>")]
    results, types = (", ".join(each) for each in zip(*given, strict=True))
    text = f"""func.func @main({arguments}) -> ({types}) {{
      %p = stablehlo.partition_id : tensor<ui32>
      %q = stablehlo.replica_id : tensor<ui32>
      {body}
      return {results} : {types}
    }}"""
    return text, elements


def assert_agree(calls: list[Call], replicas: int, partitions: int, strategy: str) -> None:
    text, elements = program(calls, replicas, partitions, strategy)
    inputs = inputs_of(elements, replicas * partitions)
    one, other = (
        vt.run_parallel(text, inputs, replicas=replicas, partitions=partitions, engine=engine)
        for engine in ("reference", "xla")
    )
    names = [f"{each.op} {each.reduction} {each.element}" for each in calls for _ in range(each.operands)]
    for device, (found, expected) in enumerate(zip(one, other, strict=True)):
        assert [int(each) for each in found[-2:]] == [device % partitions, device // partitions]
        for name, a, b in zip([*names, "partition_id", "replica_id"], found, expected, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), name
            assert a.tobytes() == b.tobytes(), f"{name} on device {device}"


@pytest.mark.sample(3)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("replicas", "partitions"), GRIDS)
def test_both_engines_give_the_same_bits(replicas: int, partitions: int, strategy: str) -> None:
    assert_agree([each for each in CALLS if strategy in each.strategies], replicas, partitions, strategy)


def test_every_kind_of_reduction_gives_the_same_bits() -> None:
    assert_agree(REDUCTIONS, 4, 2, "cross_replica_and_partition")


# What XLA does not implement on a CPU


#: A call, in what words XLA or the toolkit refuses it, and what is made of what two devices have.
LACKING: dict[str, tuple[Call, str, Callable[..., Any]]] = {
    "and": (Call("all_reduce", reduction="and", element="i32"), "Unsupported reduction computation", np.bitwise_and),
    "or": (Call("all_reduce", reduction="or", element="i32"), "Unsupported reduction computation", np.bitwise_or),
    "xor": (Call("all_reduce", reduction="xor", element="ui8"), "Unsupported reduction computation", np.bitwise_xor),
    "xor of booleans": (Call("all_reduce", reduction="xor", element="i1"), "Unsupported reduction", np.logical_xor),
    "subtract": (Call("all_reduce", reduction="subtract", element="f32"), "Unsupported reduction", np.subtract),
    "two bits": (Call("all_reduce", reduction="add", element="i2"), "AllReduce for datatype 's2' is not", np.add),
    "broadcast": (
        Call("collective_broadcast", strategies=("cross_replica",)),
        "XLA does not implement it on a CPU",
        lambda one, _: one,
    ),
}


@pytest.mark.parametrize("name", LACKING)
def test_what_xla_lacks_runs_on_the_interpreter(name: str) -> None:
    call, refusal, function = LACKING[name]
    replicas, partitions, strategy = 4, 2, call.strategies[-1]
    text, elements = program([call], replicas, partitions, strategy)
    inputs = inputs_of(elements, 8)
    with pytest.raises(vt.EngineError, match=refusal) as caught:
        vt.run_parallel(text, inputs, replicas=replicas, partitions=partitions, engine="xla")
    assert "engine reference" in str(caught.value)
    given = vt.run_parallel(text, inputs, replicas=replicas, partitions=partitions, engine="reference")
    # As the specification tells them of `ids`, for four replicas of two partitions.
    groups = [[6, 2], [7, 3], [4, 0], [5, 1]] if strategy == "cross_replica" else [[7, 5, 3, 1], [6, 4, 2, 0]]
    for group in groups:
        expected = reduce(function, [inputs[each][0] for each in group])
        for device in group:
            np.testing.assert_array_equal(given[device][0], expected)


def test_devices_of_no_group_are_told_before_anything_runs() -> None:
    text, elements = program(CALLS[:1], 4, 2, "flattened_ids")
    for engine in ("reference", "xla"):
        with pytest.raises(vt.EngineError, match=r"device 8 .* belongs to none of its groups|it names 8"):
            vt.run_parallel(text, inputs_of(elements, 10), replicas=5, partitions=2, engine=engine)
