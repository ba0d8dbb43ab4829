"""Bodies that hold what the engine cannot evaluate, walked for each element: slow, and as the specification says it."""

# ruff: noqa: D102 - the members are those of a step, and documented there

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vhlo_tools.interpreter.driver.steps import Block, Device, Frame, Keys, Step, Walk
from vhlo_tools.interpreter.values import ArgumentType

__all__ = ["Map", "Reduce"]


@dataclass(frozen=True, slots=True)
class Map(Step):
    """A function of scalars is applied to each element."""

    body: Block
    operands: Keys
    results: Keys
    types: tuple[ArgumentType, ...]

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)

    def walk(self, device: Device, frame: Frame) -> Walk:
        operands = [frame[key] for key in self.operands]
        results = _empty(self.types)
        for index in np.ndindex(results[0].shape):
            values = yield from self.body.walk(device, frame, _scalars(operands, index))
            _put(results, index, values)
        frame.update(zip(self.results, results, strict=True))


@dataclass(frozen=True, slots=True)
class Reduce(Step):
    """A function of scalars makes one of all elements along some dimensions, in their order."""

    body: Block
    operands: Keys
    dimensions: tuple[int, ...]
    results: Keys
    types: tuple[ArgumentType, ...]

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)

    def walk(self, device: Device, frame: Frame) -> Walk:
        keys, initial = self.operands[: len(self.types)], self.operands[len(self.types) :]
        # The dimensions that are reduced come last.
        last = range(-len(self.dimensions), 0)
        operands = [np.moveaxis(frame[key], self.dimensions, tuple(last)) for key in keys]
        results = _empty(self.types)
        kept = results[0].ndim
        for index in np.ndindex(results[0].shape):
            values = [frame[key] for key in initial]
            for along in np.ndindex(operands[0].shape[kept:]):
                values = yield from self.body.walk(device, frame, [*values, *_scalars(operands, (*index, *along))])
            _put(results, index, values)
        frame.update(zip(self.results, results, strict=True))


def _empty(types: Sequence[ArgumentType]) -> list[Any]:
    return [np.empty(kind.shape, kind.dtype) for kind in types]


def _scalars(operands: Sequence[Any], index: tuple[int, ...]) -> list[Any]:
    return [np.asarray(operand[index], operand.dtype) for operand in operands]


def _put(results: Sequence[Any], index: tuple[int, ...], values: Sequence[Any]) -> None:
    for result, value in zip(results, values, strict=True):
        result[index] = value
