"""Constants in every form that artifacts keep them in."""

from __future__ import annotations

import pytest

import vhlo_tools as vt
from vhlo_tools.artifact.constants import StoredTensor, pack, read_tensor
from vhlo_tools.bytecode import File, Printer
from vhlo_tools.bytecode.editing import Tables


@pytest.fixture
def file() -> File:
    return vt.serialize("func.func @main() { return }").copy_of_file()


def constant(file: File, element: str, shape: tuple[int, ...], data: bytes) -> StoredTensor:
    tables = Tables(file)
    kind = tables.structure("type", {"type": "tensor_v1", "shape": shape, "element": {"type": element}})
    return read_tensor(file, Printer(file), tables.vhlo("tensor_v1", kind, data))


def elements(tensor: StoredTensor) -> bytes:
    return b"".join(map(bytes, tensor.chunks()))


@pytest.mark.parametrize(
    ("number", "data", "form", "bits"),
    [
        (0, "", "whole", ""),
        (1, "00", "splat", "0"),
        (1, "01", "splat", "1"),
        (1, "ff", "splat", "1"),
        # Up to eight bits stand in a byte, where equal ones are all set or none.
        (2, "01", "packed", "10"),
        (3, "05", "packed", "101"),
        (3, "00", "splat", "000"),
        (3, "ff", "splat", "111"),
        (8, "01", "packed", "10000000"),
        # Of more, a byte stands for all of them, in old files by its lowest bit alone.
        (9, "ff", "splat", "1" * 9),
        (9, "01", "splat", "1" * 9),
        (9, "00", "splat", "0" * 9),
        (9, "0101", "packed", "100000001"),
        (3, "010001", "whole", "101"),
        (9, "010000000000000001", "whole", "100000001"),
    ],
)
def test_bits(number: int, data: str, form: str, bits: str, file: File) -> None:
    tensor = constant(file, "bool_v1", (number,), bytes.fromhex(data))
    assert tensor.form == form
    assert "".join(str(each & 1) for each in elements(tensor)) == bits
    assert (tensor.number, tensor.bytes) == (number, number)
    if set(elements(tensor)) <= {0, 1}:
        assert tensor.holds(memoryview(elements(tensor)))
        assert not tensor.holds(memoryview(elements(tensor) + b"\0"))


@pytest.mark.parametrize(("shape", "data", "form"), [((2, 2), bytes(16), "whole"), ((2, 2), bytes(4), "splat")])
def test_numbers(shape: tuple[int, ...], data: bytes, form: str, file: File) -> None:
    tensor = constant(file, "i32_v1", shape, data)
    assert (tensor.form, tensor.size, tensor.bytes, elements(tensor)) == (form, 4, 16, bytes(16))


def test_as_many_dimensions_as_all_types_may_have_and_no_more(file: File) -> None:
    assert constant(file, "i32_v1", (1,) * 255, bytes(4)).number == 1
    with pytest.raises(vt.MalformedArtifactError, match="256 dimensions"):
        constant(file, "i32_v1", (1,) * 256, bytes(4))


@pytest.mark.parametrize(
    ("element", "shape", "data", "message"),
    [
        ("i32_v1", (-1,), bytes(4), "which cannot have values"),
        ("i32_v1", (2, -(1 << 63)), bytes(4), "which cannot have values"),
        ("token_v1", (1,), bytes(4), "which cannot have values"),
        ("i32_v1", (1 << 61,), bytes(4), "which has too many elements"),
        ("i32_v1", (3,), bytes(8), "8 bytes are not elements of tensor<3xi32>"),
        ("bool_v1", (17,), bytes(2), "2 bytes are not elements of tensor<17xi1>"),
        ("i32_v1", (0,), b"a", "1 bytes are not elements of tensor<0xi32>"),
        # The first hundred characters of a type.
        ("i32_v1", (3, *[1] * 60), bytes(8), f"8 bytes are not elements of tensor<3x{'1x' * 45}1 \\("),
    ],
)
def test_what_is_no_constant(element: str, shape: tuple[int, ...], data: bytes, message: str, file: File) -> None:
    with pytest.raises(vt.MalformedArtifactError, match=message):
        constant(file, element, shape, data)


def test_another_attribute_is_none(file: File) -> None:
    index = Tables(file).vhlo("string_v1", Tables(file).string("text"))
    with pytest.raises(vt.MalformedArtifactError, match="is the value of a constant, but is not a tensor"):
        read_tensor(file, Printer(file), index)


def test_bits_are_packed_and_unpacked() -> None:
    for number in (0, 1, 7, 8, 9, 1000):
        bits = bytes(n % 3 == 0 for n in range(number))
        packed = pack(memoryview(bits))
        assert len(packed) == (number + 7) // 8
        assert elements(StoredTensor("i1", 1, (number,), "packed", packed)) == bits
    with pytest.raises(ValueError, match="a byte is neither 0 nor 1"):
        pack(memoryview(b"\0\1\2"))
