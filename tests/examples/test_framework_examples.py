"""The examples of frameworks, without their frameworks; tests/frontends compares them with what these compute."""

from __future__ import annotations

import numpy as np
from support.corpus import EXAMPLES, writable_versions

import vhlo_tools as vt
from vhlo_tools.aliasing.config import Alias

COUNTER = EXAMPLES / "tensorflow_counter.mlir"
MLP = EXAMPLES / "keras_mlp.mlirbc"


def test_the_counter_holds_what_tensorflow_gives() -> None:
    text = COUNTER.read_text()
    assert text.count("mhlo.copy") == 3
    assert text.count('kind = "may_alias"') == 3


def test_the_counter_keeps_its_aliases_at_every_version() -> None:
    for version in writable_versions():
        artifact = vt.serialize(COUNTER, version)
        assert artifact.inventory().aliases == tuple(Alias((each,), each, (), "may-alias") for each in (1, 2, 3))
        assert vt.deserialize(artifact).operation.attributes["mhlo.input_output_alias"] is not None


def test_the_counter_counts() -> None:
    batches = np.random.default_rng(0).normal(3, 2, (4, 8, 4)).astype(np.float32)
    state = [np.array(0, np.int32), np.zeros(4, np.float32), np.zeros(4, np.float32)]
    artifact = vt.serialize(COUNTER, "0.9.0")
    for batch in batches:
        normalised, *state = vt.run(artifact, [batch, *state])
    seen = batches.reshape(-1, 4)
    assert state[0] == len(seen)
    np.testing.assert_allclose(state[1], seen.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(state[2] / len(seen), seen.var(axis=0), rtol=1e-5)
    np.testing.assert_allclose(normalised, (batches[-1] - seen.mean(axis=0)) / seen.std(axis=0), rtol=1e-4, atol=1e-5)


def test_the_network_classifies() -> None:
    artifact = vt.open_artifact(MLP)
    assert artifact.version == vt.Version("1.0.0")
    (main,) = (each for each in artifact.inventory().functions if each.name == "main")
    assert main.arguments == ("tensor<2x6xf32>",)
    (classes,) = vt.run(artifact, [np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)])
    np.testing.assert_allclose(classes.sum(axis=1), 1, rtol=1e-6)
    assert np.ptp(classes) > 0.1
