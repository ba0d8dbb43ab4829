"""Values that one device sends to another, or to the host and gets from it.

Sources: StableHLO specification, sections ``send``, ``recv``, ``infeed`` and ``outfeed`` (``docs/spec.md`` in
openxla/stablehlo); for the host, which is there where different programs run at once, ``evalInfeedOp``, ``evalSendOp``
and ``evalRecvOp`` in ``stablehlo/reference/Ops.cpp``: what is sent to the host, whoever receives from it gets.
"""

# ruff: noqa: D102 - the members are those of a step, and documented there

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.driver.steps import Device, Frame, Immediate, Keys, Rendezvous, Step, Walk
from vhlo_tools.interpreter.grid import Grid, Grouping
from vhlo_tools.interpreter.values import ArgumentType

__all__ = ["HOST", "Infeed", "Outfeed", "Receive", "Send"]

#: What stands for the number of a device.
HOST: Final = -1


@dataclass(frozen=True, slots=True)
class Send(Step):
    """Values are sent through a channel, and not waited for.

    Attributes:
        grouping: Sources and targets; ``None`` for the host.
        place: The op and where it stands, for messages.
        channel: The number of the channel.
        operands: What is sent.
        results: The token.
    """

    grouping: Grouping | None
    place: str
    channel: int
    operands: Keys
    results: Keys

    def walk(self, device: Device, frame: Frame) -> Walk:
        yield Rendezvous(self, tuple(frame[key] for key in self.operands))
        frame.update(dict.fromkeys(self.results))

    def targets(self, grid: Grid, device: int) -> Iterator[int]:
        """Yield the devices that a device sends to."""
        if self.grouping is None:
            yield HOST
            return
        for source, target in self.grouping.groups(grid):
            if source == device:
                yield target


@dataclass(frozen=True, slots=True)
class Receive(Step):
    """Values are received through a channel.

    Attributes:
        grouping: Sources and targets; ``None`` for the host.
        place: The op and where it stands, for messages.
        channel: The number of the channel.
        results: What is received, and the token.
        types: The types of what is received.
    """

    grouping: Grouping | None
    place: str
    channel: int
    results: Keys
    types: tuple[ArgumentType, ...]
    operands: Keys = ()

    def walk(self, device: Device, frame: Frame) -> Walk:
        values = yield Rendezvous(self, ())
        frame.update(zip(self.results, (*values, None), strict=True))

    def has_source(self, grid: Grid, device: int) -> bool:
        """Tell whether anything is sent to a device."""
        return self.grouping is None or any(target == device for _, target in self.grouping.groups(grid))

    def mailbox(self, device: int) -> tuple[int, int]:
        """Return the channel, and whom it is that what a device receives was sent to."""
        return self.channel, HOST if self.grouping is None else device

    def nothing(self) -> tuple[Any, ...]:
        """Return what a device gets that nothing is sent to, which the specification leaves open: zeros."""
        return tuple(np.zeros(kind.shape, kind.dtype) for kind in self.types)


@dataclass(frozen=True, slots=True)
class Infeed(Step):
    """Values come from the host, which has functions that give them.

    Attributes:
        place: The op and where it stands, for messages.
        results: The values, and the token.
    """

    place: str
    results: Keys

    @property
    def uses(self) -> frozenset[int]:
        return frozenset()

    def walk(self, device: Device, frame: Frame) -> Walk:
        if not device.feed:
            raise EngineError(f"{self.place}: there is nothing left to feed it")
        values = yield from device.functions[device.feed.popleft()].walk(device, {}, ())
        if len(values) + 1 != len(self.results):
            raise EngineError(f"{self.place}: it is fed {len(values)} values, expected {len(self.results) - 1}")
        frame.update(zip(self.results, (*values, None), strict=True))


@dataclass(frozen=True, slots=True)
class Outfeed(Immediate):
    """Values go to the host, which nobody asks for them.

    Attributes:
        results: The token.
    """

    results: Keys

    @property
    def uses(self) -> frozenset[int]:
        return frozenset()

    def take(self, device: Device, frame: Frame) -> None:
        frame.update(dict.fromkeys(self.results))
