"""Collectives: the exchange of values in groups of devices.

Source: StableHLO specification, the section on each op (``docs/spec.md`` in openxla/stablehlo).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vhlo_tools.errors import EngineError
from vhlo_tools.execution.devices.grid import Grid, Grouping, Groups
from vhlo_tools.execution.stepping.kernels import Kernel
from vhlo_tools.execution.stepping.segment_evaluation import Evaluate
from vhlo_tools.execution.stepping.steps import Device, DeviceRun, Frame, Keys, Rendezvous, Step
from vhlo_tools.execution.values.arrays import ArgumentType
from vhlo_tools.records import dataclass

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


def all_gather(dimension: int) -> Exchange:
    def exchange(_: Evaluate, group: Group) -> list[list[Any]]:
        gathered = [np.concatenate(values, dimension) for values in zip(*group, strict=True)]
        return [list(gathered) for _ in group]

    return exchange


def all_to_all(split: int, concat: int, count: int) -> Exchange:
    def exchange(_: Evaluate, group: Group) -> list[list[Any]]:
        parts = [[np.split(value, count, split) for value in values] for values in group]
        return [
            [np.concatenate([each[number][index] for each in parts], concat) for number in range(len(group[0]))]
            for index in range(len(group))
        ]

    return exchange


def all_reduce(kernels: Sequence[Kernel]) -> Exchange:
    def exchange(evaluate: Evaluate, group: Group) -> list[list[Any]]:
        reduced = [
            _reduced(evaluate, kernel, values) for kernel, values in zip(kernels, zip(*group, strict=True), strict=True)
        ]
        return [list(reduced) for _ in group]

    return exchange


def collective_reduce(kernels: Sequence[Kernel]) -> Exchange:
    """The first device gets the reduction, and the others zeros."""
    reduce = all_reduce(kernels)

    def exchange(evaluate: Evaluate, group: Group) -> list[list[Any]]:
        reduced = reduce(evaluate, group)[0]
        return [reduced, *([np.zeros_like(value) for value in reduced] for _ in group[1:])]

    return exchange


def reduce_scatter(kernel: Kernel, dimension: int) -> Exchange:
    def exchange(evaluate: Evaluate, group: Group) -> list[list[Any]]:
        reduced = _reduced(evaluate, kernel, [value for (value,) in group])
        return [[part] for part in np.split(reduced, len(group), dimension)]

    return exchange


def collective_broadcast(has_dynamic_root: bool) -> Exchange:
    """From the first device, or from the root in the last operand."""

    def exchange(_: Evaluate, group: Group) -> list[list[Any]]:
        if not has_dynamic_root:
            return [list(group[0]) for _ in group]
        return [[group[int(root)][index] for index, root in enumerate(values[-1])] for values in group]

    return exchange


def collective_permute(_: Evaluate, group: Group) -> list[list[Any]]:
    """:class:`Collective` itself permutes the values."""
    return [list(values) for values in group]


def _reduced(evaluate: Evaluate, kernel: Kernel, values: Sequence[Any]) -> Any:
    """Operands convert to the type of the function without loss."""
    (type_,) = kernel.results
    assert isinstance(type_, ArgumentType)
    first, *others = (value.astype(type_.dtype, copy=False) for value in values)
    for other in others:
        (first,) = kernel.run(evaluate, [first, other])
    return first
