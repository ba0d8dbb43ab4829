"""Custom calls of LAPACK as JAX makes them: run without jax by the engine ``xla``, and one by one by a handler."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy import linalg

import vhlo_tools as vt
from vhlo_tools.execution.reference.known_calls import known_handler

TYPES = ["float32", "float64", "complex64", "complex128"]


def definite(array: Any) -> Any:
    return array @ jnp.conj(jnp.swapaxes(array, -1, -2)) + 8 * jnp.eye(array.shape[-1], dtype=array.dtype)


ROUTINES: dict[str, Callable[[Any], Any]] = {
    "getrf": jax.lax.linalg.lu,
    "potrf": lambda array: jnp.linalg.cholesky(definite(array)),
    "geqrf and orgqr": jnp.linalg.qr,
    "gesdd": jnp.linalg.svd,
    "gesdd of values": lambda array: jnp.linalg.svd(array, compute_uv=False),
    "syevd": lambda array: jnp.linalg.eigh(definite(array)),
    "trsm": lambda array: jax.lax.linalg.triangular_solve(definite(array), array, left_side=True, lower=True),
    "trsm from the right": lambda array: jax.lax.linalg.triangular_solve(
        definite(array), array, conjugate_a=True, transpose_a=True
    ),
    "geev": jnp.linalg.eig,
    "gehrd": jax.lax.linalg.hessenberg,
    "gees": jax.lax.linalg.schur,
    "sytrd": lambda array: jax.lax.linalg.tridiagonal(definite(array)),
    "solve": lambda array: jnp.linalg.solve(definite(array), array),
    "geqp3": lambda array: linalg.qr(array, pivoting=True),
    "gtsv": lambda array: jax.lax.linalg.tridiagonal_solve(
        array[..., 0, :] * (jnp.arange(array.shape[-1]) > 0),
        array[..., 1, :] + 9,
        array[..., 2, :] * (jnp.arange(array.shape[-1]) < array.shape[-1] - 1),
        array,
    ),
}
#: Those that JAX has for one matrix alone.
ALONE = {"geqp3"}


@pytest.fixture(autouse=True)
def sixty_four_bits() -> Any:
    with jax.enable_x64(True):
        yield


def matrices(dtype: str, batch: tuple[int, ...]) -> np.ndarray[Any, Any]:
    chance = np.random.default_rng(0)
    array = chance.normal(size=(*batch, 4, 4))
    if "complex" in dtype:
        array = array + 1j * chance.normal(size=array.shape)
    return array.astype(dtype)


def leaves(results: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(each) for each in jax.tree.leaves(results)]


@pytest.mark.parametrize(
    ("name", "batch"), [(name, batch) for name in ROUTINES for batch in ((), (3,)) if not (batch and name in ALONE)]
)
@pytest.mark.parametrize("dtype", TYPES)
def test_the_results_are_those_of_jax(name: str, batch: tuple[int, ...], dtype: str) -> None:
    function, array = jax.jit(ROUTINES[name]), matrices(dtype, batch)
    text = function.lower(array).as_text()
    assert "lapack_" in text
    wanted = leaves(function(array))
    found = vt.run(text, [array], engine="xla")
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ROUTINES)
@pytest.mark.parametrize("dtype", TYPES)
def test_a_handler_computes_each_call_as_xla_does(name: str, dtype: str) -> None:
    batch = () if name in ALONE else (2,)
    array = matrices(dtype, batch)
    text = jax.jit(ROUTINES[name]).lower(array).as_text()
    targets = {word.split("(")[0] for word in text.split("@") if word.startswith("lapack_")}
    handlers = {target: handler for target in targets if (handler := known_handler(target))}
    assert targets
    assert handlers.keys() == targets
    given = [vt.run(text, [array], engine="xla", handlers=each) for each in ({}, handlers)]
    for one, other in zip(*given, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_jax_itself_is_not_needed() -> None:
    array = matrices("float32", ())
    text = jax.jit(ROUTINES["syevd"]).lower(array).as_text()
    source = f"""
import sys
import numpy as np
import vhlo_tools as vt
results = vt.run({text!r}, [np.array({array.tolist()}, np.float32)], engine="xla")
assert "jax" not in sys.modules
print(results[0].tolist())
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    np.testing.assert_allclose(json.loads(done.stdout), leaves(ROUTINES["syevd"](array))[0], rtol=1e-5)
