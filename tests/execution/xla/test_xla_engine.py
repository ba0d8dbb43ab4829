"""XLA for the CPU, without jax: every element type, dynamic shapes, what it refuses."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from support.corpus import EXAMPLES
from support.element_types import TYPES

import vhlo_tools as vt
from vhlo_tools.execution import parse_tensor_type

pytestmark = [pytest.mark.usefixtures("both_places"), pytest.mark.every_python]


def identity(tensor: str, attribute: str = "") -> str:
    return f"func.func @main(%a: {tensor}{attribute}) -> {tensor} {{ return %a : {tensor} }}"


@pytest.mark.sample(16)
@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
@pytest.mark.parametrize("attribute", ["", " {tf.aliasing_output = 0 : i32}"], ids=["plain", "aliased"])
def test_every_type_goes_in_and_out(element: str, shape: tuple[int, ...], attribute: str) -> None:
    dtype = np.dtype(TYPES[element])
    number = int(np.prod(shape))
    # No payloads of what is no number, which processors may quieten.
    array = (np.arange(number) % 2).astype(dtype).reshape(shape)
    tensor = f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"
    (result,) = vt.run(identity(tensor, attribute), [array], engine="xla", donate=(0,) if attribute else ())
    assert (result.dtype, result.shape) == (array.dtype, array.shape)
    assert result.tobytes() == array.tobytes()


def test_strides_and_byte_orders() -> None:
    array = np.arange(12, dtype=">f8").reshape(3, 4)[:, ::2]
    assert np.array_equal(vt.run(identity("tensor<3x2xf64>"), [array], engine="xla")[0], array)


def test_dynamic_shapes_take_those_of_the_inputs() -> None:
    tensor = "tensor<?x2x?xf32>"
    program = (
        f"func.func @main(%a: {tensor}) -> {tensor} {{ %0 = stablehlo.add %a, %a : {tensor} return %0 : {tensor} }}"
    )
    executable = vt.load_executable(program, engine="xla")
    for shape in ((3, 2, 5), (1, 2, 1), (3, 2, 5)):
        array = np.ones(shape, np.float32)
        assert np.array_equal(executable.run([array])[0], array + array)


def test_a_jax_export_with_symbolic_shapes_runs_as_on_the_interpreter() -> None:
    path = EXAMPLES / "symbolic_export.jax_export"
    module = vt.deserialize(vt.open_artifact(path))
    chance = np.random.default_rng(0)
    arguments = []
    for text in map(str, module.body.operations[0].operation.attributes["function_type"].value.inputs):
        kind = parse_tensor_type(text)
        shape = [2 if size is None else size for size in kind.shape]
        draw = chance.integers(0, 3, shape) if kind.dtype.kind in "iu" else chance.normal(size=shape)
        arguments.append(np.asarray(draw).astype(kind.dtype))
    found, wanted = (vt.run(path, arguments, engine=engine) for engine in ("xla", "reference"))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_what_xla_refuses_is_an_error() -> None:
    call = "stablehlo.custom_call @f() : () -> tensor<f32>"
    program = f"func.func @main() -> tensor<f32> {{ %0 = {call} return %0 : tensor<f32> }}"
    with pytest.raises(vt.EngineError, match="custom call of f: neither XLA nor vhlo_tools implements it"):
        vt.run(program, [], engine="xla")


@pytest.mark.sample(1)
def test_jax_is_not_imported() -> None:
    source = f"""
import sys
import numpy as np
import vhlo_tools as vt
program = {identity("tensor<4xf32>", " {tf.aliasing_output = 0 : i32}")!r}
executable = vt.load_executable(program, engine="xla")
buffer = vt.Buffer.on_xla(np.arange(4, dtype=np.float32))
for _ in range(3):
    (buffer,) = executable.execute([buffer], donate=(0,)).buffers
assert np.asarray(buffer).tolist() == [0, 1, 2, 3]
assert "jax" not in sys.modules
import jax
jax.config.update("jax_platforms", "cpu")
assert float(jax.jit(lambda x: x + 1, donate_argnums=0)(jax.numpy.ones(()))) == 2
assert executable.run([np.ones(4, np.float32)])[0].tolist() == [1, 1, 1, 1]
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_running_takes_no_memory_that_it_does_not_give_back() -> None:
    import resource

    tensor = f"tensor<{1 << 20}xf32>"
    executable = vt.load_executable(identity(tensor, " {tf.aliasing_output = 0 : i32}"), engine="xla")
    array = np.ones(1 << 20, np.float32)
    executable.run([array])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(50):
        executable.run([array])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


@pytest.mark.parametrize("kind", ["tensor<f6E2M3FN>", "tensor<2xf6E3M2FN>"])
def test_constants_of_six_bits_at_which_xla_crashes_are_refused(kind: str) -> None:
    program = f"func.func @main() -> {kind} {{ %0 = stablehlo.constant dense<1.0> : {kind} return %0 : {kind} }}"
    with pytest.raises(vt.EngineError, match="XLA does not support 6-bit floats"):
        vt.run(program, [], engine="xla")
