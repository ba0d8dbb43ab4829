"""SavedModels told and read without TensorFlow, also those that are damaged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.protobuf_messages import field

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.files import Kind, identify, is_saved_model
from vhlo_tools.files.saved_model import SavedModel, SavedSignature, SavedTensor, read_saved_model


def tensor(dtype: int, *sizes: int, rank: bool = True) -> bytes:
    dims = b"".join(field(2, field(1, size % (1 << 64)) if size else b"") for size in sizes)
    return field(1, "name:0") + field(2, dtype) + field(3, dims if rank else field(3, 1))


def entry(key: str, value: bytes) -> bytes:
    return field(1, key) + field(2, value)


SERVE = (
    field(1, entry("x", tensor(1, -1, 4))) + field(1, entry("n", tensor(9))) + field(3, "tensorflow/serving/predict")
)
SERVE += field(2, entry("y", tensor(14, 0))) + field(2, entry("any", tensor(99, rank=False)))
GRAPH = field(1, field(4, "serve") + field(5, "2.21.0")) + field(2, b"\xff" * 40)
GRAPH += field(5, entry("serving_default", SERVE)) + field(5, entry("__saved_model_init_op", b""))
# With a field of each fixed width, which nothing is read from.
MODEL = field(1, 1) + b"\x79" + bytes(8) + b"\x7d" + bytes(4) + field(2, GRAPH)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = tmp_path / "saved"
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(MODEL)
    (folder / "variables" / "variables.index").write_bytes(bytes(10))
    (folder / "variables" / "variables.data-00000-of-00001").write_bytes(bytes(32))
    return folder


def test_what_a_saved_model_offers(saved: Path) -> None:
    assert read_saved_model(saved) == SavedModel(
        tensorflow_version="2.21.0",
        tags=("serve",),
        signatures=(
            SavedSignature(
                "serving_default",
                (SavedTensor("n", "int64", ()), SavedTensor("x", "float32", (None, 4))),
                (SavedTensor("any", "type 99", None), SavedTensor("y", "bfloat16", (0,))),
            ),
        ),
        graph_bytes=len(MODEL),
        variable_bytes=42,
    )


@pytest.mark.parametrize(
    ("number", "name"),
    [
        # DT_FLOAT and so on, in the order of tensorflow/core/framework/types.proto.
        *enumerate(
            ("float32", "float64", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool"), 1
        ),
        (14, "bfloat16"),
        *enumerate(("uint16", "complex128", "float16", "resource", "variant", "uint32", "uint64"), 17),
        (13, "type 13"),
    ],
)
def test_types_of_elements(saved: Path, number: int, name: str) -> None:
    graph = field(5, entry("serve", field(1, entry("x", tensor(number)))))
    (saved / "saved_model.pb").write_bytes(field(2, graph))
    (signature,) = read_saved_model(saved).signatures
    assert signature.inputs == (SavedTensor("x", name, ()),)


@pytest.mark.parametrize(
    ("size", "read"), [(0, 0), (1, 1), ((1 << 63) - 1, (1 << 63) - 1), (-(1 << 63), None), (-1, None)]
)
def test_sizes_that_are_negative_are_open(saved: Path, size: int, read: int | None) -> None:
    graph = field(5, entry("serve", field(1, entry("x", tensor(1, size)))))
    (saved / "saved_model.pb").write_bytes(field(2, graph))
    assert read_saved_model(saved).signatures[0].inputs[0].shape == (read,)


def test_a_saved_model_without_variables(saved: Path) -> None:
    shutil.rmtree(saved / "variables")
    assert read_saved_model(saved).variable_bytes == 0


def test_a_folder_is_told_by_what_is_in_it(saved: Path, tmp_path: Path) -> None:
    assert is_saved_model(saved)
    assert identify(saved).kind is identify(str(saved)).kind is Kind.SAVED_MODEL
    assert not is_saved_model(tmp_path)
    assert not is_saved_model("module {\n}" * 1000)
    assert not is_saved_model("a\0b")
    (tmp_path / "saved_model.pb").mkdir()
    assert not is_saved_model(tmp_path)


def test_inspect_shows_it(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(saved)]) == 0
    said = "  takes    2 inputs: n: int64[], x: float32[?, 4] (serving_default)\n"
    assert said in capsys.readouterr().out
    assert main(["inspect", str(saved), "--all"]) == 0
    text = capsys.readouterr().out
    assert "saved-model" in text
    assert "  serving_default(n: int64[], x: float32[?, 4]) -> (any: type 99 of any shape, y: bfloat16[0])\n" in text
    assert main(["inspect", str(saved), "--output-format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["size"], told["tags"]) == ("saved-model", len(MODEL) + 42, ["serve"])
    assert told["signatures"]["serving_default"]["inputs"] == {"n": "int64[]", "x": "float32[?, 4]"}


def test_other_folders_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path)]) == 2
    assert "is a folder, but not a SavedModel: expected a file saved_model.pb in it" in capsys.readouterr().err
    assert main(["serialize", str(tmp_path), "-o", str(tmp_path / "out")]) == 2
    assert "Is a directory" in capsys.readouterr().err


@pytest.mark.sample(64)
@pytest.mark.parametrize("cut", range(len(MODEL)))
def test_a_file_that_is_cut_short_is_refused_or_read(saved: Path, cut: int) -> None:
    (saved / "saved_model.pb").write_bytes(MODEL[:cut])
    with pytest.raises(vt.MalformedArtifactError, match="a SavedModel|contains no graph"):
        read_saved_model(saved)


@pytest.mark.long
def test_bits_that_flip_are_noticed_or_change_what_is_said(saved: Path) -> None:
    refused = 0
    for bit in range(8 * len(MODEL)):
        data = bytearray(MODEL)
        data[bit // 8] ^= 1 << bit % 8
        (saved / "saved_model.pb").write_bytes(data)
        try:
            assert isinstance(read_saved_model(saved), SavedModel)
        except vt.MalformedArtifactError:
            refused += 1
    assert refused > len(MODEL)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "contains no graph"),
        (b"\xff" * 20, "contains an unterminated varint"),
        (b"\x0b", "a field of kind 3"),
        (field(2, field(5, 3)), "a number where a message is expected"),
        (
            field(2, field(5, entry("s", field(1, entry("x", field(2, b"abc")))))),
            "a message where a number is expected",
        ),
        (b"\x12\xff\xff\xff\xff\x7f", "cut short"),
    ],
)
def test_what_is_damaged(saved: Path, data: bytes, message: str) -> None:
    (saved / "saved_model.pb").write_bytes(data)
    with pytest.raises(vt.MalformedArtifactError, match=message):
        read_saved_model(saved)


def test_options_of_saved_models_mean_nothing_for_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.mlir"
    program.write_text("module {}")
    for options in (["--signature", "serve"], ["--batch-size", "2"]):
        assert main(["serialize", str(program), *options, "-o", str(tmp_path / "out")]) == 2
        assert "is not a framework's program (torch-export, saved-model, jax-lowered)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
