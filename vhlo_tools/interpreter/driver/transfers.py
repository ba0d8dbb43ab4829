"""Values that one device sends to another.

Source: StableHLO specification, sections ``send`` and ``recv`` (``docs/spec.md`` in openxla/stablehlo).
"""

# ruff: noqa: D102 - the members are those of a step, and documented there

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vhlo_tools.interpreter.driver.steps import Device, Frame, Keys, Rendezvous, Step, Walk
from vhlo_tools.interpreter.grid import Grid, Grouping
from vhlo_tools.interpreter.values import ArgumentType

__all__ = ["Receive", "Send"]


@dataclass(frozen=True, slots=True)
class Send(Step):
    """Values are sent through a channel, and not waited for.

    Attributes:
        grouping: Sources and targets.
        channel: The number of the channel.
        operands: What is sent.
        results: The token.
    """

    grouping: Grouping
    channel: int
    operands: Keys
    results: Keys

    def walk(self, device: Device, frame: Frame) -> Walk:
        yield Rendezvous(self, tuple(frame[key] for key in self.operands))
        frame.update(dict.fromkeys(self.results))

    def targets(self, grid: Grid, device: int) -> Iterator[int]:
        """Yield the devices that a device sends to."""
        for source, target in self.grouping.groups(grid):
            if source == device:
                yield target


@dataclass(frozen=True, slots=True)
class Receive(Step):
    """Values are received through a channel.

    Attributes:
        grouping: Sources and targets.
        channel: The number of the channel.
        results: What is received, and the token.
        types: The types of what is received.
    """

    grouping: Grouping
    channel: int
    results: Keys
    types: tuple[ArgumentType, ...]
    operands: Keys = ()

    def walk(self, device: Device, frame: Frame) -> Walk:
        values = yield Rendezvous(self, ())
        frame.update(zip(self.results, (*values, None), strict=True))

    def has_source(self, grid: Grid, device: int) -> bool:
        """Tell whether anything is sent to a device."""
        return any(target == device for _, target in self.grouping.groups(grid))

    def nothing(self) -> tuple[Any, ...]:
        """Return what a device gets that nothing is sent to, which the specification leaves open: zeros."""
        return tuple(np.zeros(kind.shape, kind.dtype) for kind in self.types)
