"""The steps of a program that is stepped through, and their execution by a device.

The run of a device is a generator, which yields where it needs other devices and is sent the result of the exchange.
Each step reads and writes values by number, in the frame of its function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from vhlo_tools.execution.probes.probes import ProbeSite
from vhlo_tools.execution.stepping.segment_evaluation import Evaluate
from vhlo_tools.records import dataclass

Keys = tuple[int, ...]
Frame = dict[int, Any]


@dataclass(slots=True)
class Device:
    number: int  # replica * partitions + partition
    replica: int
    partition: int
    functions: Mapping[str, StepBlock]
    evaluate: Evaluate
    emit: Callable[[ProbeSite, tuple[int, ...], Any, int], None]  # receiver of probed values
    iterations: list[int] = field(default_factory=list)  # current ones, of the enclosing loops
    depth: int = 0  # of calls
    #: functions that return the values of infeeds, in order; shared by all devices
    feed: deque[str] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """A point at which a device waits for others."""

    step: Any
    values: tuple[Any, ...]  # contributed by the device


#: The run of a device; it returns the results of the step or block.
DeviceRun = Generator[Rendezvous, Sequence[Any], Any]


class Step(ABC):
    __slots__ = ()
    operands: Keys
    results: Keys

    @property
    def blocks(self) -> tuple[StepBlock, ...]:
        return ()

    @property
    def uses(self) -> frozenset[int]:
        return frozenset(self.operands).union(*(block.uses for block in self.blocks))

    @abstractmethod
    def run(self, device: Device, frame: Frame) -> DeviceRun: ...


class Immediate(Step):
    """A step that needs no other devices."""

    __slots__ = ()

    @abstractmethod
    def take(self, device: Device, frame: Frame) -> None: ...

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        self.take(device, frame)
        yield from ()


class StepBlock:
    def __init__(self, arguments: Keys, steps: Sequence[Step], returned: Keys) -> None:
        self._arguments = arguments
        self._steps = tuple(steps)
        self._returned = returned

    @cached_property
    def uses(self) -> frozenset[int]:
        return frozenset(self._returned).union(*(step.uses for step in self._steps))

    @cached_property
    def _ended(self) -> list[Keys]:
        """For each step, the values of the block that no later step needs."""
        own = {*self._arguments, *(key for step in self._steps for key in step.results)}
        needed = set(self._returned)
        ended = []
        for step in reversed(self._steps):
            ended.append(tuple(({*step.uses, *step.results} & own) - needed))
            needed |= step.uses
        return ended[::-1]

    def run(self, device: Device, frame: Frame, values: Sequence[Any]) -> DeviceRun:
        frame.update(zip(self._arguments, values, strict=True))
        for step, ended in zip(self._steps, self._ended, strict=True):
            yield from step.run(device, frame)
            for key in ended:
                frame.pop(key, None)
        return [frame[key] for key in self._returned]
