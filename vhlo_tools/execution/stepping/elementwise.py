"""Steps for bodies with ops that the engine cannot evaluate, stepped through for each element, which is slow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vhlo_tools.execution.stepping.steps import Device, DeviceRun, Frame, Keys, Step, StepBlock
from vhlo_tools.execution.values.arrays import ArgumentType
from vhlo_tools.records import dataclass


@dataclass(frozen=True, slots=True)
class Map(Step):
    body: StepBlock
    operands: Keys
    results: Keys
    types: tuple[ArgumentType, ...]

    @property
    def blocks(self) -> tuple[StepBlock, ...]:
        return (self.body,)

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        operands = [frame[key] for key in self.operands]
        results = _empty(self.types)
        for index in np.ndindex(results[0].shape):
            values = yield from self.body.run(device, frame, _scalars(operands, index))
            _put(results, index, values)
        frame.update(zip(self.results, results, strict=True))


@dataclass(frozen=True, slots=True)
class Reduce(Step):
    """Elements are reduced in order."""

    body: StepBlock
    operands: Keys
    dimensions: tuple[int, ...]
    results: Keys
    types: tuple[ArgumentType, ...]

    @property
    def blocks(self) -> tuple[StepBlock, ...]:
        return (self.body,)

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        keys, initial = self.operands[: len(self.types)], self.operands[len(self.types) :]
        # Move the reduced dimensions to the end.
        last = range(-len(self.dimensions), 0)
        operands = [np.moveaxis(frame[key], self.dimensions, tuple(last)) for key in keys]
        results = _empty(self.types)
        kept = results[0].ndim
        for index in np.ndindex(results[0].shape):
            values = [frame[key] for key in initial]
            for along in np.ndindex(operands[0].shape[kept:]):
                values = yield from self.body.run(device, frame, [*values, *_scalars(operands, (*index, *along))])
            _put(results, index, values)
        frame.update(zip(self.results, results, strict=True))


def _empty(types: Sequence[ArgumentType]) -> list[Any]:
    return [np.empty(type_.shape, type_.dtype) for type_ in types]


def _scalars(operands: Sequence[Any], index: tuple[int, ...]) -> list[Any]:
    return [np.asarray(operand[index], operand.dtype) for operand in operands]


def _put(results: Sequence[Any], index: tuple[int, ...], values: Sequence[Any]) -> None:
    for result, value in zip(results, values, strict=True):
        result[index] = value
