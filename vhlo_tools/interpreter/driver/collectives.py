"""Collectives: what devices that meet give each other.

Source: StableHLO specification, the section on each op (``docs/spec.md`` in openxla/stablehlo).
"""

# ruff: noqa: D102 - the members are those of a step, and documented there

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.driver.evaluation import Evaluate
from vhlo_tools.interpreter.driver.kernels import Kernel
from vhlo_tools.interpreter.driver.steps import Device, Frame, Keys, Rendezvous, Step, Walk
from vhlo_tools.interpreter.grid import Grid, Grouping, Groups
from vhlo_tools.interpreter.values import ArgumentType

__all__ = [
    "Collective",
    "Exchange",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "collective_broadcast",
    "collective_permute",
    "collective_reduce",
    "reduce_scatter",
]

#: The values of one member of a group, and of all of them in order.
Values = Sequence[Any]
Group = Sequence[Values]

#: Returns what each member of a group gets, of what evaluates kernels and of what each member brings.
Exchange = Callable[[Evaluate, Group], list[list[Any]]]


@dataclass(frozen=True, slots=True)
class Collective(Step):
    """A collective, as a step.

    Attributes:
        name: The name of the op.
        grouping: Which devices meet.
        exchange: What happens in a group.
        operands: What each device brings.
        results: What each device gets.
        types: Of what types that is.
    """

    name: str
    grouping: Grouping
    exchange: Exchange
    operands: Keys
    results: Keys
    types: tuple[ArgumentType, ...]

    @property
    def place(self) -> str:
        """The op and where it stands, for messages."""
        return self.grouping.place

    def walk(self, device: Device, frame: Frame) -> Walk:
        values = yield Rendezvous(self, tuple(frame[key] for key in self.operands))
        for number, (key, value, kind) in enumerate(zip(self.results, values, self.types, strict=True)):
            if value.shape != kind.shape:
                raise EngineError(
                    f"{self.grouping.place}: result {number} is of the shape {list(value.shape)} here, but the program "
                    f"says {kind.text}: it was made for other groups of devices"
                )
            frame[key] = value

    def groups(self, grid: Grid) -> Groups:
        """Return the devices that meet: those of each group; of a permutation, all among which it is.

        Raises:
            EngineError: If there are ids of devices that are not there, or twice.
        """
        groups = self.grouping.groups(grid)
        return self.grouping.all(grid) if self.grouping.is_pairs else groups

    def exchanged(self, evaluate: Evaluate, grid: Grid, members: Sequence[int], group: Group) -> list[list[Any]]:
        """Return what each of the devices that met gets.

        Args:
            evaluate: What evaluates reductions.
            grid: All devices.
            members: The devices that met.
            group: What each of them brings.
        """
        if not self.grouping.is_pairs:
            try:
                return self.exchange(evaluate, group)
            except (ValueError, IndexError) as error:
                raise EngineError(
                    f"{self.grouping.place}: it is not for groups of {len(group)} devices: {error}"
                ) from error
        sources = {target: source for source, target in self.grouping.groups(grid)}
        brought = dict(zip(members, group, strict=True))
        return [
            list(brought[sources[each]]) if each in sources else [np.zeros_like(value) for value in brought[each]]
            for each in members
        ]

    def alone(self, values: Values) -> list[Any] | None:
        """Return what a device gets that is in no group, ``None`` if there can be none."""
        if self.name != "stablehlo.collective_broadcast":
            return None
        return [np.zeros(kind.shape, kind.dtype) for kind, _ in zip(self.types, values, strict=False)]


def all_gather(dimension: int) -> Exchange:
    """Everybody gets what all bring, one after the other along a dimension."""

    def exchange(_: Evaluate, group: Group) -> list[list[Any]]:
        gathered = [np.concatenate(values, dimension) for values in zip(*group, strict=True)]
        return [list(gathered) for _ in group]

    return exchange


def all_to_all(split: int, concat: int, count: int) -> Exchange:
    """Everybody splits what it brings along a dimension, and gets one part of everybody."""

    def exchange(_: Evaluate, group: Group) -> list[list[Any]]:
        parts = [[np.split(value, count, split) for value in values] for values in group]
        return [
            [np.concatenate([each[number][index] for each in parts], concat) for number in range(len(group[0]))]
            for index in range(len(group))
        ]

    return exchange


def all_reduce(kernels: Sequence[Kernel]) -> Exchange:
    """Everybody gets what a function of two makes of what all bring.

    Args:
        kernels: For each operand, the function.
    """

    def exchange(evaluate: Evaluate, group: Group) -> list[list[Any]]:
        reduced = [
            _reduced(evaluate, kernel, values) for kernel, values in zip(kernels, zip(*group, strict=True), strict=True)
        ]
        return [list(reduced) for _ in group]

    return exchange


def collective_reduce(kernels: Sequence[Kernel]) -> Exchange:
    """The first gets what a function of two makes of what all bring, and the others zeros.

    Args:
        kernels: For each operand, the function.
    """
    reduce = all_reduce(kernels)

    def exchange(evaluate: Evaluate, group: Group) -> list[list[Any]]:
        reduced = reduce(evaluate, group)[0]
        return [reduced, *([np.zeros_like(value) for value in reduced] for _ in group[1:])]

    return exchange


def reduce_scatter(kernel: Kernel, dimension: int) -> Exchange:
    """Everybody gets its part, along a dimension, of what a function of two makes of what all bring."""

    def exchange(evaluate: Evaluate, group: Group) -> list[list[Any]]:
        reduced = _reduced(evaluate, kernel, [value for (value,) in group])
        return [[part] for part in np.split(reduced, len(group), dimension)]

    return exchange


def collective_broadcast(has_dynamic_root: bool) -> Exchange:
    """Everybody gets what the first brings, or the one whose number everybody brings as well."""

    def exchange(_: Evaluate, group: Group) -> list[list[Any]]:
        if not has_dynamic_root:
            return [list(group[0]) for _ in group]
        return [[group[int(root)][index] for index, root in enumerate(values[-1])] for values in group]

    return exchange


def collective_permute(_: Evaluate, group: Group) -> list[list[Any]]:
    """Everybody keeps what it has; who sends what to whom is up to :class:`Collective`."""
    return [list(values) for values in group]


def _reduced(evaluate: Evaluate, kernel: Kernel, values: Sequence[Any]) -> Any:
    """Return what a function of two makes of values, from the first on.

    Values are of the type of the operands, which becomes that of the function without loss.
    """
    (kind,) = kernel.results
    assert isinstance(kind, ArgumentType)
    first, *others = (value.astype(kind.dtype, copy=False) for value in values)
    for other in others:
        (first,) = kernel.run(evaluate, [first, other])
    return first
