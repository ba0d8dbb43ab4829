"""What integrations give back, saved: an artifact, and a file that safetensors itself reads."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

import vhlo_tools as vt
from vhlo_tools.integrations.exported_model import ExportedModel, serialize_module

TEXT = """func.func @main(%x: tensor<2xf32>, %b: tensor<i8>, %w: tensor<2xf32>, %h: tensor<2x1xbf16>) -> tensor<2xf32> {
  %0 = stablehlo.multiply %x, %w : tensor<2xf32>
  return %0 : tensor<2xf32>
}"""


@pytest.fixture
def model() -> ExportedModel:
    weights = {
        "b": np.array(3, np.int8),
        "layer.w": np.array([[1, 2], [3, 4]], np.float32).T[0],
        "h": np.array([[1], [2]], ml_dtypes.bfloat16),
    }
    return ExportedModel(serialize_module(TEXT, "1.0.0", name="the model"), ("x",), ("y",), weights)


def test_saved_side_by_side(model: ExportedModel, tmp_path: Path) -> None:
    model.save(tmp_path / "m.mlirbc")
    assert vt.open_artifact(tmp_path / "m.mlirbc").version == vt.Version("1.0.0")
    found = load_file(tmp_path / "m.safetensors")
    assert {name: (value.dtype, value.shape) for name, value in found.items()} == {
        name: (value.dtype, value.shape) for name, value in model.weights.items()
    }
    for name, value in model.weights.items():
        np.testing.assert_array_equal(found[name], value)
    with pytest.raises(FileExistsError):
        model.save(tmp_path / "m.mlirbc")
    model.save(tmp_path / "m.mlirbc", force=True)


def test_the_file_says_in_which_order_main_takes_them(model: ExportedModel, tmp_path: Path) -> None:
    model.save(tmp_path / "m.mlirbc", weights=tmp_path / "w.safetensors")
    with safe_open(tmp_path / "w.safetensors", "numpy") as file:
        assert json.loads(file.metadata()["vhlo_tools.arguments"]) == ["x", "b", "layer.w", "h"]
    assert model.arguments == ("x", "b", "layer.w", "h")


def test_a_model_without_weights_has_one_file(model: ExportedModel, tmp_path: Path) -> None:
    ExportedModel(model.artifact, ("x", "b", "w", "h")).save(tmp_path / "m.mlirbc")
    assert [path.name for path in tmp_path.iterdir()] == ["m.mlirbc"]


def test_element_types_that_nobody_has(model: ExportedModel, tmp_path: Path) -> None:
    odd = ExportedModel(model.artifact, (), (), {"s": np.array(["text"])})
    with pytest.raises(vt.InvalidInputError, match="numpy's <U4 is not an element type"):
        odd.save(tmp_path / "m.mlirbc")
    assert list(tmp_path.iterdir()) == []
