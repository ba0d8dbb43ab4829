"""A function of JAX is the same program however it is handed over: lowered, exported, as a file, or as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import vhlo_tools as vt

X = np.linspace(0.1, 2.5, 9, dtype=np.float32).reshape(3, 3)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda x: (x + 1.5) * 2 + jnp.sum(x + 1.5),
    "cholesky": lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3)),
    "dictionary": lambda x: {"a": x, "b": (x.sum(), [])},
    "dot": lambda x: x @ x,
    "erf": lambda x: jax.scipy.special.erf(x) + 1,
    "erf_inv": lambda x: jax.scipy.special.erfinv(x / 3),
    "gamma": jax.scipy.special.gammaln,
    "gather": lambda x: x[jnp.array([0, 2])],
    "random": lambda x: x + jax.random.normal(jax.random.key(0), (3,)),
    "scan": lambda x: jax.lax.scan(lambda c, y: (c + y, c * y), x[0], x),
    "sort": lambda x: jnp.sort(x),
    "tan": lambda x: jnp.tan(jnp.sinh(x)),
    "top_k": lambda x: jax.lax.top_k(x, 2),
    "unused": lambda x: jnp.ones(3),
    "while": lambda x: jax.lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * 2, c[1] + 1), (x, 0)),
}


def sources(jitted: Any, *arguments: Any) -> dict[str, Any]:
    exported = jax.export.export(jitted)(*arguments)
    return {
        "exported": exported,
        "lowered": jitted.lower(*arguments),
        "file": bytes(exported.serialize()),
        "text": exported.mlir_module(),
    }


def messages(artifact: vt.Artifact) -> list[str]:
    return [each.message for each in artifact.findings]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_artifact_with_the_same_findings(name: str) -> None:
    jitted = jax.jit(FUNCTIONS[name])
    first, *others = (vt.serialize(source, "1.5.0") for source in sources(jitted, X).values())
    for other in others:
        assert vt.diff(first, other) == []
        assert messages(other) == messages(first)
    results = vt.run(first, [X][: len(first.aliases().signature.parameters)])
    for found, expected in zip(results, jax.tree.leaves(jitted(X)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_typed_key_is_an_argument_of_one_device() -> None:
    """JAX constrains it on a mesh without axes."""
    jitted = jax.jit(lambda key, x: x + jax.random.normal(key, x.shape))
    for source in sources(jitted, jax.random.key(1), X).values():
        artifact = vt.serialize(source, "0.9.0")
        assert messages(artifact)[:2] == ["sdy.mesh was removed", "sdy.sharding_constraint was replaced by its operand"]
        (found,) = vt.run(artifact, [np.asarray(jax.random.key_data(jax.random.key(1))), X])
        np.testing.assert_allclose(found, jitted(jax.random.key(1), X), rtol=1e-5)


def abstract_mesh(axes: dict[str, int]) -> Any:
    """Return a mesh without devices: there is one device here. Newer releases of JAX make axes explicit by default."""
    automatic = (jax.sharding.AxisType.Auto,) * len(axes)
    return jax.sharding.AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=automatic)


def sharded(axes: dict[str, int]) -> Any:
    """Return a function whose result is split along the first of the axes."""
    spec = NamedSharding(abstract_mesh(axes), PartitionSpec(next(iter(axes))))
    return jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, spec))


def test_a_mesh_of_size_one_means_nothing() -> None:
    mesh = Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("a", "b"))
    sharding = NamedSharding(mesh, PartitionSpec("a"))
    jitted = jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, sharding), in_shardings=sharding)
    for source in sources(jitted, X).values():
        artifact = vt.serialize(source, "1.0.0")
        assert "sdy" not in artifact.dialects
        assert any(each.startswith("sdy.") for each in messages(artifact))


def test_shardings_of_several_devices_stay_where_readers_know_them() -> None:
    exported = jax.export.export(sharded({"a": 3, "b": 2}))(X)
    for source in (exported, bytes(exported.serialize()), exported.mlir_module()):
        artifact = vt.serialize(source, "1.11.0")
        assert "sdy" in artifact.dialects
        assert any('mesh<["a"=3, "b"=2]> remain as ops of Shardy' in each for each in messages(artifact))
        with pytest.raises(vt.DowngradeError, match=r"it can be written for StableHLO 1\.11\.0 or later") as refused:
            vt.serialize(source, "1.10.0")
        assert all(each.feature == "mixed_dialects" and each.remedy for each in refused.value.findings)


def test_programs_for_several_devices_run_on_as_many_as_their_mesh_has() -> None:
    jitted = sharded({"a": 3, "b": 2})
    exported = jax.export.export(jitted)(X)
    for source in (exported, bytes(exported.serialize()), exported.mlir_module()):
        ((found,),) = vt.run_parallel(source, [[X]])
        np.testing.assert_array_equal(found, 2 * X)
    total = jax.shard_map(
        lambda x: jax.lax.psum(x, "a"),
        mesh=abstract_mesh({"a": 3, "b": 2}),
        in_specs=PartitionSpec("a"),
        out_specs=PartitionSpec(),
    )
    exported = jax.export.export(jax.jit(total))(X)
    for found in (*vt.run(exported, [X]), *vt.run_parallel(exported, [[X]])[0]):
        np.testing.assert_allclose(found, X.sum(axis=0, keepdims=True), rtol=1e-6)


def test_what_no_consumer_of_other_dialects_needs_is_kept_on_request() -> None:
    exported = jax.export.export(sharded({"a": 3}))(X)
    artifact = vt.serialize(exported.mlir_module(), "1.11.0", allow_other_dialects=True)
    assert "sdy" in artifact.dialects
    assert messages(artifact) == []
