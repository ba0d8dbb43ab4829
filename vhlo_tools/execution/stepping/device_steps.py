"""Steps that involve several devices, which run in lockstep."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Module, Operation, Provider
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.devices import (
    GROUPS,
    Grid,
    Grouping,
    Groups,
    Tiling,
    grouping_of,
    gspmd_tiling,
    shardy_tilings,
)
from vhlo_tools.execution.stepping.local_steps import Identify
from vhlo_tools.execution.stepping.steps import (
    CompiledSegment,
    Device,
    DeviceRun,
    Evaluate,
    Frame,
    Immediate,
    Keys,
    Nested,
    Planner,
    Rendezvous,
    Step,
    StepBlock,
)
from vhlo_tools.execution.values import ArgumentType, parse_tensor_type
from vhlo_tools.program import channel_of
from vhlo_tools.records import dataclass

# Collectives: the exchange of values in groups of devices
#
# Source: StableHLO specification, the section on each op (``docs/spec.md`` in openxla/stablehlo).

#: The values of one member of a group, and the values of all members in order.
Values = Sequence[Any]
Group = Sequence[Values]

#: Returns the results of each member of a group, from an evaluator of kernels and the operands of each member.
Exchange = Callable[[Evaluate, Group], list[list[Any]]]


@dataclass(frozen=True, slots=True)
class Collective(Step):
    name: str
    grouping: Grouping
    exchange: Exchange
    operands: Keys
    results: Keys
    types: tuple[ArgumentType, ...]

    @property
    def place(self) -> str:
        return self.grouping.place

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        values = yield Rendezvous(self, tuple(frame[key] for key in self.operands))
        for number, (key, value, type_) in enumerate(zip(self.results, values, self.types, strict=True)):
            if value.shape != type_.shape:
                raise EngineError(
                    f"{self.grouping.place}: result {number} has the shape {list(value.shape)} on these devices, but "
                    f"the program specifies {type_.text}: it was compiled for other groups of devices"
                )
            frame[key] = value

    def groups(self, grid: Grid) -> Groups:
        """For a permutation, groups of all devices that can exchange values."""
        groups = self.grouping.groups(grid)
        return self.grouping.all(grid) if self.grouping.is_pairs else groups

    def exchanged(self, evaluate: Evaluate, grid: Grid, members: Sequence[int], group: Group) -> list[list[Any]]:
        if not self.grouping.is_pairs:
            try:
                return self.exchange(evaluate, group)
            except (ValueError, IndexError) as error:
                raise EngineError(
                    f"{self.grouping.place}: it does not support groups of {len(group)} devices: {error}"
                ) from error
        sources = {target: source for source, target in self.grouping.groups(grid)}
        brought = dict(zip(members, group, strict=True))
        return [
            list(brought[sources[each]]) if each in sources else [np.zeros_like(value) for value in brought[each]]
            for each in members
        ]

    def alone(self, values: Values) -> list[Any] | None:
        """The results of a device that is in no group; ``None`` if every device must be in one."""
        if self.name != "stablehlo.collective_broadcast":
            return None
        return [np.zeros(type_.shape, type_.dtype) for type_, _ in zip(self.types, values, strict=False)]


def _integer(op: Operation, name: str) -> int:
    return int(op.attributes[name].value)


def _all_gather(_: Planner, op: Operation) -> Exchange:
    dimension = _integer(op, "all_gather_dim")

    def exchange(_: Evaluate, group: Group) -> list[list[Any]]:
        gathered = [np.concatenate(values, dimension) for values in zip(*group, strict=True)]
        return [list(gathered) for _ in group]

    return exchange


def _all_to_all(_: Planner, op: Operation) -> Exchange:
    split, concat, count = (_integer(op, name) for name in ("split_dimension", "concat_dimension", "split_count"))

    def exchange(_: Evaluate, group: Group) -> list[list[Any]]:
        parts = [[np.split(value, count, split) for value in values] for values in group]
        return [
            [np.concatenate([each[number][index] for each in parts], concat) for number in range(len(group[0]))]
            for index in range(len(group))
        ]

    return exchange


def _all_reduce(planner: Planner, op: Operation) -> Exchange:
    kernels = _reductions(planner, op)

    def exchange(evaluate: Evaluate, group: Group) -> list[list[Any]]:
        reduced = [
            _reduced(evaluate, kernel, values) for kernel, values in zip(kernels, zip(*group, strict=True), strict=True)
        ]
        return [list(reduced) for _ in group]

    return exchange


def _collective_reduce(planner: Planner, op: Operation) -> Exchange:
    """The first device gets the reduction, and the others zeros."""
    reduce = _all_reduce(planner, op)

    def exchange(evaluate: Evaluate, group: Group) -> list[list[Any]]:
        reduced = reduce(evaluate, group)[0]
        return [reduced, *([np.zeros_like(value) for value in reduced] for _ in group[1:])]

    return exchange


def _reduce_scatter(planner: Planner, op: Operation) -> Exchange:
    (kernel,), dimension = _reductions(planner, op), _integer(op, "scatter_dimension")

    def exchange(evaluate: Evaluate, group: Group) -> list[list[Any]]:
        reduced = _reduced(evaluate, kernel, [value for (value,) in group])
        return [[part] for part in np.split(reduced, len(group), dimension)]

    return exchange


def _collective_broadcast(_: Planner, op: Operation) -> Exchange:
    """From the first device, or from the root in the last operand."""
    has_dynamic_root = len(op.operands) > len(op.results)

    def exchange(_: Evaluate, group: Group) -> list[list[Any]]:
        if not has_dynamic_root:
            return [list(group[0]) for _ in group]
        return [[group[int(root)][index] for index, root in enumerate(values[-1])] for values in group]

    return exchange


def _collective_permute(_: Planner, __: Operation) -> Exchange:
    """:class:`Collective` itself permutes the values."""
    return lambda _, group: [list(values) for values in group]


def _reductions(planner: Planner, op: Operation) -> list[CompiledSegment]:
    """For each operand, the kernel that reduces two tensors of its type."""
    block = op.regions[0].blocks[0]
    (scalar,) = {argument.type for argument in block.arguments}
    tensor = planner.provider.ir.RankedTensorType.get
    types = [tensor(each.type.shape, scalar.element_type, loc=op.location) for each in op.operands]
    return [planner.kernels.of_reduction(block, type_, op.location) for type_ in types]


def _reduced(evaluate: Evaluate, kernel: CompiledSegment, values: Sequence[Any]) -> Any:
    """Operands convert to the type of the function without loss."""
    (type_,) = kernel.results
    assert isinstance(type_, ArgumentType)
    first, *others = (value.astype(type_.dtype, copy=False) for value in values)
    for other in others:
        (first,) = kernel.run(evaluate, [first, other])
    return first


# Transfers of values between devices, and between a device and the host
#
# Sources: StableHLO specification, sections ``send``, ``recv``, ``infeed`` and ``outfeed`` (``docs/spec.md`` in
# openxla/stablehlo); for the host, which exists if different programs run in parallel, ``evalInfeedOp``, ``evalSendOp``
# and ``evalRecvOp`` in ``stablehlo/reference/Ops.cpp``: any device that receives from the host gets values sent to it.

#: Used as the number of a device for the host.
HOST: Final = -1


@dataclass(frozen=True, slots=True)
class Send(Step):
    """The sender does not wait for the receiver."""

    grouping: Grouping | None  # None for the host
    place: str
    channel: int
    operands: Keys
    results: Keys

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        yield Rendezvous(self, tuple(frame[key] for key in self.operands))
        frame.update(dict.fromkeys(self.results))

    def targets(self, grid: Grid, device: int) -> Iterator[int]:
        if self.grouping is None:
            yield HOST
            return
        for source, target in self.grouping.groups(grid):
            if source == device:
                yield target


@dataclass(frozen=True, slots=True)
class Receive(Step):
    grouping: Grouping | None  # None for the host
    place: str
    channel: int
    results: Keys
    types: tuple[ArgumentType, ...]
    operands: Keys = ()

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        values = yield Rendezvous(self, ())
        frame.update(zip(self.results, (*values, None), strict=True))

    def nothing(self) -> tuple[Any, ...]:
        """Zeros for a device that nothing is sent to: the specification leaves its results open."""
        return tuple(np.zeros(type_.shape, type_.dtype) for type_ in self.types)


@dataclass(frozen=True, slots=True)
class Infeed(Step):
    """The host has functions that return the values."""

    place: str
    results: Keys
    operands: Keys = ()

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        if not device.feed:
            raise EngineError(f"{self.place}: its source has no more values")
        values = yield from device.functions[device.feed.popleft()].run(device, {}, ())
        if len(values) + 1 != len(self.results):
            raise EngineError(
                f"{self.place}: its source provided {len(values)} values, expected {len(self.results) - 1}"
            )
        frame.update(zip(self.results, (*values, None), strict=True))


@dataclass(frozen=True, slots=True)
class Outfeed(Immediate):
    """The host ignores the values."""

    results: Keys
    operands: Keys = ()

    def take(self, device: Device, frame: Frame) -> None:
        frame.update(dict.fromkeys(self.results))


# Execution of devices in lockstep: each runs until it needs other devices, which then run
#
# No threads are used, so that the number of devices does not depend on the machine.


class Lockstep:
    def __init__(self, grid: Grid, devices: Sequence[Device], runs: Sequence[DeviceRun]) -> None:
        self._grid = grid
        self._devices = devices
        self._runs = runs
        self._waiting: dict[int, Rendezvous] = {}
        self._finished: dict[int, list[Any]] = {}
        # The values sent to each device, by channel.
        self._mail: defaultdict[tuple[int, int], deque[tuple[Any, ...]]] = defaultdict(deque)
        self._groups: dict[int, Groups] = {}

    def run(self) -> list[list[Any]]:
        for number in range(len(self._runs)):
            self._advance(number, None)
        while self._waiting:
            gone_on = [self._try(number) for number in list(self._waiting)]
            if not any(gone_on):
                raise EngineError(self._stuck())
        return [self._finished[number] for number in range(len(self._runs))]

    def _advance(self, number: int, answer: Any) -> None:
        """Runs a device until it needs other devices, or to its end."""
        try:
            self._waiting[number] = self._runs[number].send(answer)
        except StopIteration as stop:
            self._waiting.pop(number, None)
            self._finished[number] = stop.value

    def _try(self, number: int) -> bool:
        """Resumes a device and the others of its group, if the values that it waits for are available."""
        at = self._waiting.get(number)
        if at is None:
            return False
        if isinstance(at.step, Send):
            for target in at.step.targets(self._grid, number):
                self._mail[at.step.channel, target].append(at.values)
            self._advance(number, ())
            return True
        if not isinstance(at.step, Receive):
            return self._meet(number, at.step)
        grouping = at.step.grouping
        if grouping is not None and not any(target == number for _, target in grouping.groups(self._grid)):
            self._advance(number, at.step.nothing())
        elif mail := self._mail[at.step.channel, HOST if grouping is None else number]:
            self._advance(number, mail.popleft())
        else:
            return False
        return True

    def _meet(self, number: int, step: Collective) -> bool:
        if id(step) not in self._groups:
            self._groups[id(step)] = step.groups(self._grid)
        members = next((group for group in self._groups[id(step)] if number in group), None)
        if members is None:
            alone = step.alone(self._waiting[number].values)
            if alone is None:
                raise EngineError(f"{step.grouping.place}: {self._named(number)} belongs to none of its groups")
            self._advance(number, alone)
            return True
        met = [self._waiting[each] for each in members if each in self._waiting]
        if len(met) < len(members) or any(each.step is not step for each in met):
            return False
        evaluate = self._devices[number].evaluate
        answers = step.exchanged(evaluate, self._grid, members, [each.values for each in met])
        for each, answer in zip(members, answers, strict=True):
            self._advance(each, answer)
        return True

    def _stuck(self) -> str:
        lines = ["deadlock: all devices of a group must reach the same collective:"]
        for number in range(len(self._runs)):
            at = self._waiting.get(number)
            what = "has finished" if at is None else f"waits at {at.step.place}"
            lines.append(f"{self._named(number)} {what}")
        return "\n  ".join(lines)

    def _named(self, number: int) -> str:
        replica, partition = self._grid.place(number)
        return f"device {number} (replica {replica}, partition {partition})"


# Steps for ops that involve several devices, constructed from the program
#
# Source: StableHLO specification, the section on each op (``docs/spec.md`` in openxla/stablehlo).


def _collective(exchange: Callable[[Planner, Operation], Exchange]) -> Callable[[Planner, Operation], Step]:
    def make(planner: Planner, op: Operation) -> Step:
        operands, results = planner.used(op.operands), planner.defined(op.results)
        grouping = grouping_of(op, planner.place(op), planner.mesh)
        return Collective(str(op.name), grouping, exchange(planner, op), operands, results, planner.types(op))

    return make


def _send(planner: Planner, op: Operation) -> Step:
    *operands, _ = op.operands
    return Send(
        _pairs(planner, op), planner.place(op), channel_of(op), planner.used(operands), planner.defined(op.results)
    )


def _receive(planner: Planner, op: Operation) -> Step:
    *results, _ = op.results
    types = tuple(parse_tensor_type(str(each.type)) for each in results)
    return Receive(_pairs(planner, op), planner.place(op), channel_of(op), planner.defined(op.results), types)


def _infeed(planner: Planner, op: Operation) -> Step:
    if not planner.has_host:
        raise planner.refusal(op, "there is no host as its source")
    return Infeed(planner.place(op), planner.defined(op.results))


def _outfeed(planner: Planner, op: Operation) -> Step:
    if not planner.has_host:
        raise planner.refusal(op, "there is no host as its consumer")
    return Outfeed(planner.defined(op.results))


def _pairs(planner: Planner, op: Operation) -> Grouping | None:
    """``None`` for a transfer between a device and the host."""
    if "is_host_transfer" in op.attributes and op.attributes["is_host_transfer"].value:
        if planner.has_host:
            return None
        raise planner.refusal(op, "there is no host at the other end of its channel")
    grouping = grouping_of(op, planner.place(op), planner.mesh)
    if not grouping.ids:
        raise planner.refusal(op, f"it has no {GROUPS[str(op.name)]}, which is required between devices")
    return grouping


#: Creates the steps of ops that involve several devices.
DISTRIBUTED: Final[Mapping[str, Callable[[Planner, Operation], Step]]] = {
    "stablehlo.all_gather": _collective(_all_gather),
    "stablehlo.all_reduce": _collective(_all_reduce),
    "stablehlo.all_to_all": _collective(_all_to_all),
    "stablehlo.collective_broadcast": _collective(_collective_broadcast),
    "stablehlo.collective_permute": _collective(_collective_permute),
    "stablehlo.collective_reduce": _collective(_collective_reduce),
    "stablehlo.infeed": _infeed,
    "stablehlo.outfeed": _outfeed,
    "stablehlo.partition_id": lambda planner, op: Identify(False, planner.defined(op.results)),
    "stablehlo.recv": _receive,
    "stablehlo.reduce_scatter": _collective(_reduce_scatter),
    "stablehlo.replica_id": lambda planner, op: Identify(True, planner.defined(op.results)),
    "stablehlo.send": _send,
}


# Computations on the parts of values that devices share, within a program of unsplit values
#
# All devices step through such a program, each with all unsplit values: a device takes its part at the beginning of a
# manual computation, and receives those of the others at the end. Sources: ``sdy.manual_computation`` in
# ``shardy/dialect/sdy/ir/ops.td`` in openxla/shardy; for GSPMD ``HandleCustomCall`` in
# ``xla/service/spmd/spmd_partitioner.cc`` in openxla/xla.

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
class ManualComputation(Nested):
    """A body that each device runs on its parts."""

    operands: Keys
    cuts: tuple[Cut, ...]  # select the parts, the arguments of the body
    blocks: tuple[StepBlock, ...]
    returned: Keys
    joins: tuple[Collective, ...]  # join the results of the body
    results: Keys

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        (body,) = self.blocks
        for cut in self.cuts:
            cut.take(device, frame)
        given = yield from body.run(device, frame, [frame[key] for cut in self.cuts for key in cut.results])
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


def manual_computation(planner: Planner, op: Operation, blocks: tuple[StepBlock, ...]) -> Step:
    """Return the step that runs the body on the parts of values."""
    place = planner.place(op)
    axes = _QUOTED.findall(str(op.attributes["manual_axes"]))
    block = op.regions[0].blocks[0]
    ends = list(block.operations)[-1].operation.operands
    tilings = []
    for name, values in (("in_shardings", op.operands), ("out_shardings", op.results)):
        found = shardy_tilings(str(op.attributes[name]), axes, planner.mesh)
        if found is None or len(found) != len(values):
            raise planner.refusal(op, f"its {name} are not supported: {op.attributes[name]}")
        tilings.append(found)
    used, parts = planner.used(op.operands), planner.defined(block.arguments)
    cuts = tuple(Cut(place, tiling, (key,), (part,)) for tiling, key, part in zip(tilings[0], used, parts, strict=True))
    # A value may be returned twice, and each occurrence is joined separately.
    returned = planner.used(ends)
    results = planner.defined(op.results)
    joins = tuple(
        _join(op, place, *each) for each in zip(tilings[1], returned, results, planner.types(op), strict=True)
    )
    return ManualComputation(used, cuts, blocks, returned, joins, results)


def cut_or_join(planner: Planner, op: Operation) -> Step | None:
    """For calls that start or end a manual computation of GSPMD; ``None`` if nothing is split."""
    (operand,), (result,) = op.operands, op.results
    if operand.type == result.type:
        return None
    is_cut = op.attributes["call_target_name"].value == _CUT
    name = _OF_OPERAND if is_cut else _SHARDING
    text = str(op.attributes[name].value) if name in op.attributes else ""
    (type_,) = planner.types(op)
    whole, part = (operand.type.shape, type_.shape) if is_cut else (type_.shape, operand.type.shape)
    tiling = gspmd_tiling(text, len(whole))
    if tiling is None or [count * size for count, size in zip(tiling.counts, part, strict=True)] != list(whole):
        raise planner.refusal(
            op, f"its sharding {text or '(it has none)'} does not split {list(whole)} into parts {list(part)}"
        )
    (key,) = planner.used(op.operands)
    results = planner.defined(op.results)
    place = planner.place(op)
    return Cut(place, tiling, (key,), results) if is_cut else _join(op, place, tiling, key, results[0], type_)


def _join(op: Operation, place: str, tiling: Tiling, operand: int, result: int, type_: ArgumentType) -> Collective:
    def exchange(_: Evaluate, group: Group) -> list[list[Any]]:
        whole = tiling.joined([part for (part,) in group])
        return [[whole] for _ in group]

    grouping = Grouping(place, "flattened_ids", tiling.groups, False)
    return Collective(str(op.name), grouping, exchange, (operand,), (result,), (type_,))
