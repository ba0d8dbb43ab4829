"""SavedModels where programs are taken: vhlo serialize, inspect, check, and vt.serialize."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from support.exported_models import close
from support.xla_cpu import run_on_xla

import vhlo_tools as vt
from vhlo_tools.artifact import read_tensors
from vhlo_tools.cli.main import main
from vhlo_tools.files.saved_model import read_saved_model

X = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a SavedModel with a signature that assigns to a variable, and one that does not."""

    class Model(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernel = tf.Variable(np.eye(4, dtype=np.float32) * 3, name="kernel")
            self.count = tf.Variable(7, name="count")

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
        def apply(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"y": tf.matmul(x, self.kernel)}

        @tf.function(input_signature=[tf.TensorSpec([4], tf.float32, name="x")])
        def step(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
            self.count.assign_add(1)
            return {"y": tf.linalg.matvec(self.kernel, x), "mask": x > 0}

    path = tmp_path_factory.mktemp("models") / "saved"
    model = Model()
    tf.saved_model.save(model, str(path), signatures={"serving_default": model.apply, "step": model.step})
    return path


def test_serialize_writes_the_weights_as_constants(saved: Path, tmp_path: Path) -> None:
    output = tmp_path / "model.mlirbc"
    assert main(["serialize", str(saved), "--batch-size", "2", "--target", "1.0.0", "-o", str(output)]) == 0
    assert vt.open_artifact(output).version == vt.Version("1.0.0")
    close(run_on_xla(output.read_bytes(), [X]), [X * 3], 0)
    assert vt.serialize(saved, "1.0.0", batch_size=2).inventory() == vt.open_artifact(output).inventory()
    assert vt.serialize(str(saved), batch_size=2).version == vt.resolve_target("current").version


def test_serialize_writes_the_weights_beside_it(saved: Path, tmp_path: Path) -> None:
    output, weights = tmp_path / "step.mlirbc", tmp_path / "step.safetensors"
    arguments = ["--signature", "step", "--weights", str(weights), "-o", str(output)]
    assert main(["serialize", str(saved), *arguments]) == 0
    held = read_tensors(weights.read_bytes(), "weights").tensors
    assert set(held) == {"kernel", "count"}
    count = np.frombuffer(bytes(held["count"]), np.int32).reshape(())
    kernel = np.frombuffer(bytes(held["kernel"]), np.float32).reshape(4, 4)
    (alias,) = vt.open_artifact(output).inventory().aliases
    results = run_on_xla(output.read_bytes(), [X[0], count, kernel])
    close(results, [X[0] > 0, X[0] * 3, np.array(8, np.int32)], 0)
    assert (alias.output_index, alias.parameter_number) == ((2,), 1)


def test_refusals_have_an_exit_code_and_a_line(saved: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "model.mlirbc")
    for arguments, said in (
        (
            [],
            "the input x has the shape (?, 4), but a program is compiled for a shape without unknown sizes: "
            "specify batch_size",
        ),
        (["--signature", "train"], "has no signature 'train'; its signatures are: serving_default, step"),
        (["--signature", "step"], "assigns to count (by Assign"),
    ):
        assert main(["serialize", str(saved), *arguments, "-o", output]) == 2
        assert said in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_inspect_and_check(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(saved), "--output-format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kind"] == "saved-model"
    assert told["tensorflow_version"] == tf.__version__
    assert told["signatures"]["step"] == {
        "inputs": {"x": "float32[4]"},
        "outputs": {"mask": "bool[4]", "y": "float32[4]"},
    }
    loaded = tf.saved_model.load(str(saved))
    for signature in read_saved_model(saved).signatures:
        theirs = loaded.signatures[signature.name]
        specs = {**theirs.structured_input_signature[1], **theirs.structured_outputs}
        for tensor in (*signature.inputs, *signature.outputs):
            assert (tensor.type, tensor.shape) == (specs[tensor.name].dtype.name, tuple(specs[tensor.name].shape))
    assert main(["check", str(saved), "--target", "1.0.0"]) == 2
    assert "cannot be checked" in capsys.readouterr().out


def test_nothing_is_said_where_nothing_is_wrong(saved: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "vhlo_tools.cli.main", "serialize", str(saved), "--batch-size", "2"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    ran = subprocess.run(
        [*command, "-o", str(tmp_path / "o")], capture_output=True, text=True, env=environment, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def save_scaled(path: Path, size: int, factor: float) -> None:
    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([size], tf.float32, name="x")])
        def scaled(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"y": x * factor}

    model = Model()
    tf.saved_model.save(model, str(path), signatures={"serving_default": model.scaled})


def test_check_against_a_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found() -> dict[str, list[str]]:
        folders = sorted(each.name for each in tmp_path.iterdir() if not each.name.startswith("."))
        main(["check", *folders, "--target", "1.0.0", "--against", "HEAD", "--output-format", "json"])
        files = json.loads(capsys.readouterr().out)["files"]
        return {file["path"]: [each["feature"] for each in file["findings"]] for file in files}

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VHLO_TOOLS_NO_CACHE")
    for name in ("same", "tuned", "wider"):
        save_scaled(tmp_path / name, 4, 2)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "all"]):
        subprocess.run([*git, *command], check=True)
    assert found() == {}
    save_scaled(tmp_path / "tuned", 4, 3)
    save_scaled(tmp_path / "wider", 8, 2)
    save_scaled(tmp_path / "new", 4, 2)
    expected = {"new": [], "tuned": [], "wider": ["regression_signature"]}
    assert found() == expected
    assert found() == expected
    # Whatever it says, nothing is converted again; and a file that changed is noticed.
    monkeypatch.setattr("vhlo_tools.gate.examination.Examiner.__call__", None)
    assert found() == expected
    Path("new", "fingerprint.pb").write_bytes(b"other")
    with pytest.raises(TypeError):
        found()
