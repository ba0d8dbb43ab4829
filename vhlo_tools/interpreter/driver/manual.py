"""Computations on the parts of values that devices share, within a program of whole values.

Such a program is walked by all devices, each of which has all whole values: it takes its part where a manual
computation begins, and is given those of the others where it ends. Sources: ``sdy.manual_computation`` in
``shardy/dialect/sdy/ir/ops.td`` in openxla/shardy; for GSPMD ``HandleCustomCall`` in
``xla/service/spmd/spmd_partitioner.cc`` in openxla/xla.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from vhlo_tools.bindings import Module, Operation, Provider
from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.driver.collectives import Collective, Exchange
from vhlo_tools.interpreter.driver.distributed import Planning
from vhlo_tools.interpreter.driver.evaluation import Evaluate
from vhlo_tools.interpreter.driver.steps import Block, Device, Frame, Immediate, Keys, Step, Walk
from vhlo_tools.interpreter.grid import Grouping
from vhlo_tools.interpreter.tilings import Tiling, gspmd_tiling, shardy_tilings
from vhlo_tools.interpreter.values import ArgumentType

__all__ = ["MANUAL_CALLS", "MANUAL_COMPUTATION", "cut_or_join", "has_manual", "keep_shardings", "manual_computation"]

MANUAL_COMPUTATION: Final = "sdy.manual_computation"
_CUT, _JOIN = "SPMDFullToShardShape", "SPMDShardToFullShape"
#: The targets of the calls that begin and end a manual computation of GSPMD.
MANUAL_CALLS: Final = frozenset({_CUT, _JOIN})

_SHARDING: Final = "mhlo.sharding"
#: Where the sharding of the operand is kept, of a call that cuts it up.
_OF_OPERAND: Final = "vhlo_tools.sharding"
_QUOTED: Final = re.compile(r'"([^"]*)"')


@dataclass(frozen=True, slots=True)
class Cut(Immediate):
    """A device takes its part of a value.

    Attributes:
        place: The op and where it stands, for messages.
        tiling: How the value is cut up.
        operands: The value.
        results: Its part.
    """

    place: str
    tiling: Tiling
    operands: Keys
    results: Keys

    def take(self, device: Device, frame: Frame) -> None:
        whole = frame[self.operands[0]]
        part = self.tiling.part(whole, device.number)
        if part is None:
            raise EngineError(
                f"{self.place}: device {device.number} has no part of {list(whole.shape)} cut into "
                f"{list(self.tiling.counts)} by {len(sum(self.tiling.groups, ()))} devices; run it with as many "
                "partitions as it was made for"
            )
        frame[self.results[0]] = part


@dataclass(frozen=True, slots=True)
class ManualComputation(Step):
    """A body that each device runs on its parts.

    Attributes:
        operands: The values of which parts are taken.
        cuts: Take the parts, as the arguments of the body.
        body: The body.
        returned: What it gives.
        joins: Put that together.
        results: What they give.
    """

    operands: Keys
    cuts: tuple[Cut, ...]
    body: Block
    returned: Keys
    joins: tuple[Collective, ...]
    results: Keys

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)

    def walk(self, device: Device, frame: Frame) -> Walk:
        for cut in self.cuts:
            cut.take(device, frame)
        given = yield from self.body.walk(device, frame, [frame[key] for cut in self.cuts for key in cut.results])
        frame.update(zip(self.returned, given, strict=True))
        for join in self.joins:
            yield from join.walk(device, frame)


def has_manual(provider: Provider, module: Module) -> bool:
    """Tell whether a program of whole values has computations on parts of them."""
    return any(
        str(op.name) == MANUAL_COMPUTATION
        or (str(op.name) == "stablehlo.custom_call" and op.attributes["call_target_name"].value in MANUAL_CALLS)
        for op in provider.walk(module)
    )


def keep_shardings(provider: Provider, module: Module) -> None:
    """Note on calls that cut a value up how it is: that stands on what gives the value, which is rewritten away."""
    with module.context:
        for op in provider.walk(module):
            if str(op.name) == "stablehlo.custom_call" and op.attributes["call_target_name"].value == _CUT:
                owner = getattr(op.operands[0].owner, "attributes", {})
                if _SHARDING in owner:
                    op.attributes[_OF_OPERAND] = owner[_SHARDING]


def manual_computation(planning: Planning, op: Operation, body: Block) -> Step:
    """Return the step of a manual computation of Shardy, of which ``body`` is the body."""
    place = planning.place(op)
    axes = _QUOTED.findall(str(op.attributes["manual_axes"]))
    block = op.regions[0].blocks[0]
    ends = list(block.operations)[-1].operation.operands
    tilings = []
    for name, values in (("in_shardings", op.operands), ("out_shardings", op.results)):
        found = shardy_tilings(str(op.attributes[name]), axes, planning.mesh)
        if found is None or len(found) != len(values):
            raise planning.refusal(op, f"its {name} are not understood: {op.attributes[name]}")
        tilings.append(found)
    used, parts = planning.used(op.operands), planning.defined(block.arguments)
    cuts = tuple(Cut(place, tiling, (key,), (part,)) for tiling, key, part in zip(tilings[0], used, parts, strict=True))
    # One value may be given twice, and each of these is put together.
    returned = planning.used(ends)
    results = planning.defined(op.results)
    joins = tuple(
        _join(op, place, *each) for each in zip(tilings[1], returned, results, planning.types(op), strict=True)
    )
    return ManualComputation(used, cuts, body, returned, joins, results)


def cut_or_join(planning: Planning, op: Operation) -> Step | None:
    """Return the step of a call that begins or ends a manual computation of GSPMD; ``None`` if parts are the whole."""
    (operand,), (result,) = op.operands, op.results
    if operand.type == result.type:
        return None
    is_cut = op.attributes["call_target_name"].value == _CUT
    name = _OF_OPERAND if is_cut else _SHARDING
    text = str(op.attributes[name].value) if name in op.attributes else ""
    (kind,) = planning.types(op)
    whole, part = (operand.type.shape, kind.shape) if is_cut else (kind.shape, operand.type.shape)
    tiling = gspmd_tiling(text, len(whole))
    if tiling is None or [count * size for count, size in zip(tiling.counts, part, strict=True)] != list(whole):
        raise planning.refusal(
            op, f"its sharding {text or '(it has none)'} does not tell how {list(whole)} is made of parts {list(part)}"
        )
    (key,) = planning.used(op.operands)
    results = planning.defined(op.results)
    place = planning.place(op)
    return Cut(place, tiling, (key,), results) if is_cut else _join(op, place, tiling, key, results[0], kind)


def _join(op: Operation, place: str, tiling: Tiling, operand: int, result: int, kind: ArgumentType) -> Collective:
    grouping = Grouping(place, "flattened_ids", tiling.groups, False)
    return Collective(str(op.name), grouping, _joining(tiling), (operand,), (result,), (kind,))


def _joining(tiling: Tiling) -> Exchange:
    """Everybody gets the value of which all bring parts."""

    def exchange(_: Evaluate, group: Sequence[Sequence[Any]]) -> list[list[Any]]:
        whole = tiling.joined([part for (part,) in group])
        return [[whole] for _ in group]

    return exchange
