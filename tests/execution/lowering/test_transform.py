"""Fourier transforms of any kind, rank and length, against XLA and numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.both_engines import function, run_on_both, tensor

pytestmark = [pytest.mark.needs("stablehlo.fft"), pytest.mark.every_python]

#: The kind, the shapes of operand and result, and how many dimensions are transformed.
TRANSFORMS = [
    ("FFT", (2, 3, 5), (2, 3, 5), 1),
    ("FFT", (2, 3, 5), (2, 3, 5), 3),
    ("IFFT", (2, 3, 5), (2, 3, 5), 2),
    ("RFFT", (2, 3, 5), (2, 3, 3), 1),
    ("RFFT", (2, 3, 4), (2, 3, 3), 3),
    ("IRFFT", (2, 3, 3), (2, 3, 5), 1),
    ("IRFFT", (2, 3, 3), (2, 3, 5), 2),
    ("IRFFT", (2, 3, 3), (2, 3, 5), 3),
    ("IRFFT", (2, 3, 3), (2, 3, 4), 3),
    ("FFT", (1,), (1,), 1),
    ("RFFT", (1,), (1,), 1),
    ("IRFFT", (1,), (1,), 1),
]


_BY_NUMPY: dict[str, Any] = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn}


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize(("name", "taken", "given", "rank"), TRANSFORMS, ids=str)
def test_transforms(name: str, taken: tuple[int, ...], given: tuple[int, ...], rank: int, element: str) -> None:
    chance = np.random.default_rng(0)
    of_complex = f"complex<{element}>"
    real = np.float32 if element == "f32" else np.float64
    if name == "RFFT":
        operand = chance.normal(size=taken).astype(real)
        takes, lengths = tensor(taken, element), taken[-rank:]
    else:
        numbers = chance.normal(size=taken) + 1j * chance.normal(size=taken)
        operand = numbers.astype(np.complex64 if element == "f32" else np.complex128)
        takes, lengths = tensor(taken, of_complex), given[-rank:]
    gives = tensor(given, element if name == "IRFFT" else of_complex)
    op = f"stablehlo.fft %a, type = {name}, length = {list(lengths)} : ({takes}) -> {gives}"
    (found,), (by_xla,) = run_on_both(function(f"%a: {takes}", f"%0 = {op}", ["%0"], [gives]), [operand])
    axes = tuple(range(len(taken) - rank, len(taken)))
    wide = operand.astype(np.float64 if name == "RFFT" else np.complex128)
    by_numpy = np.fft.irfftn(wide, s=lengths, axes=axes) if name == "IRFFT" else _BY_NUMPY[name](wide, axes=axes)
    assert found.dtype == by_xla.dtype
    tolerance = 2e-6 if element == "f32" else 2e-14
    np.testing.assert_allclose(found, by_xla, rtol=0, atol=tolerance)
    # Computed in f64, so that there is one rounding.
    np.testing.assert_allclose(found, by_numpy, rtol=2e-7, atol=2e-8 if element == "f32" else 2e-14)


def test_a_transform_of_nothing() -> None:
    kind = "tensor<0x3xcomplex<f32>>"
    op = f"stablehlo.fft %a, type = FFT, length = [3] : ({kind}) -> {kind}"
    (found,), _ = run_on_both(function(f"%a: {kind}", f"%0 = {op}", ["%0"], [kind]), [np.zeros((0, 3), np.complex64)])
    assert found.shape == (0, 3)
