"""Batch normalization by the formulas of the StableHLO specification.

Sums over floats of fewer than 32 bits are taken in f32, as XLA takes them on a CPU.
"""

from __future__ import annotations

import math
from typing import Any

from vhlo_tools.interpreter.lowering.tensor import Tensor, tensors
from vhlo_tools.portable.site import Site

__all__ = ["batch_norm_grad", "batch_norm_inference", "batch_norm_training"]


def batch_norm_inference(site: Site) -> list[Any]:
    """Normalize by a mean and a variance that are given."""
    operand, scale, offset, mean, variance = _wide(site)
    return _narrow(site, [_Features(site, operand).normalized(mean, variance, scale, offset)])


def batch_norm_training(site: Site) -> list[Any]:
    """Normalize by the mean and the variance of the operand, and return these too."""
    operand, scale, offset = _wide(site)
    features = _Features(site, operand)
    mean = features.sum(operand) / features.count
    centered = operand - features.spread(mean)
    variance = features.sum(centered * centered) / features.count
    return _narrow(site, [features.normalized(mean, variance, scale, offset), mean, variance])


def batch_norm_grad(site: Site) -> list[Any]:
    """Return the gradients with respect to the operand, the scale and the offset."""
    operand, scale, mean, variance, gradient = _wide(site)
    features = _Features(site, operand)
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
    return _narrow(site, [of_operand, features.sum(gradient * (centered / features.spread(deviation))), of_offset])


class _Features:
    """The dimension of features of an operand.

    Attributes:
        epsilon: What is added to variances.
        count: How many elements there are of each feature.
    """

    def __init__(self, site: Site, operand: Tensor) -> None:
        self._operand = operand
        self._index = int(site.op.attributes["feature_index"].value)
        self._others = [index for index in range(len(operand.shape)) if index != self._index]
        self.epsilon = float(site.op.attributes["epsilon"].value)
        self.count = math.prod(operand.shape[index] for index in self._others)

    def spread(self, value: Tensor) -> Tensor:
        """Return one number for each feature in the shape of the operand."""
        return value.broadcast(self._operand.shape, [self._index])

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum for each feature."""
        return value.reduce("add", self._others)

    def normalized(self, mean: Tensor, variance: Tensor, scale: Tensor, offset: Tensor) -> Tensor:
        deviation = self.spread((variance + self.epsilon).apply("sqrt"))
        normalized = (self._operand - self.spread(mean)) / deviation
        return normalized * self.spread(scale) + self.spread(offset)


def _wide(site: Site) -> list[Tensor]:
    """Return the operands in f32, if they are of fewer bits."""
    operands = tensors(site)
    wide = site.kind("f32")
    return [each.convert(wide) for each in operands] if operands[0].element.width < wide.width else operands


def _narrow(site: Site, results: list[Tensor]) -> list[Any]:
    kinds = [result.type for result in site.op.results]
    return [result.convert(kind.element_type).value for result, kind in zip(results, kinds, strict=True)]
