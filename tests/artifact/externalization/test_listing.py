"""Constants listed and written as files, against values that the test writes into the program."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from support.weights_files import read_header

import vhlo_tools as vt
from vhlo_tools.artifact import extraction as extracting
from vhlo_tools.artifact.constants import find_constants, named_constants
from vhlo_tools.bytecode import encode

FLOATS = {
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "bf16": "bfloat16",
    **{
        f"f{name}": f"float{name.replace('E', '_e').lower()}"
        for name in (
            *("8E4M3FN", "8E5M2", "8E4M3FNUZ", "8E5M2FNUZ", "8E4M3B11FNUZ", "8E4M3", "8E3M4"),
            *("4E2M1FN", "6E2M3FN", "6E3M2FN", "8E8M0FNU"),
        )
    },
}
INTEGERS = {
    **{f"i{bits}": f"int{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (2, 4, 8, 16, 32, 64)},
}
COMPLEX = {"complex<f32>": "complex64", "complex<f64>": "complex128"}

IN_SAFETENSORS = {
    "i1": "BOOL",
    "f16": "F16",
    "bf16": "BF16",
    "f32": "F32",
    "f64": "F64",
    "complex<f32>": "C64",
    "f8E4M3FN": "F8_E4M3",
    "f8E5M2": "F8_E5M2",
    **{f"i{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
}


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def program(kind: str, value: str) -> str:
    return f"func.func @main() -> {kind} {{ %0 = stablehlo.constant dense<{value}> : {kind}\n return %0 : {kind} }}"


def cases() -> list[tuple[str, str, np.ndarray]]:
    """Return element types with six values as MLIR writes them, and as numpy has them."""
    found = []
    for element, name in FLOATS.items():
        numbers = (
            [[1.0, 2.0, 4.0], [0.5, 1.0, 2.0]] if name == "float8_e8m0fnu" else [[1.0, -2.0, 3.0], [0.5, -1.5, 4.0]]
        )
        found.append((element, str(numbers), np.array(numbers, dtype_of(name))))
    for element, name in INTEGERS.items():
        numbers = [[0, 1, 3], [2, 1, 0]] if element[0] == "u" else [[0, 1, -1], [-2, 1, 0]]
        found.append((element, str(numbers), np.array(numbers, dtype_of(name))))
    for element, name in COMPLEX.items():
        text = "[[(1.0, 2.0), (0.0, -1.0), (0.5, 0.0)], [(3.0, 0.0), (0.0, 0.0), (1.0, 1.0)]]"
        found.append((element, text, np.array([[1 + 2j, complex(0, -1), 0.5], [3, 0, 1 + 1j]], name)))
    return found


@pytest.mark.parametrize(("element", "text", "expected"), cases(), ids=[each[0] for each in cases()])
def test_element_types(element: str, text: str, expected: np.ndarray, tmp_path: Path) -> None:
    artifact = vt.serialize(program(f"tensor<2x3x{element}>", text))
    (constant,) = vt.constants(artifact)
    assert (constant.type, constant.element_type, constant.shape) == (f"tensor<2x3x{element}>", element, (2, 3))
    assert constant.bytes == constant.bytes_in_file == expected.nbytes
    assert constant.digest == hashlib.sha256(expected.tobytes()).hexdigest()
    assert (constant.splat, constant.uses, constant.shared_with) == (False, 1, None)

    (written,) = vt.extract_constants(artifact, tmp_path / "one.npy")
    loaded = np.load(tmp_path / "one.npy")
    assert written.dtype == expected.dtype.name
    # Of numpy's own types as they are; those of ml_dtypes come as bytes.
    assert (loaded.dtype == expected.dtype) == hasattr(np, expected.dtype.name)
    np.testing.assert_array_equal(loaded.view(expected.dtype), expected)

    vt.extract_constants(artifact, tmp_path / "all.safetensors")
    header, data = read_header(tmp_path / "all.safetensors")
    entry = header["@main/0:stablehlo.constant"]
    assert data == expected.tobytes()
    assert entry["data_offsets"] == [0, len(data)]
    if element in IN_SAFETENSORS:
        assert entry["dtype"] == IN_SAFETENSORS[element]
        assert entry["shape"] == [2, 3]
        assert "__metadata__" not in header
    else:
        assert entry["dtype"] == "U8"
        assert entry["shape"] == ([2, 3] if expected.itemsize == 1 else [2, 3, expected.itemsize])
        assert header["__metadata__"] == {"element_types": f'{{"@main/0:stablehlo.constant": "{element}"}}'}


BOOLEANS = [True, False, True, True, False, False, True, True, True, False, True]


@pytest.mark.parametrize("version", ["0.9.0", "1.9.0"])
@pytest.mark.parametrize(
    ("shape", "values"),
    [
        ((11,), BOOLEANS),
        ((3,), [True, False, True]),
        ((3,), [True] * 3),
        ((3,), [False] * 3),
        ((8,), [True] * 8),
        ((100,), [True] * 100),
        ((100,), [False] * 100),
        ((), [True]),
        ((), [False]),
        ((1,), [True]),
        ((0,), []),
        ((2, 4), [True, False] * 4),
    ],
)
def test_booleans(shape: tuple[int, ...], values: list[bool], version: str, tmp_path: Path) -> None:
    expected = np.array(values, bool).reshape(shape)
    text = str(expected.tolist()).lower() if values else ""
    artifact = vt.serialize(program(f"tensor<{''.join(f'{size}x' for size in shape)}i1>", text), version)
    (constant,) = vt.constants(artifact)
    assert constant.splat == (len(values) > 1 and len(set(values)) == 1)
    assert constant.bytes == expected.nbytes
    distinct = values[:1] if constant.splat else values
    assert constant.digest == hashlib.sha256(np.array(distinct, bool).tobytes()).hexdigest()
    vt.extract_constants(artifact, tmp_path / "one.npy")
    loaded = np.load(tmp_path / "one.npy")
    assert loaded.dtype == bool
    np.testing.assert_array_equal(loaded, expected)


def with_elements(artifact: vt.Artifact, path: str, data: bytes) -> vt.Artifact:
    """Return an artifact with other bytes for the elements of a constant."""
    file = artifact.copy_of_file()
    (found,) = (each for at, each, _ in named_constants(file, "", find_constants(file)[0]) if at == path)
    value = file.decode("attribute", found.value)
    assert value is not None
    file.attributes[found.value] = file.encode("attribute", replace(value, fields=(value.field("type"), data)))
    return vt.open_artifact(encode(file))


def test_booleans_of_a_byte_each(tmp_path: Path) -> None:
    artifact = vt.serialize(program("tensor<11xi1>", str(BOOLEANS).lower()))
    wide = with_elements(artifact, "@main/0:stablehlo.constant", bytes(BOOLEANS))
    (constant,) = vt.constants(wide)
    assert (constant.bytes, constant.bytes_in_file) == (11, 11)
    assert constant.digest == hashlib.sha256(bytes(BOOLEANS)).hexdigest()
    vt.extract_constants(wide, tmp_path / "one.npy")
    assert np.load(tmp_path / "one.npy").tolist() == BOOLEANS


@pytest.mark.parametrize("same", [False, True])
def test_many_booleans(same: bool, tmp_path: Path) -> None:
    # More than are unpacked at once, and no multiple of eight.
    number = (1 << 24) + 11
    values = np.ones(number, bool) if same else np.random.default_rng(0).integers(0, 2, number).astype(bool)
    packed = np.packbits(values, bitorder="little").tobytes()
    artifact = with_elements(
        vt.serialize(program(f"tensor<{number}xi1>", "true")), "@main/0:stablehlo.constant", packed
    )
    (constant,) = vt.constants(artifact)
    assert (constant.bytes, constant.bytes_in_file, constant.splat) == (number, len(packed), same)
    assert constant.digest == hashlib.sha256(values[: 1 if same else None].tobytes()).hexdigest()
    result = vt.externalize_constants(artifact)
    result.save_weights(tmp_path / "w.safetensors")
    assert read_header(tmp_path / "w.safetensors")[1] == values.tobytes()
    assert bytes(vt.restore_constants(result.artifact, tmp_path / "w.safetensors")).count(packed) == 1


def test_splats_and_empty_ones(tmp_path: Path) -> None:
    artifact = vt.serialize(
        """func.func @main(%a: tensor<300x200xf32>) -> (tensor<300x200xf32>, tensor<0x5xbf16>) {
          %0 = stablehlo.constant dense<1.5> : tensor<300x200xf32>
          %1 = stablehlo.constant dense<> : tensor<0x5xbf16>
          %2 = stablehlo.clamp %0, %a, %0 : tensor<300x200xf32>
          return %2, %1 : tensor<300x200xf32>, tensor<0x5xbf16> }"""
    )
    splat, empty = vt.constants(artifact)
    assert (splat.bytes, splat.bytes_in_file, splat.splat, splat.uses) == (240_000, 4, True, 2)
    assert splat.digest == hashlib.sha256(np.float32(1.5).tobytes()).hexdigest()
    assert (empty.bytes, empty.bytes_in_file, empty.splat) == (0, 0, False)
    assert [each.path for each in vt.constants(artifact, min_size=240_000)] == [splat.path]
    one, other = vt.extract_constants(artifact, tmp_path / "folder")
    assert one.file is not None
    assert other.file is not None
    assert one.file.name == "main_0_stablehlo.constant.npy"
    np.testing.assert_array_equal(np.load(one.file), np.full((300, 200), 1.5, "float32"))
    assert np.load(other.file).shape == (0, 5)


def test_a_splat_of_more_than_is_written_out(tmp_path: Path) -> None:
    size = extracting.LARGEST_SPLAT // 4 + 1
    artifact = vt.serialize(program(f"tensor<{size}xf32>", "0.0"))
    (constant,) = vt.constants(artifact)
    assert constant.bytes == 4 * size
    for output in ("folder", "all.safetensors"):
        (written,) = vt.extract_constants(artifact, tmp_path / output)
        assert written.file is None
        assert written.reason == f"one element represents {4 * size} bytes; at most 1073741824 are expanded"
    result = vt.externalize_constants(artifact)
    assert result.record.moved == ()
    assert "at most 1073741824 are expanded" in result.notes[0]


def test_what_is_shared_and_where() -> None:
    artifact = vt.serialize(
        """func.func @main(%p: tensor<i1>) -> tensor<2xi32> {
          %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
          %1 = "stablehlo.if"(%p) ({
            %2 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
            stablehlo.return %2 : tensor<2xi32>
          }, { stablehlo.return %0 : tensor<2xi32> }) : (tensor<i1>) -> tensor<2xi32>
          return %1 : tensor<2xi32> }
        func.func private @dead() -> tensor<2xui32> {
          %0 = stablehlo.constant dense<[1, 2]> : tensor<2xui32>
          %1 = stablehlo.constant dense<[3, 2]> : tensor<2xui32>
          return %0 : tensor<2xui32> }"""
    )
    found = vt.constants(artifact)
    assert [(each.path, each.uses, each.shared_with) for each in found] == [
        ("@main/0:stablehlo.constant", 1, None),
        ("@main/1:stablehlo.if/0/0:stablehlo.constant", 1, "@main/0:stablehlo.constant"),
        ("@dead/0:stablehlo.constant", 1, None),
        ("@dead/1:stablehlo.constant", 0, None),
    ]
    # The same bytes of another type: the digest is of bytes.
    assert found[0].digest == found[1].digest == found[2].digest != found[3].digest


def test_safetensors_itself_reads_them(tmp_path: Path) -> None:
    kinds = "tensor<3xi1>, tensor<2xcomplex<f64>>, tensor<f32>, tensor<2xi4>, tensor<0xf64>"
    artifact = vt.serialize(
        f"""func.func @main() -> ({kinds}) {{
          %0 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
          %1 = stablehlo.constant dense<(1.0, 2.0)> : tensor<2xcomplex<f64>>
          %2 = stablehlo.constant dense<3.0> : tensor<f32>
          %3 = stablehlo.constant dense<-1> : tensor<2xi4>
          %4 = stablehlo.constant dense<> : tensor<0xf64>
          return %0, %1, %2, %3, %4 : {kinds} }}"""
    )
    vt.extract_constants(artifact, tmp_path / "all.safetensors")
    arrays = safetensors.numpy.load_file(tmp_path / "all.safetensors")
    values = [arrays[f"@main/{index}:stablehlo.constant"] for index in range(5)]
    assert values[0].tolist() == [True, False, True]
    assert values[1].reshape(-1).view("complex128").tolist() == [1 + 2j, 1 + 2j]
    assert values[2] == np.float32(3.0)
    assert values[3].view(ml_dtypes.int4).tolist() == [-1, -1]
    assert values[4].shape == (0,)
