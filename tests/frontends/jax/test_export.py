"""Functions exported with jax, and what is said where that fails."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from support.exported_models import check_writing_options

import vhlo_tools as vt
from vhlo_tools.files import decode_jax_export, read_signature
from vhlo_tools.integrations import proof
from vhlo_tools.integrations.jax import JaxProgram, export

X = np.arange(4, dtype=np.float32)


def scale(x: Any, unused: Any, *, by: Any) -> Any:
    return {"scaled": x * by}


def load(program: JaxProgram) -> Any:
    return jax.export.deserialize(bytearray(program.serialized))


def test_the_version_of_jax_by_default() -> None:
    program = export(scale)(X, X, by=X)
    assert program.serialized == bytes(program.exported.serialize())
    assert bytes(program.artifact) == program.exported.mlir_module_serialized
    assert decode_jax_export(program.serialized).kept_arguments == (0, 2)
    np.testing.assert_array_equal(load(program).call(X, X, by=X)["scaled"], X * X)


@pytest.mark.parametrize("target", ["minimum", "1.0.0", "jaxlib==0.4.31", "current", vt.Version("1.3.0")])
def test_a_target(target: Any) -> None:
    program = export(scale, target=target)(X, X, by=X)
    assert program.artifact.version == vt.resolve_target(str(target)).version
    assert vt.diff(program.serialized, program.artifact) == []
    np.testing.assert_array_equal(load(program).call(X, X, by=X)["scaled"], X * X)


def test_a_target_that_lacks_something() -> None:
    # Batching dimensions of gather.
    with pytest.raises(vt.DowngradeError, match=r"^<lambda> cannot be written for 1.0.0") as raised:
        export(lambda x, i: jnp.take_along_axis(x, i, 0), target="1.0.0")(X[None], np.zeros((1, 4), np.int32))
    assert {finding.feature for finding in raised.value.findings} == {"gather_scatter_batching_dims"}
    with pytest.raises(vt.UnknownTargetError):
        export(scale, target="never")


def test_donated_arguments_are_aliases() -> None:
    inventory = export(lambda x, y: (x + y, y * 2), donate_argnums=1, target="1.0.0")(X, X).artifact.inventory()
    assert [(each.parameter_number, each.output_index) for each in inventory.aliases] == [(1, (0,))]
    jitted = jax.jit(lambda x, y: x + y, donate_argnums=(0,))
    assert [each.parameter_number for each in export(jitted)(X, X).artifact.inventory().aliases] == [0]
    # Both say something.
    outer = export(jitted, donate_argnums=[1])(X, X).artifact.inventory()
    assert [each.parameter_number for each in outer.aliases] == [1]


def test_shapes_and_symbols_stand_for_arrays() -> None:
    (symbolic,) = jax.export.symbolic_args_specs((X,), ("n",))
    program = export(lambda x: x + 1, target="1.0.0")(symbolic)
    assert read_signature(decode_jax_export(program.serialized)).in_tree == "((f32[n],), {})"
    np.testing.assert_array_equal(load(program).call(X[:3]), X[:3] + 1)
    static = export(lambda x: x + 1)(jax.ShapeDtypeStruct((4,), np.float32))
    np.testing.assert_array_equal(load(static).call(X), X + 1)


def test_platforms_and_derivatives() -> None:
    program = export(lambda x: (x * x).sum(), platforms=["cpu", "tpu"], vjp_order=1, target="0.9.0")(X)
    exported = load(program)
    assert exported.platforms == ("cpu", "tpu")
    np.testing.assert_array_equal(jax.grad(exported.call)(X), 2 * X)


def test_checks_can_be_left_out() -> None:
    def solve(x: Any) -> Any:
        return jax.ffi.ffi_call("my_solver", jax.ShapeDtypeStruct((4,), np.float32))(x)

    with pytest.raises(ValueError, match="my_solver"):
        export(solve)(X)
    check = jax.export.DisabledSafetyCheck.custom_call("my_solver")
    program = export(solve, disabled_checks=[check])(X)
    assert decode_jax_export(program.serialized).disabled_checks == ("custom_call my_solver",)


def test_mistakes_are_reported_by_jax() -> None:
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument"):
        export(scale)(X, X)
    with pytest.raises(ZeroDivisionError):
        export(lambda x: x * (1 // 0))(X)


def test_what_is_saved(tmp_path: Path) -> None:
    program = export(scale, target="1.0.0")(X, X, by=X)
    path = tmp_path / "scale.jax_export"
    program.save_jax_export(path)
    assert path.read_bytes() == program.serialized
    with pytest.raises(FileExistsError):
        program.save_jax_export(path)
    program.save_jax_export(path, force=True)
    artifact = tmp_path / "scale.mlirbc"
    program.save(artifact)
    assert artifact.read_bytes() == bytes(program.artifact)
    assert not artifact.with_suffix(".safetensors").exists()


@pytest.mark.parametrize("package", ["jax", "flatbuffers"])
def test_a_missing_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(vt.MissingExtraError, match=rf"needs {package}, .* pip install '.\[jax\]'"):
        # Only files need flatbuffers.
        _ = export(scale)(X, X, by=X).serialized


def test_a_traced_function_is_lowered() -> None:
    traced = jax.jit(jnp.tan).trace(X)
    assert vt.serialize(traced) == vt.serialize(traced.lower())
    np.testing.assert_allclose(vt.run(traced, [X])[0], np.tan(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (jax.jit(jnp.tan), "pass f.lower(x)"),
        (jax.jit(jnp.tan).lower(X).compile(), "pass what was compiled, as jax.jit(f).lower(x)"),
        (jax.make_jaxpr(jnp.tan)(X), "pass jax.jit(jax.extend.core.jaxpr_as_fun(jaxpr)).lower(x)"),
        (jax.make_jaxpr(jnp.tan)(X).jaxpr, "pass jax.jit(jax.extend.core.jaxpr_as_fun(closed_jaxpr)).lower(x)"),
    ],
    ids=["jit", "compiled", "closed jaxpr", "jaxpr"],
)
def test_what_is_nearly_a_program_is_refused_with_the_call_that_makes_one(given: Any, advice: str) -> None:
    with pytest.raises(vt.InvalidProgramError) as caught:
        vt.serialize(given)
    assert str(caught.value).endswith(advice)


@pytest.mark.parametrize("weights", ["constants", "arguments"])
def test_results_are_compared_with_those_of_jax_on_request(weights: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = jnp.arange(4.0)

    def step(params: dict[str, Any], batch: Any, unused: Any) -> Any:
        return {"w": params["w"] - batch.mean() * table, "key": jax.random.normal(jax.random.key(0), (2,))}

    params, batch = {"w": jnp.ones(4), "name": "step"}, jnp.ones(8)
    model = export(step, weights=weights, donate_argnums=0, verify=True)(params, batch, batch)
    assert not params["w"].is_deleted()
    assert model.artifact.findings == ()
    spec = jax.ShapeDtypeStruct((8,), jnp.float32)
    del params["name"]
    assert export(step, weights=weights, verify=True)(params, spec, spec).outputs == model.outputs
    monkeypatch.setattr(proof, "results_of", lambda *_: [np.full(2, 3, np.float32)])
    with pytest.raises(
        vt.InvalidProgramError, match=r"sin does not compute what JAX does: result\[0\] is 3.0, expected"
    ):
        export(jnp.sin, weights=weights, verify=True)(jnp.zeros(2))
    assert export(jnp.sin, weights=weights)(jnp.zeros(2)).inputs == ("x",)
    with pytest.raises(vt.InvalidProgramError, match="cannot be compared with what JAX computes: it is for tpu"):
        export(jnp.sin, weights=weights, platforms=["tpu"], verify=True)(batch)


def test_options_of_writing(tmp_path: Path) -> None:
    check_writing_options(lambda **options: export(jnp.tan, verify=True, **options)(X), tmp_path)
    accurate = partial(jax.lax.exp, accuracy=jax.lax.AccuracyMode.HIGHEST)
    program = export(accurate, target="1.0.0", allow_relaxed="all")(X)
    program.save_jax_export(tmp_path / "exp.jax_export", manifest=True)
    made = vt.Manifest.load(tmp_path / "exp.jax_export.manifest.json").made
    assert made is not None
    assert made.options == {"allow_relaxed": "all"}
    saved = jax.export.deserialize(bytearray((tmp_path / "exp.jax_export").read_bytes()))
    np.testing.assert_allclose(saved.call(X), np.exp(X), rtol=1e-6)


def test_results_of_changed_types_are_compared() -> None:
    options: Any = {"target": "1.0.0", "expand": True, "allow_signature_change": True, "verify": True}
    narrow = jnp.arange(4, dtype="float8_e3m4")
    program = export(lambda x: x + x, **options)(narrow)
    assert program.artifact.inventory().functions[0].results == ("tensor<4xui8>",)
    # A jax.export file states the types too.
    with pytest.raises(vt.DowngradeError, match="f8E3M4"):
        _ = program.container
    with pytest.raises(vt.InvalidProgramError, match="random inputs are of uint8 in place of float8_e3m4: give arrays"):
        export(lambda x: x + x, **options)(jax.ShapeDtypeStruct((4,), narrow.dtype))
