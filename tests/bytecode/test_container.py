"""The container over artifacts of every version, over ordinary bytecode, and over damaged bytes."""

from __future__ import annotations

import random
from io import BytesIO

import pytest
from support.corpus import EXAMPLES, writable_versions
from support.raw import RawLibrary

from vhlo_tools import MalformedArtifactError, Version
from vhlo_tools.artifact.artifact import names_by_dialect
from vhlo_tools.bytecode import decode, decode_container, encode

pytestmark = pytest.mark.every_python

# Version 0, producer "x", then the five sections that every file has, of one byte each.
SMALLEST = bytes.fromhex("4d4cef52" "01" "7800" "000300" "010300" "020300" "030300" "040300")  # fmt: skip


def names_in(data: bytes) -> dict[str, set[str]]:
    return {dialect: set(ops) for dialect, ops in names_by_dialect(decode(data)).items()}


def test_a_file_by_hand() -> None:
    container = decode_container(memoryview(SMALLEST))
    assert (container.version, container.producer, container.header_size) == (0, "x", 7)
    assert [(s.name, s.offset, s.size) for s in container.sections] == [
        ("string", 9, 1),
        ("dialect", 12, 1),
        ("attr_type", 15, 1),
        ("attr_type_offset", 18, 1),
        ("ir", 21, 1),
    ]


@pytest.mark.parametrize("version", writable_versions(), ids=str)
def test_sections_fill_the_file_and_names_are_read_at_every_version(version: Version, raw: RawLibrary) -> None:
    written = raw.serialize(raw.parse((EXAMPLES / "convnet.bc").read_bytes()), str(version))
    assert written is not None
    container = decode_container(memoryview(written))
    assert container.producer == f"StableHLO_v{version}"
    assert container.sections[-1].end == len(written)
    assert names_in(written)["vhlo"] >= {"func_v1", "call_v1", "return_v1", "convolution_v1", "constant_v1"}


def test_ordinary_bytecode() -> None:
    data = (EXAMPLES / "convnet.bc").read_bytes()
    assert decode_container(memoryview(data)).producer.startswith("MLIR")
    assert names_in(data)["func"] == {"func", "call", "return"}


def written(raw: RawLibrary, text: str) -> bytes:
    sink = BytesIO()
    raw.parse(text).operation.write_bytecode(sink)
    return sink.getvalue()


def test_an_aligned_section(raw: RawLibrary) -> None:
    text = """
    func.func @main() -> tensor<4xf32> {
      %0 = arith.constant dense_resource<weights> : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    {-# dialect_resources: { builtin: { weights: "0x04000000000000000000803f0000004000004040" } } #-}
    """
    data = written(raw, text)
    resource = decode_container(memoryview(data)).section("resource")
    assert resource.alignment > 1
    assert resource.offset % resource.alignment == 0


@pytest.fixture(scope="module")
def artifact(raw: RawLibrary) -> bytes:
    written = raw.serialize(raw.parse((EXAMPLES / "saxpy.mlir").read_text()), "1.0.0")
    assert written is not None
    return written


def read_all(data: bytes) -> None:
    decode(data).load()


def test_a_resource_that_was_left_out_is_a_name_alone(raw: RawLibrary) -> None:
    """As in a program that was printed without its large constants and parsed again."""
    text = """func.func @main() -> tensor<4xf32> {
      %0 = stablehlo.constant dense_resource<__elided__> : tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    data = written(raw, text)
    file = decode(data)
    ((resource,),) = [group.resources for group in file.resources]
    assert (file.string(resource.key), resource.left_out, len(resource.data)) == ("__elided__", True, 0)
    file.load()
    assert encode(file) == data


def test_every_truncation_is_refused(artifact: bytes) -> None:
    for length in range(len(artifact)):
        with pytest.raises(MalformedArtifactError):
            read_all(artifact[:length])


def test_damage_is_read_or_refused_and_nothing_else(artifact: bytes) -> None:
    chance = random.Random(0)
    for _ in range(3000):
        damaged = bytearray(artifact)
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        try:
            read_all(bytes(damaged))
        except MalformedArtifactError as error:
            assert error.offset is None or 0 <= error.offset <= len(damaged)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not MLIR bytecode"),
        (b"ML\xefr", "not MLIR bytecode"),
        (b"ML\xefR", "the bytes end"),
        (b"ML\xefR\x0fx\0", "MLIR bytecode version 7 is newer than 6"),
        (b"ML\xefR\x0dxyz", "no end of the string"),
        (b"ML\xefR\x01x\0", "ends without its attr_type, attr_type_offset, dialect, ir, string sections"),
        (SMALLEST + b"\x00\x03\x00", "a second string section"),
        (SMALLEST + b"\x3f\x03\x00", "no section with id 63"),
        (SMALLEST + b"\x0b\xff\x00", "no section with id 11"),
        (SMALLEST + b"\x05\xff\x00", r"announces 127 bytes, but only 1 remain.*resource section"),
        (SMALLEST + b"\x85\x03\x07\x00", "alignment 3 is not a power of two"),
        (SMALLEST + b"\x85\x03\x01\x00", "alignment 0 is not a power of two"),
        (SMALLEST + b"\x85\x03\x21\x00\x00", "padding is not 0xCB"),
    ],
)
def test_damage_by_hand(data: bytes, message: str) -> None:
    with pytest.raises(MalformedArtifactError, match=message):
        decode_container(memoryview(data))
