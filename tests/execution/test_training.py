"""Steps of real programs, run again and again with their state donated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.execution import parse_tensor_type

COUNTER = EXAMPLES / "tensorflow_counter.mlir"
STEP = EXAMPLES / "transformer_step.mlir"


@pytest.mark.parametrize("engine", ["reference", "xla"])
def test_the_variables_of_tensorflow_stay_in_place(engine: Any) -> None:
    executable = vt.load_executable(COUNTER, engine=engine)
    chance = np.random.default_rng(0)
    batches = [chance.normal(size=(8, 4)).astype(np.float32) for _ in range(20)]
    initial = [np.zeros((), np.int32), np.zeros(4, np.float32), np.zeros(4, np.float32)]
    state = [vt.Buffer.on_xla(each) if engine == "xla" else vt.Buffer(each) for each in initial]
    addresses = [each.address for each in state]
    for batch in batches:
        execution = executable.execute([batch, *state], donate=(1, 2, 3))
        _, *state = execution.buffers
        assert [each.placement for each in execution.report.outputs] == ["new", "in-place", "in-place", "in-place"]
        assert [each.address for each in state] == addresses
    rows, mean, squares = map(np.asarray, state)
    seen = np.concatenate(batches)
    assert rows == len(seen)
    np.testing.assert_allclose(mean, seen.mean(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(squares, ((seen - seen.mean(axis=0)) ** 2).sum(axis=0), rtol=1e-4)


def step_inputs() -> list[np.ndarray[Any, Any]]:
    module = vt.deserialize(vt.serialize(STEP))
    chance = np.random.default_rng(0)
    arrays = []
    for text in map(str, module.body.operations[0].operation.attributes["function_type"].value.inputs):
        kind = parse_tensor_type(text)
        shape = [size or 0 for size in kind.shape]
        draw = chance.integers(0, 8, shape) if kind.dtype.kind == "i" else abs(chance.normal(size=shape))
        arrays.append(np.asarray(draw).astype(kind.dtype))
    return arrays


@pytest.mark.long
@pytest.mark.parametrize(("engine", "steps"), [("reference", 2), ("xla", 5)])
def test_the_parameters_of_jax_stay_in_place(engine: Any, steps: int) -> None:
    declared = vt.serialize(STEP).aliases()
    donated = [each.parameter_number for each in declared.aliases]
    assert len(donated) > 6
    executable = vt.load_executable(STEP, engine=engine)
    protected = vt.load_executable(STEP, engine="xla")
    expected, inputs = step_inputs(), [vt.Buffer(each) for each in step_inputs()]
    for _ in range(steps):
        execution = executable.execute(inputs, donate=donated)
        assert execution.report.bytes_copied == 0
        wanted = protected.execute(expected)
        assert wanted.report.bytes_in_place == 0
        for alias in declared.aliases:
            (output,) = alias.output_index
            inputs[alias.parameter_number] = execution.buffers[output]
            expected[alias.parameter_number] = wanted.outputs[output]
    for found, array in zip(inputs, expected, strict=True):
        np.testing.assert_allclose(np.asarray(found), array, rtol=1e-3, atol=1e-4)
