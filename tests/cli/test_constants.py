"""``vhlo constants`` as a command."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from support.json_records import body
from support.weights_files import read_header

import vhlo_tools as vt
from vhlo_tools.cli.main import main

PROGRAM = """
func.func @main(%a: tensor<512x1024xf32>) -> tensor<512x1024xf32> {
  %0 = stablehlo.constant dense<1.5> : tensor<512x1024xf32>
  %1 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %2 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %3 = stablehlo.clamp %0, %a, %0 : tensor<512x1024xf32>
  return %3 : tensor<512x1024xf32>
}
"""


@pytest.fixture
def artifact(tmp_path: Path) -> str:
    path = tmp_path / "in.mlirbc"
    vt.serialize(PROGRAM, "1.9.0").save(path)
    return str(path)


def test_list(artifact: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["constants", "list", artifact]) == 0
    one, two = (hashlib.sha256(np.array(each, "float32").tobytes()).hexdigest()[:12] for each in ([1.5], [1, 2]))
    assert capsys.readouterr().out.splitlines() == [
        "  bytes  in file  uses        sha256  type",
        f"2097152  4 splat     2  {one}  tensor<512x1024xf32>",
        "    @main/0:stablehlo.constant",
        f"      8        8     0  {two}  tensor<2xf32>",
        "    @main/1:stablehlo.constant",
        f"      8        8     0  {two}  tensor<2xf32>",
        "    @main/2:stablehlo.constant, shared with @main/1:stablehlo.constant",
    ]
    assert main(["constants", "list", artifact, "--min-size", "9", "--output-format", "json"]) == 0
    (only,) = json.loads(capsys.readouterr().out)["constants"]
    digest = only.pop("digest")
    assert digest == vt.constants(artifact)[0].digest
    assert only == {
        "path": "@main/0:stablehlo.constant",
        "type": "tensor<512x1024xf32>",
        "shape": [512, 1024],
        "element_type": "f32",
        "bytes": 2097152,
        "bytes_in_file": 4,
        "splat": True,
        "uses": 2,
        "shared_with": None,
    }


def test_long_types_and_paths_keep_to_the_width(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind = f"tensor<{'1x' * 12}1024x1024xcomplex<f64>>"
    name = "a_function_with_a_name_of_some_length"
    body = "".join(f"%{i} = stablehlo.constant dense<(1.0, 0.0)> : {kind}\n" for i in range(2))
    path = tmp_path / "long.mlirbc"
    vt.serialize(f"func.func @{name}() -> {kind} {{ {body} return %0 : {kind} }}").save(path)
    assert main(["constants", "list", str(path)]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert f"\n    {kind}\n" in out
    assert f"\n    shared with @{name}/0:stablehlo.constant\n" in out


def test_extract(artifact: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "weights"
    assert main(["constants", "extract", artifact, "-o", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == [f"main_{i}_stablehlo.constant.npy" for i in range(3)]
    np.testing.assert_array_equal(np.load(folder / "main_1_stablehlo.constant.npy"), np.array([1, 2], "float32"))
    assert main(["constants", "extract", artifact, "-o", str(folder)]) == 2
    assert "file exists" in capsys.readouterr().err
    assert main(["constants", "extract", artifact, "-o", str(folder), "--force", "--output-format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)["constants"]
    assert [(each["path"], each["dtype"], each["reason"]) for each in report] == [
        (f"@main/{i}:stablehlo.constant", "float32", None) for i in range(3)
    ]
    one = tmp_path / "one.npy"
    assert main(["constants", "extract", artifact, "-o", str(one)]) == 2
    assert "can contain only one constant, but there are 3" in capsys.readouterr().err
    assert main(["constants", "extract", artifact, "-o", str(one), "--only", "@main/2:stablehlo.constant"]) == 0
    np.testing.assert_array_equal(np.load(one), np.array([1, 2], "float32"))
    assert main(["constants", "extract", artifact, "-o", str(one), "--only", "@main/9"]) == 2
    assert f"{one} exists: --force replaces it" in capsys.readouterr().err
    assert main(["constants", "extract", artifact, "-o", str(one), "--only", "@main/9", "--force"]) == 2
    assert "in.mlirbc has no constant @main/9; `vhlo constants list` shows" in capsys.readouterr().err
    everything = tmp_path / "all.safetensors"
    assert main(["constants", "extract", artifact, "-o", str(everything)]) == 0
    header, data = read_header(everything)
    assert {name: each["shape"] for name, each in header.items()} == {
        "@main/0:stablehlo.constant": [512, 1024],
        "@main/1:stablehlo.constant": [2],
        "@main/2:stablehlo.constant": [2],
    }
    assert len(data) == 2097152 + 16
    assert main(["constants", "extract", artifact, "-o", "-"]) == 2


def test_externalize_and_restore(artifact: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small, again = tmp_path / "small.mlirbc", str(tmp_path / "again.mlirbc")
    weights = str(tmp_path / "small.safetensors")
    assert main(["constants", "externalize", artifact, "-o", str(small)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"vhlo: 1 constant became arguments of @main: {weights}\n"
    assert vt.open_artifact(small).inventory().functions[0].arguments == ("tensor<512x1024xf32>",) * 2
    assert main(["constants", "restore", str(small), "--weights", weights, "-o", again]) == 0
    assert main(["diff", artifact, again, "--locations"]) == 0
    assert main(["constants", "externalize", artifact, "-o", str(small)]) == 2
    assert "small.mlirbc exists: --force replaces it" in capsys.readouterr().err
    command = ["constants", "externalize", artifact, "-o", str(small), "--min-size", "0", "-f", "--format", "json"]
    assert main(command) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["weights"] == weights
    assert [(each["argument"], each["tensor"]) for each in report["constants"]] == [
        (1, "@main/0:stablehlo.constant"),
        (2, "@main/1:stablehlo.constant"),
        (3, "@main/1:stablehlo.constant"),
    ]
    assert report["notes"] == []
    assert report["version"] == "1.9.0"
    assert main(["constants", "restore", str(small), "--weights", weights, "-o", again, "-f", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["size"] == Path(again).stat().st_size
    assert main(["diff", artifact, again, "--locations"]) == 0


def test_mistakes(artifact: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out.safetensors")
    assert main(["constants", "externalize", artifact, "-o", out]) == 2
    assert "cannot be both the artifact and its weights: give --weights FILE" in capsys.readouterr().err
    assert main(["constants", "externalize", artifact, "-o", "-"]) == 2
    assert main(["constants", "externalize", artifact, "-o", ""]) == 2
    assert main(["constants", "externalize", artifact, "-o", str(tmp_path / "o"), "--function", "f"]) == 2
    assert "the program has no function @f; it has @main" in capsys.readouterr().err
    assert main(["constants", "restore", artifact, "--weights", artifact, "-o", str(tmp_path / "o")]) == 2
    assert "in.mlirbc is not a safetensors file" in capsys.readouterr().err
    assert main(["constants", "restore", artifact, "--weights", str(tmp_path / "gone"), "-o", str(tmp_path / "o")]) == 2
    assert "gone: No such file" in capsys.readouterr().err
    assert main(["constants", "list", str(Path(__file__))]) == 2
    assert "expected a portable artifact" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["in.mlirbc"]


def test_weights_of_another_artifact(artifact: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.mlirbc"
    vt.serialize(PROGRAM.replace("512x", "256x")).save(other)
    for name in (artifact, str(other)):
        small = str(Path(name).with_suffix(".small"))
        assert main(["constants", "externalize", name, "-o", small]) == 0
    weights = str(tmp_path / "other.safetensors")
    capsys.readouterr()
    command = ["constants", "restore", str(tmp_path / "in.small"), "--weights", weights, "-o", str(tmp_path / "o")]
    assert main(command) == 2
    expected = f"argument 1 of @main is tensor<512x1024xf32>, but {weights} has tensor<256x1024xf32> for it"
    assert capsys.readouterr().err == f"vhlo: {expected}\n"
    assert main([*command, "--output-format", "json"]) == 2
    assert body(capsys.readouterr().out) == {"ok": False, "message": expected, "findings": []}
    assert not (tmp_path / "o").exists()
