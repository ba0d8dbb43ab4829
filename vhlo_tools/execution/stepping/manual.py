"""Computations on the parts of values that devices share, within a program of unsplit values.

All devices step through such a program, each with all unsplit values: a device takes its part at the beginning of a
manual computation, and receives those of the others at the end. Sources: ``sdy.manual_computation`` in
``shardy/dialect/sdy/ir/ops.td`` in openxla/shardy; for GSPMD ``HandleCustomCall`` in
``xla/service/spmd/spmd_partitioner.cc`` in openxla/xla.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from vhlo_tools.bindings import Module, Operation, Provider
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.devices.grid import Grouping
from vhlo_tools.execution.devices.tilings import Tiling, gspmd_tiling, shardy_tilings
from vhlo_tools.execution.stepping.collectives import Collective, Exchange
from vhlo_tools.execution.stepping.distributed import Planning
from vhlo_tools.execution.stepping.segment_evaluation import Evaluate
from vhlo_tools.execution.stepping.steps import Device, DeviceRun, Frame, Immediate, Keys, Step, StepBlock
from vhlo_tools.execution.values.arrays import ArgumentType
from vhlo_tools.records import dataclass

MANUAL_COMPUTATION: Final = "sdy.manual_computation"
_CUT, _JOIN = "SPMDFullToShardShape", "SPMDShardToFullShape"
#: The targets of the calls that begin and end a manual computation of GSPMD.
MANUAL_CALLS: Final = frozenset({_CUT, _JOIN})

_SHARDING: Final = "mhlo.sharding"
#: The attribute for the sharding of the operand of a call that splits it.
_OF_OPERAND: Final = "vhlo_tools.sharding"
_QUOTED: Final = re.compile(r'"([^"]*)"')


@dataclass(frozen=True, slots=True)
class Cut(Immediate):
    """The selection of a device's part of a value."""

    place: str
    tiling: Tiling
    operands: Keys
    results: Keys

    def take(self, device: Device, frame: Frame) -> None:
        whole = frame[self.operands[0]]
        part = self.tiling.part(whole, device.number)
        if part is None:
            raise EngineError(
                f"{self.place}: device {device.number} has no part of {list(whole.shape)} split into "
                f"{list(self.tiling.counts)} by {len(sum(self.tiling.groups, ()))} devices; run it with the number of "
                f"partitions that it was compiled for"
            )
        frame[self.results[0]] = part


@dataclass(frozen=True, slots=True)
class ManualComputation(Step):
    """A body that each device runs on its parts."""

    operands: Keys
    cuts: tuple[Cut, ...]  # select the parts, the arguments of the body
    body: StepBlock
    returned: Keys
    joins: tuple[Collective, ...]  # join the results of the body
    results: Keys

    @property
    def blocks(self) -> tuple[StepBlock, ...]:
        return (self.body,)

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        for cut in self.cuts:
            cut.take(device, frame)
        given = yield from self.body.run(device, frame, [frame[key] for cut in self.cuts for key in cut.results])
        frame.update(zip(self.returned, given, strict=True))
        for join in self.joins:
            yield from join.run(device, frame)


def has_manual(provider: Provider, module: Module) -> bool:
    return any(
        str(op.name) == MANUAL_COMPUTATION
        or (str(op.name) == "stablehlo.custom_call" and op.attributes["call_target_name"].value in MANUAL_CALLS)
        for op in provider.walk(module)
    )


def keep_shardings(provider: Provider, module: Module) -> None:
    """Copies to calls that split a value its sharding, an attribute of the defining op, which rewriting may remove."""
    with module.context:
        for op in provider.walk(module):
            if str(op.name) == "stablehlo.custom_call" and op.attributes["call_target_name"].value == _CUT:
                owner = getattr(op.operands[0].owner, "attributes", {})
                if _SHARDING in owner:
                    op.attributes[_OF_OPERAND] = owner[_SHARDING]


def manual_computation(planning: Planning, op: Operation, body: StepBlock) -> Step:
    """For ``sdy.manual_computation`` of Shardy."""
    place = planning.place(op)
    axes = _QUOTED.findall(str(op.attributes["manual_axes"]))
    block = op.regions[0].blocks[0]
    ends = list(block.operations)[-1].operation.operands
    tilings = []
    for name, values in (("in_shardings", op.operands), ("out_shardings", op.results)):
        found = shardy_tilings(str(op.attributes[name]), axes, planning.mesh)
        if found is None or len(found) != len(values):
            raise planning.refusal(op, f"its {name} are not supported: {op.attributes[name]}")
        tilings.append(found)
    used, parts = planning.used(op.operands), planning.defined(block.arguments)
    cuts = tuple(Cut(place, tiling, (key,), (part,)) for tiling, key, part in zip(tilings[0], used, parts, strict=True))
    # A value may be returned twice, and each occurrence is joined separately.
    returned = planning.used(ends)
    results = planning.defined(op.results)
    joins = tuple(
        _join(op, place, *each) for each in zip(tilings[1], returned, results, planning.types(op), strict=True)
    )
    return ManualComputation(used, cuts, body, returned, joins, results)


def cut_or_join(planning: Planning, op: Operation) -> Step | None:
    """For calls that start or end a manual computation of GSPMD; ``None`` if nothing is split."""
    (operand,), (result,) = op.operands, op.results
    if operand.type == result.type:
        return None
    is_cut = op.attributes["call_target_name"].value == _CUT
    name = _OF_OPERAND if is_cut else _SHARDING
    text = str(op.attributes[name].value) if name in op.attributes else ""
    (type_,) = planning.types(op)
    whole, part = (operand.type.shape, type_.shape) if is_cut else (type_.shape, operand.type.shape)
    tiling = gspmd_tiling(text, len(whole))
    if tiling is None or [count * size for count, size in zip(tiling.counts, part, strict=True)] != list(whole):
        raise planning.refusal(
            op, f"its sharding {text or '(it has none)'} does not split {list(whole)} into parts {list(part)}"
        )
    (key,) = planning.used(op.operands)
    results = planning.defined(op.results)
    place = planning.place(op)
    return Cut(place, tiling, (key,), results) if is_cut else _join(op, place, tiling, key, results[0], type_)


def _join(op: Operation, place: str, tiling: Tiling, operand: int, result: int, type_: ArgumentType) -> Collective:
    grouping = Grouping(place, "flattened_ids", tiling.groups, False)
    return Collective(str(op.name), grouping, _joining(tiling), (operand,), (result,), (type_,))


def _joining(tiling: Tiling) -> Exchange:
    def exchange(_: Evaluate, group: Sequence[Sequence[Any]]) -> list[list[Any]]:
        whole = tiling.joined([part for (part,) in group])
        return [[whole] for _ in group]

    return exchange
