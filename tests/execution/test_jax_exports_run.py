"""Exports of jax that its own ``Exported.call`` runs: of open sizes, and for several devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from support.corpus import ROOT

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

X = np.array([1.0, 3.0, 2.0, -0.5, 2.5], np.float32)
#: What becomes a composite, or a custom call of a dynamic op.
OF_OPEN_SIZES: dict[str, Callable[[Any], Any]] = {
    "cumsum": jnp.cumsum,
    "cumprod": jnp.cumprod,
    "cummax": lax.cummax,
    "cumlogsumexp": lax.cumlogsumexp,
    "nonzero": lambda x: jnp.nonzero(x > 1, size=3)[0],
    "top_k": lambda x: lax.top_k(x, 2),
    "arcsin": lambda x: jnp.arcsin(x / 4),
    "arccosh": lambda x: jnp.arccosh(x + 2),
    "sinh": jnp.sinh,
    "tan": jnp.tan,
    "erf": lax.erf,
    "composites in each other": lambda x: jnp.cumsum(jnp.sinh(lax.top_k(jnp.tan(x), 3)[0])),
    "two sizes of one function": lambda x: jnp.sum(jnp.sinh(x)) + jnp.sinh(x[:2]),
}


@pytest.mark.parametrize("name", OF_OPEN_SIZES)
def test_open_sizes(name: str) -> None:
    (size,) = jax.export.symbolic_shape("n", constraints=["n >= 4"])
    export = jax.export.export(jax.jit(OF_OPEN_SIZES[name]))(jax.ShapeDtypeStruct((size,), np.float32))
    expected = jax.tree.leaves(export.call(X))
    for engine in ("auto", "reference", "xla"):
        for found, wanted in zip(vt.run(export, [X], engine=engine), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=engine)
    with pytest.raises(vt.EngineError, match="n >= 4"):
        vt.run(export, [X[:3]])


def test_sizes_that_do_not_fit_are_told_as_they_are() -> None:
    (size,) = jax.export.symbolic_shape("2*n")
    export = jax.export.export(jax.jit(lambda x: jnp.cumsum(x).reshape(2, -1)))(
        jax.ShapeDtypeStruct((size,), np.float32)
    )
    with pytest.raises(vt.EngineError, match=r"does not match these inputs: .*(2\*n|divisible)"):
        vt.run(export, [X])
    np.testing.assert_array_equal(vt.run(export, [X[:4]])[0], np.cumsum(X[:4]).reshape(2, 2))


def test_the_number_of_the_platform_is_explained() -> None:
    export = jax.export.export(jax.jit(jnp.sinh), platforms=["cpu", "tpu"])(X)
    with pytest.raises(
        vt.InvalidInputError, match=r"requires 2 inputs, got 1: the first is the number of the platform"
    ):
        vt.run(export.mlir_module(), [X])
    np.testing.assert_allclose(vt.run(export.mlir_module(), [0, X])[0], np.sinh(X), rtol=1e-6)


def test_a_loop_that_changes_the_size_of_an_array() -> None:
    program = ROOT / "tests" / "programs" / "reports" / "loop_over_a_growing_array.hlo"
    assert vt.run(program, [])[0].tolist() == [6, 6]
    too_long = (
        program.read_text().replace("constant(4)", "constant(300)").replace("<=4", "<=300").replace("[4,", "[300,")
    )
    with pytest.raises(vt.EngineError, match="stablehlo.while: it sets sizes of arrays in more than 200 iterations"):
        vt.run(too_long, [], engine="reference")


SQUARE = np.arange(16, dtype=np.float32).reshape(4, 4) + np.eye(4, dtype=np.float32) * 20
STACKED = np.stack([SQUARE @ SQUARE.T, SQUARE @ SQUARE.T * 2])
SUM = SQUARE[:2] + SQUARE[2:]
#: On two devices, each with half of the rows: the function of a part, its input, and what is right of the whole.
ON_PARTS: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "psum": (lambda x: lax.psum(x, "x"), SQUARE, np.concatenate([SUM, SUM])),
    "index": (lambda x: x + lax.axis_index("x"), SQUARE, SQUARE + np.array([[0], [0], [1], [1]])),
    "scalar": (lambda x: x + lax.psum(jnp.sum(x), "x"), SQUARE, SQUARE + SQUARE.sum()),
    "loop": (
        lambda x: lax.fori_loop(0, 2, lambda _, y: y + lax.psum(y, "x"), x),
        SQUARE,
        SQUARE + np.concatenate([SUM * 4, SUM * 4]),
    ),
    "svd": (lambda x: jnp.linalg.svd(x, compute_uv=False), STACKED, np.linalg.svd(STACKED, compute_uv=False)),
    "eigh": (lambda x: jnp.linalg.eigh(x)[0], STACKED, np.linalg.eigvalsh(STACKED)),
    "solve": (lambda x: jnp.linalg.solve(x, x[..., :1]), STACKED, np.tile(np.eye(4)[:, :1], (2, 1, 1))),
    "lu": (lambda x: jax.scipy.linalg.lu_factor(x)[0], STACKED, jax.vmap(jax.scipy.linalg.lu_factor)(STACKED)[0]),
}


@pytest.mark.parametrize("name", ON_PARTS)
def test_whole_inputs_of_an_export_for_two_devices(name: str) -> None:
    function, given, expected = ON_PARTS[name]
    mesh = jax.sharding.AbstractMesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    rows = jax.sharding.PartitionSpec("x")
    mapped = jax.shard_map(function, mesh=mesh, in_specs=rows, out_specs=rows, check_vma=False)
    jitted = jax.jit(mapped, in_shardings=jax.sharding.NamedSharding(mesh, rows))
    export = jax.export.export(jitted, platforms=["cpu"])(jax.ShapeDtypeStruct(given.shape, given.dtype))
    assert export.nr_devices == 2
    for engine in ("auto", "reference", "xla"):
        (found,) = vt.run(export, [given], engine=engine)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4, err_msg=engine)
    data = bytes(export.serialize())
    assert vt.load_executable(data).execute([given]).report.outputs[0].placement == "new"
    np.testing.assert_allclose(vt.run_parallel(data, [[given]])[0][0], expected, rtol=1e-4, atol=1e-4)
