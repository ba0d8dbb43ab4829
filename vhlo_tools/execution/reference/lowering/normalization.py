"""Batch normalization by the formulas of the StableHLO specification.

Sums over floats of fewer than 32 bits are computed in f32, as XLA does on a CPU.
"""

from __future__ import annotations

import math
from typing import Any

from vhlo_tools.rewriting import Rewriter, Tensor, tensors


def batch_norm_inference(rewriter: Rewriter) -> list[Any]:
    operand, scale, offset, mean, variance = _wide(rewriter)
    return _narrow(rewriter, [_Features(rewriter, operand).normalized(mean, variance, scale, offset)])


def batch_norm_training(rewriter: Rewriter) -> list[Any]:
    operand, scale, offset = _wide(rewriter)
    features = _Features(rewriter, operand)
    mean = features.sum(operand) / features.count
    centered = operand - features.spread(mean)
    variance = features.sum(centered * centered) / features.count
    return _narrow(rewriter, [features.normalized(mean, variance, scale, offset), mean, variance])


def batch_norm_grad(rewriter: Rewriter) -> list[Any]:
    operand, scale, mean, variance, gradient = _wide(rewriter)
    features = _Features(rewriter, operand)
    centered = operand - features.spread(mean)
    variance = variance + features.epsilon
    deviation = variance.apply("sqrt")
    of_offset = features.sum(gradient)
    of_centered = features.sum(gradient * centered)
    of_operand = features.spread(scale / deviation / features.count) * (
        gradient * features.count
        - features.spread(of_offset)
        - features.spread(of_centered) * centered / features.spread(variance)
    )
    return _narrow(rewriter, [of_operand, features.sum(gradient * (centered / features.spread(deviation))), of_offset])


class _Features:
    def __init__(self, rewriter: Rewriter, operand: Tensor) -> None:
        self._operand = operand
        self._index = int(rewriter.op.attributes["feature_index"].value)
        self._others = [index for index in range(len(operand.shape)) if index != self._index]
        self.epsilon = float(rewriter.op.attributes["epsilon"].value)
        self.count = math.prod(operand.shape[index] for index in self._others)

    def spread(self, value: Tensor) -> Tensor:
        return value.broadcast(self._operand.shape, [self._index])

    def sum(self, value: Tensor) -> Tensor:
        return value.reduce("add", self._others)

    def normalized(self, mean: Tensor, variance: Tensor, scale: Tensor, offset: Tensor) -> Tensor:
        deviation = self.spread((variance + self.epsilon).apply("sqrt"))
        normalized = (self._operand - self.spread(mean)) / deviation
        return normalized * self.spread(scale) + self.spread(offset)


def _wide(rewriter: Rewriter) -> list[Tensor]:
    operands = tensors(rewriter)
    wide = rewriter.type("f32")
    return [each.convert(wide) for each in operands] if operands[0].element.width < wide.width else operands


def _narrow(rewriter: Rewriter, results: list[Tensor]) -> list[Any]:
    types = [result.type for result in rewriter.op.results]
    return [result.convert(type_.element_type).value for result, type_ in zip(results, types, strict=True)]
