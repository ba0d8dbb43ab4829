"""Transfers of values between devices, and between a device and the host.

Sources: StableHLO specification, sections ``send``, ``recv``, ``infeed`` and ``outfeed`` (``docs/spec.md`` in
openxla/stablehlo); for the host, which exists if different programs run in parallel, ``evalInfeedOp``, ``evalSendOp``
and ``evalRecvOp`` in ``stablehlo/reference/Ops.cpp``: any device that receives from the host gets values sent to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from vhlo_tools.errors import EngineError
from vhlo_tools.execution.devices.grid import Grid, Grouping
from vhlo_tools.execution.stepping.steps import Device, DeviceRun, Frame, Immediate, Keys, Rendezvous, Step
from vhlo_tools.execution.values.arrays import ArgumentType
from vhlo_tools.records import dataclass

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

    def has_source(self, grid: Grid, device: int) -> bool:
        return self.grouping is None or any(target == device for _, target in self.grouping.groups(grid))

    def mailbox(self, device: int) -> tuple[int, int]:
        """The channel and the addressee, a device or the host."""
        return self.channel, HOST if self.grouping is None else device

    def nothing(self) -> tuple[Any, ...]:
        """Zeros for a device that nothing is sent to: the specification leaves its results open."""
        return tuple(np.zeros(type_.shape, type_.dtype) for type_ in self.types)


@dataclass(frozen=True, slots=True)
class Infeed(Step):
    """The host has functions that return the values."""

    place: str
    results: Keys

    @property
    def uses(self) -> frozenset[int]:
        return frozenset()

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

    @property
    def uses(self) -> frozenset[int]:
        return frozenset()

    def take(self, device: Device, frame: Frame) -> None:
        frame.update(dict.fromkeys(self.results))
