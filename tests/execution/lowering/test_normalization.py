"""Batch normalization, against XLA."""

from __future__ import annotations

import numpy as np
import pytest
from support.both_engines import function, run_on_both, tensor

pytestmark = pytest.mark.every_python

TOLERANCES = {"f16": 2e-3, "f32": 2e-6, "f64": 1e-14}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("element", "shape", "feature"),
    [(element, (2, 3, 4, 3), 1) for element in TOLERANCES] + [("f32", (5, 4), 1), ("f32", (6,), 0), ("f32", (0, 4), 1)],
    ids=str,
)
@pytest.mark.parametrize("name", ["inference", "training", "grad"])
def test_batch_norm(name: str, shape: tuple[int, ...], feature: int, element: str) -> None:
    chance = np.random.default_rng(0)
    dtype = np.dtype(f"float{element[1:]}")
    operand, gradient = (chance.normal(size=shape).astype(dtype) for _ in range(2))
    scale, offset, mean, variance = (abs(chance.normal(size=shape[feature])).astype(dtype) for _ in range(4))
    inputs, results = {
        "inference": ([operand, scale, offset, mean, variance], [operand]),
        "training": ([operand, scale, offset], [operand, mean, variance]),
        "grad": ([operand, scale, mean, variance, gradient], [operand, scale, offset]),
    }[name]
    takes, gives = ([tensor(each, element) for each in arrays] for arrays in (inputs, results))
    names = [f"%a{index}" for index in range(len(takes))]
    held = f"epsilon = 0.001 : f32, feature_index = {feature} : i64"
    op = f'"stablehlo.batch_norm_{name}"({", ".join(names)}) {{{held}}} : ({", ".join(takes)}) -> ({", ".join(gives)})'
    text = function(
        ", ".join(f"{name}: {kind}" for name, kind in zip(names, takes, strict=True)),
        f"%0:{len(gives)} = {op}",
        [f"%0#{index}" for index in range(len(gives))],
        gives,
    )
    found, expected = run_on_both(text, inputs)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=TOLERANCES[element], atol=10 * TOLERANCES[element])
