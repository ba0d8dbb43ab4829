"""Functions of JAX exported for one call: any arguments, weights by name, and what no artifact can hold."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

import vhlo_tools as vt
from vhlo_tools.integrations.jax import export

X = jnp.linspace(0.0, 1.0, 4)
PARAMS = {"dense": {"kernel": X * 2, "bias": jnp.zeros(4)}, "scale": jnp.zeros(4)}


class State(NamedTuple):
    """A type that nobody registered with jax.export."""

    count: Any
    mean: Any


@functools.partial(jax.tree_util.register_dataclass, data_fields=["weight"], meta_fields=["activation"])
@dataclass
class Layer:
    """A module with arrays, which has no hash."""

    weight: Any
    activation: Any

    def __call__(self, x: Any) -> Any:
        return self.activation(x * self.weight)


def test_arguments_of_the_function_may_have_names_of_options() -> None:
    program = export(lambda x, *, target, weights: x * target - weights, target="1.0.0")(X, target=X, weights=X)
    assert program.artifact.version == vt.Version("1.0.0")
    assert program.inputs == ("x", "target", "weights")
    (found,) = vt.run(program.artifact, [X, X, X])
    np.testing.assert_allclose(found, X * X - X)


def test_types_that_are_not_registered_need_to_be_for_files_only(tmp_path: Path) -> None:
    program = export(lambda state: State(state.count + 1, state.mean * 2))(State(jnp.int32(1), X))
    assert (program.inputs, program.outputs) == (("state.count", "state.mean"), ("result.count", "result.mean"))
    program.save(tmp_path / "state.mlirbc")
    line = r"jax\.export\.register_namedtuple_serialization\(State, serialized_name='.*State'\)"
    with pytest.raises(vt.InvalidProgramError, match=line):
        program.save_jax_export(tmp_path / "state.jax_export")
    assert not (tmp_path / "state.jax_export").exists()


@pytest.mark.parametrize("number", [0, 1, 7, 40])
def test_any_number_of_arguments(number: int) -> None:
    values = [X + at for at in range(number)]
    program = export(lambda *values: sum(values) if values else X, target="0.9.0")(*values)
    assert program.inputs == tuple(f"values[{at}]" for at in range(number))
    np.testing.assert_allclose(vt.run(program.artifact, values)[0], sum(values) if values else X, rtol=1e-6)


def test_leaves_that_are_no_arrays_are_part_of_the_program() -> None:
    program = export(lambda x, activation, by: activation(x) * by["factor"])(X, jnp.tanh, {"factor": 3.0, "name": "a"})
    assert program.inputs == ("x", "by['factor']")
    (found,) = vt.run(program.artifact, [X, np.float32(3)])
    np.testing.assert_allclose(found, jnp.tanh(X) * 3, rtol=1e-6)
    with pytest.raises(vt.InvalidProgramError, match="cannot be in a jax.export file, only in an artifact"):
        _ = program.serialized


def test_static_arguments_are_part_of_the_program() -> None:
    def power(number: int, x: Any, *, offset: float) -> Any:
        return x**number + offset

    program = export(power, static_argnums=0, static_argnames="offset", donate_argnums=1)(3, X, offset=2.0)
    assert program.inputs == ("x",)
    assert program.artifact.aliases().aliases == (vt.Alias((), 0),)
    np.testing.assert_allclose(vt.run(program.artifact, [X])[0], X**3 + 2, rtol=1e-5)
    jitted = jax.jit(power, static_argnums=0, static_argnames="offset", donate_argnums=1)
    again = export(jitted)(3, X, offset=2.0)
    assert again.artifact.aliases().aliases == (vt.Alias((), 0),)


def closing(x: Any) -> Any:
    return PARAMS["scale"] + x * PARAMS["dense"]["kernel"] + PARAMS["dense"]["bias"]


INNER = jax.jit(lambda x: x * PARAMS["dense"]["kernel"])
LAYER = Layer(X * 3, jnp.tanh)
DENSE = {"PARAMS.scale", "PARAMS.dense.kernel", "PARAMS.dense.bias"}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("fn", "names"),
    [
        (closing, DENSE),
        (jax.jit(closing), DENSE),
        (lambda x: jax.lax.scan(lambda c, _: (closing(c), None), x, None, length=2)[0], DENSE),
        (lambda x: INNER(INNER(x)) + INNER(x), {"PARAMS.dense.kernel"}),
        (lambda x: jax.checkpoint(closing)(x), DENSE),
        (functools.partial(lambda w, x: x * w, X), {"args.0"}),
        (LAYER, {"weight"}),
        (LAYER.__call__, {"weight"}),
        (lambda x: LAYER(x) + jnp.array([1.0, 2.0, 3.0, 4.0]), {"LAYER.weight"}),
        (lambda x: x + 1, set()),
    ],
)
def test_weights_are_constants_or_arguments_by_name(fn: Any, names: set[str], tmp_path: Path) -> None:
    expected = fn(X)
    constant = export(fn)(X)
    assert (constant.inputs, dict(constant.weights)) == (("x",), {})
    np.testing.assert_allclose(vt.run(constant.artifact, [X])[0], expected, rtol=1e-6)
    program = export(fn, weights="arguments", target="1.0.0")(X)
    assert set(program.weights) == names
    assert program.arguments == ("x", *program.weights)
    assert [each.name for each in program.artifact.declared_aliases().parameters] == list(program.arguments)
    (found,) = vt.run(program.artifact, [X, *program.weights.values()])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    # Other weights give other results: they are no constants any more.
    if names:
        other = vt.run(program.artifact, [X, *(each + 1 for each in program.weights.values())])[0]
        assert not np.allclose(other, expected)
        program.save(tmp_path / "program.mlirbc")
        stored = load_file(tmp_path / "program.safetensors")
        assert set(stored) == names
        assert vt.diff(program.bound().artifact, constant.artifact, ignore=["module attribute"]) is not None


def test_arrays_of_numpy_are_weights_too() -> None:
    table = np.arange(4, dtype=np.float32)
    program = export(lambda x: x + table, weights="arguments")(X)
    # Before 0.9.2, jax makes constants of them where it traces a function, and passes no array on.
    assert list(program.weights) == (["table"] if jax.__version_info__ >= (0, 9, 2) else [])
    np.testing.assert_array_equal(program.weights.get("table", table), table)
    np.testing.assert_array_equal(vt.run(program.artifact, [X, *program.weights.values()])[0], X + table)


def test_weights_of_equal_values_are_two() -> None:
    one, two = jnp.zeros(4), jnp.zeros(4)
    program = export(lambda x: x * one - two, weights="arguments")(X)
    assert set(program.weights) == {"one", "two"}


def test_what_needs_python_is_refused_by_its_name_and_line() -> None:
    def shown(x: Any) -> Any:
        jax.debug.print("{}", x)
        return jax.pure_callback(np.asarray, x, x)

    with pytest.raises(vt.UnsupportedFeatureError, match="shown cannot be exported") as refused:
        export(shown)(X)
    printed, called = refused.value.findings
    assert printed.message.startswith("jax.debug.")
    assert called.message.startswith("jax.pure_callback has no form in an artifact")
    assert printed.location is not None
    assert called.location is not None
    assert (printed.location.file, called.location.line - printed.location.line) == (__file__, 1)


@pytest.mark.parametrize("weights", ["constants", "arguments"])
def test_findings_and_locations_point_at_the_line_of_the_user(weights: Any) -> None:
    program = export(lambda x: jnp.tan(x * LAYER.weight), weights=weights, target="1.4.0")(X)
    text = str(vt.deserialize(program.artifact).operation.get_asm(enable_debug_info=True))
    assert Path(__file__).name in text
    assert "vhlo_tools/integrations" not in text
    with pytest.raises(vt.DowngradeError) as refused:
        export(lambda x: jnp.tan(x * LAYER.weight), weights=weights, target="1.0.0")(X)
    assert {each.location.file for each in refused.value.findings if each.location} == {__file__}
