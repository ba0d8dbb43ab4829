"""Programs recorded, replayed, and found to differ."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.corpus import EXAMPLES
from support.vhlo_process import warm_python

import vhlo_tools as vt
from vhlo_tools import system
from vhlo_tools.cli.main import main
from vhlo_tools.verification import read_record

SAXPY = EXAMPLES / "saxpy.mlir"


def test_a_record_is_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "suite")
    assert main(["golden", "record", folder, str(SAXPY), "--target", "1.0.0"]) == 0
    assert capsys.readouterr().err == f"{folder}/saxpy: 3 inputs, 1 outputs, on reference\n"
    assert (
        main(
            [
                "golden",
                "record",
                folder,
                str(SAXPY),
                "--name",
                "given",
                *["-i", "2", "-i", "[1,2,3,4]"],
                "-i",
                "[0,0,0,0]",
            ]
        )
        == 0
    )
    assert np.load(f"{folder}/given/output.0.npy").tolist() == [2, 4, 6, 8]
    for engine in ([], ["--engine", "reference"]):
        capsys.readouterr()
        assert main(["golden", "check", folder, *engine]) == 0
        said = capsys.readouterr()
        assert said.err == "2 records, 0 failed\n"
        assert said.out.splitlines()[1].startswith("saxpy (StableHLO 1.0.0, recorded with jaxlib ")
        assert said.out.splitlines()[1].endswith(": as recorded")


def test_what_computes_something_else_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = vt.record_golden(tmp_path, SAXPY, name="saxpy")
    wrong = np.load(tmp_path / "saxpy/output.0.npy") + 1
    # As if the library of then had computed something else.
    vt.record_golden(tmp_path, SAXPY, name="other")
    (tmp_path / "other/output.0.npy").unlink()
    np.save(tmp_path / "other/output.0.npy", wrong)
    _rehash(tmp_path / "other", "output.0.npy")
    found = {each.record.name: each for each in vt.check_golden(tmp_path)}
    assert found["saxpy"].passed
    assert not found["other"].passed
    assert round(found["other"].outputs[0].max_absolute, 5) == 1
    assert main(["golden", "check", str(tmp_path), "--output-format", "json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["passed"]) for each in said["records"]] == [("other", False), ("saxpy", True)]
    assert record.stablehlo == said["records"][1]["stablehlo"]


def _rehash(folder: Path, file: str) -> None:
    import hashlib

    path = folder / "golden.json"
    said = json.loads(path.read_text())
    for each in (*said["inputs"], *said["outputs"]):
        if each["file"] == file:
            each["sha256"] = hashlib.sha256((folder / file).read_bytes()).hexdigest()
    path.write_text(json.dumps(said))


@pytest.mark.parametrize("file", ["model.mlirbc", "input.1.npy", "output.0.npy"])
def test_a_file_that_was_changed_is_told(tmp_path: Path, file: str) -> None:
    vt.record_golden(tmp_path, SAXPY, name="saxpy")
    path = tmp_path / "saxpy" / file
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    (found,) = vt.check_golden(tmp_path)
    assert not found.passed
    assert f"{file} was changed after it was recorded" in str(found)


def test_one_that_cannot_be_replayed_does_not_stop_the_others(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        vt.record_golden(tmp_path, SAXPY, name=name)
    (tmp_path / "b/input.0.npy").unlink()
    found = list(vt.check_golden(tmp_path))
    assert [each.passed for each in found] == [True, False, True]
    assert "input.0.npy" in str(found[1])


@pytest.mark.parametrize("element", ["i4", "ui2", "bf16", "f8E4M3FN", "f8E5M2", "complex<f32>", "i1"])
def test_every_type_is_kept(tmp_path: Path, element: str) -> None:
    tensor = f"tensor<3x{element}>"
    program = f"func.func @main(%a: {tensor}) -> {tensor} {{ return %a : {tensor} }}"
    record = vt.record_golden(tmp_path, program, name="identity")
    (array,) = record.values(record.inputs)
    names = {"i4": "int4", "ui2": "uint2", "bf16": "bfloat16", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2"}
    expected: Any = {"complex<f32>": "complex64", "i1": "bool"}.get(element) or getattr(ml_dtypes, names[element])
    assert array.dtype == expected
    assert [each.passed for each in vt.check_golden(tmp_path)] == [True]


def test_tuples_are_kept(tmp_path: Path) -> None:
    kind = "tuple<tensor<2xf32>, tuple<tensor<i32>>>"
    body = f"return %b, %a : {kind}, tensor<f32>"
    program = f"func.func @main(%a: tensor<f32>, %b: {kind}) -> ({kind}, tensor<f32>) {{ {body} }}"
    inputs = [np.float32(1), (np.array([2, 3], np.float32), (np.int32(4),))]
    record = vt.record_golden(tmp_path, program, inputs, name="pair")
    assert [each.place for each in record.inputs] == ["0", "1.0", "1.1.0"]
    (first, (second,)), third = record.values(record.outputs)
    assert (first.tolist(), second.item(), third.item()) == ([2, 3], 4, 1)
    assert [each.passed for each in vt.check_golden(tmp_path)] == [True]


def test_an_artifact_is_kept_as_it_is(tmp_path: Path) -> None:
    artifact = vt.serialize(SAXPY, "1.2.0")
    record = vt.record_golden(tmp_path, artifact, name="saxpy")
    assert (tmp_path / "saxpy/model.mlirbc").read_bytes() == bytes(artifact)
    assert record == read_record(tmp_path / "saxpy")
    assert record.stablehlo == "1.2.0"


def test_nothing_is_replaced_unasked_and_nothing_half_made(tmp_path: Path) -> None:
    vt.record_golden(tmp_path, SAXPY, name="saxpy")
    before = (tmp_path / "saxpy/input.0.npy").read_bytes()
    assert main(["golden", "record", str(tmp_path), str(SAXPY), "--seed", "5"]) == 2
    assert (tmp_path / "saxpy/input.0.npy").read_bytes() == before
    assert main(["golden", "record", str(tmp_path), str(SAXPY), "--seed", "5", "--force"]) == 0
    assert (tmp_path / "saxpy/input.0.npy").read_bytes() != before
    (tmp_path / "mine").mkdir()
    with pytest.raises(FileExistsError):
        vt.record_golden(tmp_path, SAXPY, name="mine", force=True)
    call = "stablehlo.custom_call @f() : () -> tensor<f32>"
    bad = f"func.func @main() -> tensor<f32> {{ %0 = {call} return %0 : tensor<f32> }}"
    with pytest.raises(vt.EngineError):
        vt.record_golden(tmp_path, bad, name="bad")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine", "saxpy"]


@pytest.mark.parametrize("said", [b"", b"{}", b"[]", b'{"format": 2}', b'{"format": 1, "inputs": 3}', b"\xff"])
def test_what_is_no_record(tmp_path: Path, said: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["golden", "check", str(tmp_path)]) == 2
    assert "contains no records" in capsys.readouterr().err
    (tmp_path / "a").mkdir()
    (tmp_path / "a/golden.json").write_bytes(said)
    assert main(["golden", "check", str(tmp_path)]) == 2
    assert "golden.json" in capsys.readouterr().out
    assert main(["golden", "record", str(tmp_path), str(SAXPY), "--name", "../b"]) == 2


FULL = """
import resource, sys
import vhlo_tools as vt
from vhlo_tools import system
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    vt.record_golden(sys.argv[1], sys.argv[2], name="saxpy")
except OSError as error:
    print(error.strerror)
"""


def test_a_full_disk_leaves_no_folder(tmp_path: Path) -> None:
    """A limit on the size of files stands for the end of the disk."""
    (tmp_path / "mine").mkdir()
    for folder in ("mine", "suite/of/mine"):
        result = warm_python().run(FULL, str(tmp_path / folder), str(SAXPY))
        assert result.stdout == "File too large\n", result.stderr
    assert [each.name for each in tmp_path.rglob("*")] == ["mine"]


@pytest.mark.skipif(not system.FOLDER, reason="the system names no files in a folder that is open")
@pytest.mark.parametrize("moment", ["mkdir", "rename"])
def test_a_suite_that_becomes_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    suite, outside = tmp_path / "suite", tmp_path / "outside"
    for folder in (suite, outside):
        vt.record_golden(folder, SAXPY, name="saxpy")
    before = {each: each.stat().st_ino for each in outside.rglob("*")}
    original = getattr(os, moment)

    def swapped(*arguments: Any, **options: Any) -> None:
        if not suite.is_symlink():
            original(suite, tmp_path / "kept") if moment == "rename" else suite.rename(tmp_path / "kept")
            suite.symlink_to(outside)
        original(*arguments, **options)

    monkeypatch.setattr(f"vhlo_tools.verification.golden.os.{moment}", swapped)
    with contextlib.suppress(OSError):
        vt.record_golden(suite, SAXPY, name="saxpy", force=True)
    assert {each: each.stat().st_ino for each in outside.rglob("*")} == before
