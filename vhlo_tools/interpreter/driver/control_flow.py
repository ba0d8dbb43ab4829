"""Calls, loops and branches, as steps."""

# ruff: noqa: D102 - the members are those of a step, and documented there

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.driver.steps import Block, Device, Frame, Immediate, Keys, Step, Walk

__all__ = ["Asynchronous", "Branch", "FunctionCall", "Unpack", "While"]

#: Calls may be so deep, each of which takes a few frames of Python.
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class FunctionCall(Step):
    """A function that is walked is called.

    Attributes:
        function: Its name.
        place: The call, for messages.
        operands: What it is given.
        results: What it gives.
    """

    function: str
    place: str
    operands: Keys
    results: Keys

    def walk(self, device: Device, frame: Frame) -> Walk:
        if device.depth == _DEEPEST:
            raise EngineError(
                f"{self.place}: calls are {_DEEPEST} deep here, and functions with custom calls, collectives or probes "
                "are called no deeper: does the recursion end?"
            )
        device.depth += 1
        values = [frame[key] for key in self.operands]
        returned = yield from device.functions[self.function].walk(device, {}, values)
        device.depth -= 1
        frame.update(zip(self.results, returned, strict=True))


@dataclass(frozen=True, slots=True)
class While(Step):
    """A loop."""

    condition: Block
    body: Block
    operands: Keys
    results: Keys

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.condition, self.body

    def walk(self, device: Device, frame: Frame) -> Walk:
        values = [frame[key] for key in self.operands]
        device.iterations.append(0)
        while True:
            (more,) = yield from self.condition.walk(device, frame, values)
            if not more:
                break
            values = yield from self.body.walk(device, frame, values)
            device.iterations[-1] += 1
        device.iterations.pop()
        frame.update(zip(self.results, values, strict=True))


@dataclass(frozen=True, slots=True)
class Branch(Step):
    """One of several blocks: by a boolean the first if it is true, by an index the last if it is none of them."""

    branches: tuple[Block, ...]
    operands: Keys
    results: Keys

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.branches

    def walk(self, device: Device, frame: Frame) -> Walk:
        chosen = frame[self.operands[0]]
        if chosen.dtype == np.bool_:
            number = 0 if chosen else 1
        else:
            number = int(chosen) if 0 <= chosen < len(self.branches) else len(self.branches) - 1
        values = yield from self.branches[number].walk(device, frame, ())
        frame.update(zip(self.results, values, strict=True))


@dataclass(frozen=True, slots=True)
class Asynchronous(Step):
    """Something that is started, and done at once; its result is the future of its values."""

    block: Block
    operands: Keys
    results: Keys

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (self.block,)

    def walk(self, device: Device, frame: Frame) -> Walk:
        values = yield from self.block.walk(device, frame, [frame[key] for key in self.operands])
        (future,) = self.results
        frame[future] = tuple(values)


@dataclass(frozen=True, slots=True)
class Unpack(Immediate):
    """The values of a future."""

    operands: Keys
    results: Keys

    def take(self, device: Device, frame: Frame) -> None:
        frame.update(zip(self.results, frame[self.operands[0]], strict=True))
