"""Files of torch.export, in Python and on the command line."""

# mypy: allow-subclassing-any, no-warn-return-any

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.xla_cpu import run_on_xla
from torch import nn

import vhlo_tools as vt
from vhlo_tools.artifact import inspect_bytes
from vhlo_tools.files import Kind, recognise


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, features: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"scores": self.layers(features).softmax(-1)}


X = torch.linspace(-1, 1, 8).reshape(2, 4)


@pytest.fixture(scope="module")
def program() -> torch.export.ExportedProgram:
    torch.manual_seed(5)
    return torch.export.export(Classifier().eval(), (X,))


@pytest.fixture(scope="module")
def path(program: torch.export.ExportedProgram, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("torch") / "model.pt2"
    torch.export.save(program, path)
    return path


def vhlo(*arguments: Any, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [sys.executable, "-m", "vhlo_tools.cli.main", *map(str, arguments)], input=stdin, capture_output=True
    )
    return subprocess.CompletedProcess(
        result.args, result.returncode, result.stdout.decode(errors="replace"), result.stderr.decode()
    )


def expected(program: torch.export.ExportedProgram) -> Any:
    return program.module()(X)["scores"].detach().numpy()


def test_every_form_is_one_artifact(program: torch.export.ExportedProgram, path: Path) -> None:
    forms: list[Any] = [path, str(path), path.read_bytes(), memoryview(path.read_bytes())]
    artifacts = {vt.strip(vt.serialize(form, "1.0.0")) for form in [*forms, program]}
    assert len(artifacts) == 1
    (artifact,) = artifacts
    assert artifact.version == vt.Version("1.0.0")
    (result,) = run_on_xla(bytes(artifact), [X.numpy()])
    np.testing.assert_allclose(result, expected(program), rtol=1e-6)


def test_what_else_takes_programs(program: torch.export.ExportedProgram, path: Path) -> None:
    (result,) = vt.run(path, [X.numpy()])
    np.testing.assert_allclose(result, expected(program), rtol=1e-5)
    assert vt.diff(path, vt.serialize(program)) == []
    assert {each.kind for each in vt.diff(path, "func.func @main() { return }")} >= {"signature"}
    assert vt.check(program, "0.9.0") == []


def test_what_is_told_without_torch(path: Path) -> None:
    data = path.read_bytes()
    assert recognise(data) is Kind.TORCH_EXPORT
    told = inspect_bytes(data, "model.pt2")
    state = Classifier().state_dict()
    assert (told["kind"], told["size"], told["models"]) == ("torch-export", len(data), ("model",))
    assert (told["weights"], told["weight_bytes"]) == (len(state), sum(each.nbytes for each in state.values()))
    assert told["graph_bytes"] > 1000


def test_the_command_line(program: torch.export.ExportedProgram, path: Path, tmp_path: Path) -> None:
    output, weights = tmp_path / "model.mlirbc", tmp_path / "weights.safetensors"
    result = vhlo("serialize", path, "--weights", weights, "-o", output, "--target", "jaxlib==0.4.31")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    functions = json.loads(vhlo("inspect", output, "--format", "json").stdout)["functions"]
    arguments = [each["type"] for each in functions[0]["arguments"]]
    assert (arguments[0], len(arguments)) == ("tensor<2x4xf32>", 1 + 8)
    from vhlo_tools.integrations.torch import export

    values = export(program, weights="arguments").weights
    (scores,) = run_on_xla(output.read_bytes(), [X.numpy(), *values.values()])
    np.testing.assert_allclose(scores, expected(program), rtol=1e-6)

    whole = tmp_path / "whole.mlirbc"
    assert vhlo("serialize", "-", "-o", whole, stdin=path.read_bytes()).stderr == ""
    (scores,) = run_on_xla(whole.read_bytes(), [X.numpy()])
    np.testing.assert_allclose(scores, expected(program), rtol=1e-6)
    assert vhlo("check", path, "--target", "1.0.0").returncode == 0


def test_the_importer_on_the_command_line(program: torch.export.ExportedProgram, path: Path, tmp_path: Path) -> None:
    output = tmp_path / "model.mlirbc"
    result = vhlo("serialize", path, "--importer", "torch-mlir", "--import-timeout", 300, "-o", output)
    assert (result.returncode, result.stderr) == (0, "")
    (scores,) = run_on_xla(output.read_bytes(), [X.numpy()])
    np.testing.assert_allclose(scores, expected(program), rtol=1e-6)
    assert vt.diff(output, vt.serialize(path, importer="torch-mlir")) == []
    assert vt.diff(output, vt.serialize(path, importer="torchax")) != []

    refused = vhlo("serialize", path, "--importer", "torch-mlir", "--import-memory", "0.001", "-o", "-")
    assert refused.returncode == 2
    assert "(--import-memory), or install and use the importer torchax" in refused.stderr
    other = vhlo("serialize", output, "--importer", "torchax", "-o", tmp_path / "other.mlirbc")
    assert (other.returncode, "is not a framework's program" in other.stderr) == (2, True)


def test_a_damaged_file(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    graph = data.index(b'{"graph_module"')
    damaged = tmp_path / "damaged.pt2"
    damaged.write_bytes(data[:graph] + b"?" + data[graph + 1 :])
    result = vhlo("serialize", damaged, "-o", tmp_path / "out.mlirbc")
    assert result.returncode == 2
    assert f"torch {torch.__version__} cannot read {damaged}: " in result.stderr
    assert "Traceback" not in result.stderr
