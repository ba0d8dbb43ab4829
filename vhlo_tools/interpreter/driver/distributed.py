"""Steps of ops between devices, read from the program.

Source: StableHLO specification, the section on each op (``docs/spec.md`` in openxla/stablehlo).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import numpy as np

from vhlo_tools.bindings import Operation
from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.driver.collectives import (
    Collective,
    Exchange,
    all_gather,
    all_reduce,
    all_to_all,
    collective_broadcast,
    collective_permute,
    reduce_scatter,
)
from vhlo_tools.interpreter.driver.effects import Identify
from vhlo_tools.interpreter.driver.grid import Strategy
from vhlo_tools.interpreter.driver.kernels import Kernel, Kernels
from vhlo_tools.interpreter.driver.meshes import mesh_groups, mesh_name
from vhlo_tools.interpreter.driver.steps import Keys, Step
from vhlo_tools.interpreter.driver.transfers import Receive, Send
from vhlo_tools.interpreter.values import ArgumentType, parse_tensor_type

__all__ = ["DISTRIBUTED", "Planning"]


class Planning(Protocol):
    """What steps are made with."""

    provider: Any
    kernels: Kernels

    def used(self, values: Any) -> Keys:
        """Return the numbers of values that a step takes."""

    def defined(self, values: Any) -> Keys:
        """Return the numbers of values that a step makes."""

    def place(self, op: Operation) -> str:
        """Return an op and where it stands, for messages."""

    def refusal(self, op: Operation, reason: str) -> EngineError:
        """Return the error that an op cannot be run."""

    def mesh(self, name: str) -> str | None:
        """Return a mesh of the program as MLIR prints it, if there is one of that name."""

    def types(self, op: Operation) -> tuple[ArgumentType, ...]:
        """Return the types of the results of an op, which are tensors of known shapes."""


Ids = tuple[tuple[int, ...], ...]


def _collective(exchange: Callable[[Planning, Operation], Exchange], ids: str = "replica_groups") -> Any:
    """Return what makes a step of a collective.

    Args:
        exchange: Returns what happens in a group.
        ids: The attribute that tells groups.
    """

    def make(planning: Planning, op: Operation) -> Step:
        return Collective(
            str(op.name),
            planning.place(op),
            _strategy(op),
            _ids(planning, op, ids),
            exchange(planning, op),
            planning.used(op.operands),
            planning.defined(op.results),
            planning.types(op),
        )

    return make


def _strategy(op: Operation) -> Strategy:
    is_channel = _channel(op) > 0
    if str(op.name) in _OF_ONE_AXIS:
        return "cross_partition" if is_channel else "cross_replica"
    if "use_global_device_ids" in op.attributes:
        return "flattened_ids"
    return "cross_replica_and_partition" if is_channel else "cross_replica"


#: Collectives among replicas or among partitions; the others are among all devices if they have a channel.
_OF_ONE_AXIS: Final = frozenset(
    f"stablehlo.{name}" for name in ("all_to_all", "collective_broadcast", "collective_permute", "recv", "send")
)


def _channel(op: Operation) -> int:
    if "channel_handle" not in op.attributes:
        return 0
    # The bindings have a class for it in their slow modules only.
    return int(str(op.attributes["channel_handle"]).partition("handle = ")[2].partition(",")[0])


def _ids(planning: Planning, op: Operation, name: str) -> Ids:
    attribute = op.attributes[name]
    if (text := str(attribute)).startswith("dense<"):
        # Groups of unlike sizes are filled up with -1.
        return tuple(tuple(int(each) for each in row if each >= 0) for row in np.array(attribute) if len(row))
    symbol = mesh_name(text)
    mesh = text if symbol is None else planning.mesh(symbol)
    if mesh is None:
        raise planning.refusal(op, f"there is no mesh @{symbol}, by which its groups are told")
    return mesh_groups(text, mesh)


def _integer(op: Operation, name: str) -> int:
    return int(op.attributes[name].value)


def _reductions(planning: Planning, op: Operation) -> list[Kernel]:
    """Return, for each operand, the function that reduces two of it."""
    block = op.regions[0].blocks[0]
    (scalar,) = {argument.type for argument in block.arguments}
    tensor = planning.provider.ir.RankedTensorType.get
    kinds = [tensor(each.type.shape, scalar.element_type, loc=op.location) for each in op.operands]
    return [planning.kernels.of_reduction(block, kind, op.location) for kind in kinds]


def _reduce_scatter(planning: Planning, op: Operation) -> Exchange:
    (kernel,) = _reductions(planning, op)
    return reduce_scatter(kernel, _integer(op, "scatter_dimension"))


def _all_to_all(_: Planning, op: Operation) -> Exchange:
    return all_to_all(*(_integer(op, name) for name in ("split_dimension", "concat_dimension", "split_count")))


def _broadcast(_: Planning, op: Operation) -> Exchange:
    return collective_broadcast(len(op.operands) > len(op.results))


def _identify(of_replica: bool) -> Callable[[Planning, Operation], Step]:
    return lambda planning, op: Identify(of_replica, planning.defined(op.results))


def _send(planning: Planning, op: Operation) -> Step:
    *operands, _ = op.operands
    pairs = _pairs(planning, op)
    keys = planning.used(operands), planning.defined(op.results)
    return Send(planning.place(op), _channel(op), _strategy(op), pairs, *keys)


def _receive(planning: Planning, op: Operation) -> Step:
    *results, _ = op.results
    types = tuple(parse_tensor_type(str(each.type)) for each in results)
    pairs = _pairs(planning, op)
    return Receive(planning.place(op), _channel(op), _strategy(op), pairs, planning.defined(op.results), types)


def _pairs(planning: Planning, op: Operation) -> Ids:
    if "is_host_transfer" in op.attributes and op.attributes["is_host_transfer"].value:
        raise planning.refusal(op, "there is no host at the other end of its channel")
    pairs = _ids(planning, op, "source_target_pairs") if "source_target_pairs" in op.attributes else ()
    if not pairs:
        raise planning.refusal(op, "it has no source_target_pairs, without which it has no meaning between devices")
    return pairs


#: What makes steps of ops between devices.
DISTRIBUTED: Final[Mapping[str, Callable[[Any, Operation], Step]]] = {
    "stablehlo.all_gather": _collective(lambda _, op: all_gather(_integer(op, "all_gather_dim"))),
    "stablehlo.all_reduce": _collective(lambda planning, op: all_reduce(_reductions(planning, op))),
    "stablehlo.all_to_all": _collective(_all_to_all),
    "stablehlo.collective_broadcast": _collective(_broadcast),
    "stablehlo.collective_permute": _collective(lambda _, __: collective_permute, "source_target_pairs"),
    "stablehlo.partition_id": _identify(False),
    "stablehlo.recv": _receive,
    "stablehlo.reduce_scatter": _collective(_reduce_scatter),
    "stablehlo.replica_id": _identify(True),
    "stablehlo.send": _send,
}
