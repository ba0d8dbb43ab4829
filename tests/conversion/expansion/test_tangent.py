"""The op tan as older ops."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.expansions import ENGINES, check_same, expanded

import vhlo_tools as vt

_FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
_SHAPES = ((), (7,), (2, 0), (3, 1, 2, 2))


def _program(type_: str) -> str:
    return f"func.func @main(%a: {type_}) -> {type_} {{ %0 = stablehlo.tan %a : {type_} return %0 : {type_} }}"


def _numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: object) -> np.ndarray:
    drawn = rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 4, shape)
    return np.asarray(drawn, dtype)  # type: ignore[call-overload,no-any-return]


@pytest.mark.sample(3)
@pytest.mark.parametrize("element", _FLOATS)
@pytest.mark.parametrize("shape", _SHAPES, ids=str)
def test_real_numbers(element: str, shape: tuple[int, ...]) -> None:
    program = _program(f"tensor<{''.join(f'{size}x' for size in shape)}{element}>")
    artifact, (note,) = expanded(program, "tan")
    assert "stablehlo.sine" in note.message
    rng = np.random.default_rng(0)
    inputs = [[_numbers(rng, shape, _FLOATS[element])] for _ in range(20)]
    inputs.append([np.full(shape, np.inf, _FLOATS[element])])
    # One rounding of f32 where that is wider, and of the op itself, which has an ulp of its own.
    check_same(program, artifact, inputs, ulps=2 if element in ("f16", "bf16") else 6)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("element", "dtype"), [("f32", np.complex64), ("f64", np.complex128)])
@pytest.mark.parametrize("shape", _SHAPES, ids=str)
def test_complex_numbers_against_numpy(element: str, dtype: type, shape: tuple[int, ...]) -> None:
    program = _program(f"tensor<{''.join(f'{size}x' for size in shape)}complex<{element}>>")
    artifact, _ = expanded(program, "tan", "0.9.0")
    rng = np.random.default_rng(0)
    loaded = [vt.load_executable(artifact, engine=engine) for engine in ENGINES]
    for _ in range(20):
        parts = [_numbers(rng, shape, np.float64) % 80 for _ in range(2)]
        value: np.ndarray[Any, Any] = np.asarray(parts[0] + 1j * parts[1], dtype)
        expected = np.tan(value.astype(np.complex128))
        for executable in loaded:
            (found,) = executable.run([value])
            # 16 ulp of either part; below the smallest normal number there are fewer digits.
            for one, other in ((found.real, expected.real), (found.imag, expected.imag)):
                unit = np.finfo(dtype)
                np.testing.assert_allclose(one, other, rtol=16 * float(unit.eps), atol=16 * float(unit.tiny))


def test_sizes_that_are_known_at_run_time_only() -> None:
    program = _program("tensor<?x2xcomplex<f32>>")
    artifact, _ = expanded(program, "tan", "0.9.0")
    value = np.array([[1 + 2j, 0.5 - 1j]] * 3, np.complex64)
    (found,) = vt.run(artifact, [value], engine="reference")
    np.testing.assert_allclose(found, np.tan(value), rtol=2e-6)
