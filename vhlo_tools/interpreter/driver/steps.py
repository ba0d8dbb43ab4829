"""The steps of a program that is walked, and how a device takes them.

A device is walked by a generator, which stops where it needs other devices and is sent what comes of that. Each step
reads and writes values by number, in the frame of the function that it is in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from vhlo_tools.interpreter.driver.evaluation import Evaluate
from vhlo_tools.interpreter.probing import ProbeSite

__all__ = ["Block", "Device", "Frame", "Immediate", "Keys", "Rendezvous", "Step", "Walk"]

Keys = tuple[int, ...]
Frame = dict[int, Any]


@dataclass(slots=True)
class Device:
    """A device, or the only one.

    Attributes:
        number: Its number: that of its replica times the number of partitions, plus that of its partition.
        replica: The number of its replica.
        partition: The number of its partition.
        functions: The functions that are walked.
        evaluate: What evaluates segments.
        emit: What is given probed values.
        iterations: The iterations of the loops that it is in.
        depth: How many calls it is in.
        feed: The functions whose results infeeds are given, in order; all devices of a grid have the same.
    """

    number: int
    replica: int
    partition: int
    functions: Mapping[str, Block]
    evaluate: Evaluate
    emit: Callable[[ProbeSite, tuple[int, ...], Any, int], None]
    iterations: list[int] = field(default_factory=list)
    depth: int = 0
    feed: deque[str] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """What a device waits for.

    Attributes:
        step: The step that it is at.
        values: What it brings.
    """

    step: Any
    values: tuple[Any, ...]


#: The walk of a device; it returns what the step or the block gives.
Walk = Generator[Rendezvous, Sequence[Any], Any]


class Step(ABC):
    """A step.

    Attributes:
        operands: The values that it reads.
        results: The values that it writes.
    """

    __slots__ = ()
    operands: Keys
    results: Keys

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks within it."""
        return ()

    @property
    def uses(self) -> frozenset[int]:
        """The values that it reads, blocks within it too."""
        return frozenset(self.operands).union(*(block.uses for block in self.blocks))

    @abstractmethod
    def walk(self, device: Device, frame: Frame) -> Walk:
        """Take it."""


class Immediate(Step):
    """A step that needs no other devices."""

    __slots__ = ()

    @abstractmethod
    def take(self, device: Device, frame: Frame) -> None:
        """Take it."""

    def walk(self, device: Device, frame: Frame) -> Walk:
        """Take it."""
        self.take(device, frame)
        yield from ()


class Block:
    """A block of ops.

    Args:
        arguments: The values that it takes.
        steps: Its steps.
        returned: The values that it gives.
    """

    def __init__(self, arguments: Keys, steps: Sequence[Step], returned: Keys) -> None:
        self._arguments = arguments
        self._steps = tuple(steps)
        self._returned = returned

    @cached_property
    def uses(self) -> frozenset[int]:
        """The values that it reads."""
        return frozenset(self._returned).union(*(step.uses for step in self._steps))

    @cached_property
    def _ended(self) -> list[Keys]:
        """For each step, the values of the block that nothing needs after it."""
        own = {*self._arguments, *(key for step in self._steps for key in step.results)}
        needed = set(self._returned)
        ended = []
        for step in reversed(self._steps):
            ended.append(tuple(({*step.uses, *step.results} & own) - needed))
            needed |= step.uses
        return ended[::-1]

    def walk(self, device: Device, frame: Frame, values: Sequence[Any]) -> Walk:
        """Take its steps, and return what it gives."""
        frame.update(zip(self._arguments, values, strict=True))
        for step, ended in zip(self._steps, self._ended, strict=True):
            yield from step.walk(device, frame)
            for key in ended:
                frame.pop(key, None)
        return [frame[key] for key in self._returned]
