"""Random ops with a state: each is a finding with its op, the user's line, and what to do instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from support.exported_models import results_of

from vhlo_tools.cli.main import main
from vhlo_tools.findings import Finding
from vhlo_tools.integrations.tensorflow import export

X = np.linspace(-1, 1, 16, dtype=np.float32)
SPEC = tf.TensorSpec([16], tf.float32)
GENERATOR = tf.random.Generator.from_seed(1)


def random_states(findings: Any) -> list[Finding]:
    return [each for each in findings if each.feature == "random_state"]


def in_a_loop(x: tf.Tensor) -> tf.Tensor:
    return tf.map_fn(lambda each: each + tf.random.normal([]), x)


def in_a_branch(x: tf.Tensor) -> tf.Tensor:
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x, lambda: tf.random.uniform([16]))


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (lambda x: x + tf.random.normal([16]), "RandomStandardNormal"),
        (lambda x: x + tf.random.normal([16], seed=7), "RandomStandardNormal"),
        (lambda x: x + tf.random.truncated_normal([16]), "TruncatedNormal"),
        (lambda x: tf.random.uniform([16], 0, 9, tf.int32), "RandomUniformInt"),
        (lambda x: tf.random.categorical(tf.reshape(x, [2, 8]), 2), "Multinomial"),
        (lambda x: tf.random.shuffle(x), "RandomShuffle"),
        (lambda x: tf.nn.dropout(x, 0.5), "RandomUniform"),
        (in_a_loop, "RandomStandardNormal"),
        (in_a_branch, "RandomUniform"),
    ],
)
def test_what_draws_from_a_state_of_the_process(function: Callable[..., Any], op: str) -> None:
    model = export(function, SPEC)
    (finding,) = random_states(model.findings)
    assert (finding.op, finding.level) == (op, "warning")
    assert finding.location is not None
    assert finding.location.file == __file__
    assert "tf.random.stateless_normal" in str(finding.remedy)
    first, second = (results_of(model, [X])[0] for _ in range(2))
    assert first.shape == second.shape


def test_the_seed_of_such_an_op_is_not_in_the_program() -> None:
    model = export(lambda: tf.random.normal([1000], seed=7))
    first, second = (results_of(model, [])[0] for _ in range(2))
    assert not np.array_equal(first, second)
    assert abs(first.mean()) < 0.2 < first.std() < 2


@pytest.mark.parametrize(
    "function",
    [
        lambda seed: tf.random.stateless_normal([16], seed),
        lambda seed: tf.nn.experimental.stateless_dropout(tf.constant(X), 0.5, seed),
        lambda seed: tf.image.stateless_random_flip_left_right(tf.reshape(tf.constant(X), [4, 4, 1]), seed),
    ],
)
def test_a_seed_that_is_an_input_is_no_finding(function: Callable[..., Any]) -> None:
    model = export(function, tf.TensorSpec([2], tf.int32))
    assert not random_states(model.findings)
    first, second = (results_of(model, [np.array([1, 2], np.int32)])[0] for _ in range(2))
    assert np.array_equal(first, second)


def test_the_state_of_a_generator_is_an_argument_and_a_result() -> None:
    model = export(lambda: GENERATOR.normal([16]))
    (finding,) = random_states(model.findings)
    assert (finding.op, finding.level) == ("RngReadAndSkip", "warning")
    assert finding.location is not None
    assert finding.location.file == __file__
    assert "pass the state that a call returns to the next call" in str(finding.remedy)
    first, state = results_of(model, [])
    again, _ = results_of(model, [])
    assert np.array_equal(first, again)
    (name,) = model.weights
    moved = type(model)(model.artifact, model.inputs, model.outputs, {name: state})
    assert not np.array_equal(first, results_of(moved, [])[0])


@pytest.mark.parametrize("weights", [False, True])
def test_the_command_line_shows_it(weights: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    function = tf.function(lambda x: {"y": tf.nn.dropout(x, 0.5)}, input_signature=[SPEC])
    tf.saved_model.save(tf.Module(), str(tmp_path / "saved"), signatures=function)
    arguments = ["serialize", str(tmp_path / "saved"), "-o", str(tmp_path / "a.mlirbc")]
    arguments += ["--weights", str(tmp_path / "weights.safetensors")] if weights else []
    assert main([*arguments, "--output-format", "json"]) == 0
    (finding,) = (each for each in json.loads(capsys.readouterr().out)["findings"] if each["feature"] == "random_state")
    assert (finding["op"], finding["level"]) == ("RandomUniform", "warning")
    assert "stateless_normal" in finding["remedy"]
    assert main([*arguments, "--force"]) == 0
    assert "RandomUniform becomes stablehlo.rng" in "".join(capsys.readouterr())


def test_it_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", "random_state"]) == 0
    assert "seed" in capsys.readouterr().out
