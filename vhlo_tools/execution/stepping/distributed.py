"""Steps for ops that involve several devices, constructed from the program.

Source: StableHLO specification, the section on each op (``docs/spec.md`` in openxla/stablehlo).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from vhlo_tools.bindings import Operation
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.devices.grid import GROUPS, Grouping, grouping_of
from vhlo_tools.execution.stepping.collectives import (
    Collective,
    Exchange,
    all_gather,
    all_reduce,
    all_to_all,
    collective_broadcast,
    collective_permute,
    collective_reduce,
    reduce_scatter,
)
from vhlo_tools.execution.stepping.effects import Identify
from vhlo_tools.execution.stepping.kernels import Kernel, Kernels
from vhlo_tools.execution.stepping.steps import Keys, Step
from vhlo_tools.execution.stepping.transfers import Infeed, Outfeed, Receive, Send
from vhlo_tools.execution.values.arrays import ArgumentType, parse_tensor_type
from vhlo_tools.program import channel_of


class Planning(Protocol):
    """The planner's interface for the construction of steps."""

    provider: Any
    kernels: Kernels
    has_host: bool

    def used(self, values: Any) -> Keys:
        """Return the numbers of values that a step reads."""

    def defined(self, values: Any) -> Keys:
        """Return the numbers of values that a step writes."""

    def place(self, op: Operation) -> str:
        """Return an op with its location, for messages."""

    def refusal(self, op: Operation, reason: str) -> EngineError: ...

    def mesh(self, name: str) -> str | None:
        """Return a mesh by its name, as MLIR prints it."""

    def types(self, op: Operation) -> tuple[ArgumentType, ...]:
        """Return the types of the results, which must be tensors of known shapes."""


def _collective(exchange: Callable[[Planning, Operation], Exchange]) -> Callable[[Planning, Operation], Step]:
    def make(planning: Planning, op: Operation) -> Step:
        return Collective(
            str(op.name),
            _grouping(planning, op),
            exchange(planning, op),
            planning.used(op.operands),
            planning.defined(op.results),
            planning.types(op),
        )

    return make


def _grouping(planning: Planning, op: Operation) -> Grouping:
    return grouping_of(op, planning.place(op), planning.mesh)


def _integer(op: Operation, name: str) -> int:
    return int(op.attributes[name].value)


def _reductions(planning: Planning, op: Operation) -> list[Kernel]:
    """For each operand, the kernel that reduces two tensors of its type."""
    block = op.regions[0].blocks[0]
    (scalar,) = {argument.type for argument in block.arguments}
    tensor = planning.provider.ir.RankedTensorType.get
    types = [tensor(each.type.shape, scalar.element_type, loc=op.location) for each in op.operands]
    return [planning.kernels.of_reduction(block, type_, op.location) for type_ in types]


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
    return Send(
        _pairs(planning, op), planning.place(op), channel_of(op), planning.used(operands), planning.defined(op.results)
    )


def _receive(planning: Planning, op: Operation) -> Step:
    *results, _ = op.results
    types = tuple(parse_tensor_type(str(each.type)) for each in results)
    return Receive(_pairs(planning, op), planning.place(op), channel_of(op), planning.defined(op.results), types)


def _infeed(planning: Planning, op: Operation) -> Step:
    if not planning.has_host:
        raise planning.refusal(op, "there is no host as its source")
    return Infeed(planning.place(op), planning.defined(op.results))


def _outfeed(planning: Planning, op: Operation) -> Step:
    if not planning.has_host:
        raise planning.refusal(op, "there is no host as its consumer")
    return Outfeed(planning.defined(op.results))


def _pairs(planning: Planning, op: Operation) -> Grouping | None:
    """``None`` for a transfer between a device and the host."""
    if "is_host_transfer" in op.attributes and op.attributes["is_host_transfer"].value:
        if planning.has_host:
            return None
        raise planning.refusal(op, "there is no host at the other end of its channel")
    grouping = _grouping(planning, op)
    if not grouping.ids:
        raise planning.refusal(op, f"it has no {GROUPS[str(op.name)]}, which is required between devices")
    return grouping


#: Creates the steps of ops that involve several devices.
DISTRIBUTED: Final[Mapping[str, Callable[[Any, Operation], Step]]] = {
    "stablehlo.all_gather": _collective(lambda _, op: all_gather(_integer(op, "all_gather_dim"))),
    "stablehlo.all_reduce": _collective(lambda planning, op: all_reduce(_reductions(planning, op))),
    "stablehlo.all_to_all": _collective(_all_to_all),
    "stablehlo.collective_broadcast": _collective(_broadcast),
    "stablehlo.collective_permute": _collective(lambda _, __: collective_permute),
    "stablehlo.collective_reduce": _collective(lambda planning, op: collective_reduce(_reductions(planning, op))),
    "stablehlo.infeed": _infeed,
    "stablehlo.outfeed": _outfeed,
    "stablehlo.partition_id": _identify(False),
    "stablehlo.recv": _receive,
    "stablehlo.reduce_scatter": _collective(_reduce_scatter),
    "stablehlo.replica_id": _identify(True),
    "stablehlo.send": _send,
}
