"""Calls, loops and branches, as steps."""

from __future__ import annotations

from typing import Final

import numpy as np

from vhlo_tools.errors import EngineError
from vhlo_tools.execution.stepping.steps import Device, DeviceRun, Frame, Immediate, Keys, Step, StepBlock
from vhlo_tools.records import dataclass

#: The greatest depth of calls, each of which needs a few Python frames.
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class FunctionCall(Step):
    function: str
    place: str
    operands: Keys
    results: Keys

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        if device.depth == _DEEPEST:
            raise EngineError(
                f"{self.place}: calls are nested {_DEEPEST} deep, the limit for functions with custom calls, "
                f"collectives or probes: check that the recursion ends"
            )
        device.depth += 1
        values = [frame[key] for key in self.operands]
        returned = yield from device.functions[self.function].run(device, {}, values)
        device.depth -= 1
        frame.update(zip(self.results, returned, strict=True))


@dataclass(frozen=True, slots=True)
class While(Step):
    condition: StepBlock
    body: StepBlock
    operands: Keys
    results: Keys

    @property
    def blocks(self) -> tuple[StepBlock, ...]:
        return self.condition, self.body

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        values = [frame[key] for key in self.operands]
        device.iterations.append(0)
        while True:
            (more,) = yield from self.condition.run(device, frame, values)
            if not more:
                break
            values = yield from self.body.run(device, frame, values)
            device.iterations[-1] += 1
        device.iterations.pop()
        frame.update(zip(self.results, values, strict=True))


@dataclass(frozen=True, slots=True)
class Branch(Step):
    """The first block is for true; an index out of range selects the last."""

    branches: tuple[StepBlock, ...]
    operands: Keys
    results: Keys

    @property
    def blocks(self) -> tuple[StepBlock, ...]:
        return self.branches

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        chosen = frame[self.operands[0]]
        if chosen.dtype == np.bool_:
            number = 0 if chosen else 1
        else:
            number = int(chosen) if 0 <= chosen < len(self.branches) else len(self.branches) - 1
        values = yield from self.branches[number].run(device, frame, ())
        frame.update(zip(self.results, values, strict=True))


@dataclass(frozen=True, slots=True)
class Asynchronous(Step):
    """Executed immediately; the result is the future of its values."""

    block: StepBlock
    operands: Keys
    results: Keys

    @property
    def blocks(self) -> tuple[StepBlock, ...]:
        return (self.block,)

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        values = yield from self.block.run(device, frame, [frame[key] for key in self.operands])
        (future,) = self.results
        frame[future] = tuple(values)


@dataclass(frozen=True, slots=True)
class Unpack(Immediate):
    """Access to the values of a future."""

    operands: Keys
    results: Keys

    def take(self, device: Device, frame: Frame) -> None:
        frame.update(zip(self.results, frame[self.operands[0]], strict=True))
