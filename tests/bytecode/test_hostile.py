"""Files that no library writes: each is read or refused with a place, and none costs more than its size."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.artifact import Artifact, inspect_bytes
from vhlo_tools.bytecode import (
    Block,
    BlockArgument,
    Entry,
    File,
    Operation,
    Region,
    Value,
    decode,
    encode,
    inherent_attributes,
)
from vhlo_tools.bytecode.container import encode_section
from vhlo_tools.bytecode.entries import LARGEST_TABLE, MOST_ATTRIBUTES, Properties, decode_entries, decode_properties
from vhlo_tools.bytecode.primitives import ByteReader, varint
from vhlo_tools.files.mapping import join
from vhlo_tools.spec import EntryKind, encodings_of

pytestmark = pytest.mark.every_python

PROGRAM_OF_ONE_OP = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"


def add(file: File, name: str, *fields: Any, dialect: str = "vhlo", kind: EntryKind = "attribute") -> int:
    """Add an attribute or a type to ``file``, and return its index."""
    encoding = next(each for each in encodings_of(dialect, kind).values() if each.name == name)
    table = file.attributes if kind == "attribute" else file.types
    table.append(file.encode(kind, Value(dialect, encoding, fields)))
    return len(table) - 1


def function(file: File) -> Operation:
    return file.ir.operations[0].regions[0].blocks[0].operations[0]


def set_argument_attributes(file: File, index: int) -> None:
    """Let every argument of the function have the attribute ``index``."""
    op = function(file)
    arguments = len(op.regions[0].blocks[0].arguments)
    file.strings.append(b"key")
    pairs = ((add(file, "string_v1", len(file.strings) - 1), index),)
    attributes = add(file, "array_v1", (add(file, "dict_v1", pairs),) * arguments)
    found = inherent_attributes(file, op)
    file.properties.append(
        Properties(b"".join(varint(attributes if name == "arg_attrs" else old) for name, old in found.items()))
    )
    op.properties = len(file.properties) - 1


@pytest.fixture
def file() -> File:
    file = decode(bytes(vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0")))
    file.load()
    return file


def inspect(data: bytes) -> None:
    json.dumps(inspect_bytes(data, "it"), default=str)


def text(data: bytes) -> str:
    return Artifact(data).text(debug_info=True)


def strip(data: bytes) -> None:
    Artifact(data).stripped()


def refused(run: Callable[[bytes], object], data: bytes, message: str) -> vt.MalformedArtifactError:
    with pytest.raises(vt.MalformedArtifactError, match=message) as caught:
        run(data)
    assert caught.value.section is not None
    assert caught.value.offset is not None
    return caught.value


def test_the_attributes_of_an_op_that_are_no_dictionary(file: File) -> None:
    file.ir.operations[0].attributes = add(file, "array", (0, 0), dialect="builtin")
    refused(inspect, encode(file), "expected the dictionary of an op, found builtin.array")


@pytest.mark.parametrize(("width", "levels"), [(2, 60), (5000, 3)])
def test_lists_of_lists_of_lists(width: int, levels: int, file: File) -> None:
    index = add(file, "array_v1", ())
    for _ in range(levels):
        index = add(file, "array_v1", (index,) * width)
    set_argument_attributes(file, index)
    data = encode(file)
    refused(inspect, data, "a nested attribute expands to")
    refused(text, data, "a nested attribute expands to")


def test_a_list_of_many_long_ones_is_refused_before_it_is_joined(file: File) -> None:
    file.strings.append(b"x" * 1000)
    index = add(file, "string_v1", len(file.strings) - 1)
    for _ in range(2):
        index = add(file, "array_v1", (index,) * 10_000)
    set_argument_attributes(file, index)
    refused(text, encode(file), "a nested attribute expands to .* or more")


@pytest.mark.long
def test_a_long_string_is_printed(file: File) -> None:
    file.strings.append(b"x" * (17 << 20))
    key = add(file, "string", len(file.strings) - 1, dialect="builtin")
    file.ir.operations[0].attributes = add(file, "dictionary", ((key, key),), dialect="builtin")
    assert len(text(encode(file))) > 2 * 17 << 20


@pytest.mark.parametrize("depth", [100, 190])
def test_deep_regions(depth: int, file: File) -> None:
    module = file.ir.operations[0]
    for _ in range(depth):
        outer = Operation(module.name, module.location, properties=module.properties, isolated=True)
        outer.regions = [Region([Block(operations=file.ir.operations)])]
        file.ir.operations = [outer]
    data = encode(file)
    if depth > 128:
        for run in (inspect, text, strip):
            refused(run, data, "ops nest deeper than 128")
    else:
        assert text(data).count("builtin.module") == depth + 1
        inspect(data)
        strip(data)


@pytest.mark.long
def test_regions_that_are_too_deep_to_be_written(file: File) -> None:
    """Compiled code would not see the end of the stack."""
    for _ in range(100_000):
        outer = Operation(0, 0, regions=[Region([Block(operations=file.ir.operations)])])
        file.ir.operations = [outer]
    with pytest.raises(ValueError, match="ops nest deeper than 256 levels"):
        encode(file)


@pytest.mark.parametrize(
    ("shape", "shown"),
    [((1,) * 255, 'dense<"0x01">'), ((1 << 60, 7), "dense<true>")],
    ids=["of 255 dimensions", "of elements below 2^63"],
)
def test_a_tensor_of_booleans(shape: tuple[int, ...], shown: str, file: File) -> None:
    element = add(file, "bool_v1", kind="type")
    tensor = add(file, "tensor_v1", shape, element, kind="type")
    set_argument_attributes(file, add(file, "tensor_v1", tensor, b"\1"))
    assert shown in text(encode(file))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1,) * 256, "a type has 256 dimensions; the limit is 255"),
        ((1 << 62,) * 400_000, "a type has 400000 dimensions; the limit is 255"),
        ((1 << 60, 8), r"a type has 2\^63 elements or more; the limit is 2\^63 - 1"),
    ],
    ids=["of 256 dimensions", "of 400,000 dimensions", "of 2^63 elements"],
)
def test_a_type_of_more_than_an_array_can_have(shape: tuple[int, ...], message: str, file: File) -> None:
    tensor = add(file, "tensor_v1", shape, add(file, "bool_v1", kind="type"), kind="type")
    function(file).regions[0].blocks[0].arguments[0] = BlockArgument(tensor, None)
    set_argument_attributes(file, add(file, "tensor_v1", tensor, b"\1"))
    data = encode(file)
    for run in (inspect, text):
        refused(run, data, message)


@pytest.mark.parametrize(("type_", "text_"), [("i2_v1", "-1 : i2"), ("ui2_v1", "3 : ui2"), ("i4_v1", "3 : i4")])
def test_integers_of_few_bits_are_signed(type_: str, text_: str, file: File) -> None:
    # No library writes or reads those of two bits.
    set_argument_attributes(file, add(file, "integer_v1", add(file, type_, kind="type"), 3))
    assert f"<{text_}" in text(encode(file))


def test_strip_of_a_file_without_the_dialect_of_locations(file: File) -> None:
    file.strings[file.strings.index(b"builtin")] = b"unknown"
    refused(strip, encode(file), "does not declare the dialect builtin")


def test_places_within_entries_are_places_in_the_file(file: File) -> None:
    file.attributes.append(Entry(0, True, b"\x02"))
    data = encode(file)
    error = refused(inspect, data, "1 bytes were announced")
    section = next(each for each in decode(data).sections if each.name == "attr_type")
    assert error.offset is not None
    assert section.offset < error.offset <= section.end


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (b"", "is empty"),
        (b"ML", "is text"),
        (b"ML\xefR", "is ordinary MLIR bytecode"),
        (b"ML\xefR\x0dStableHLO_vX", "whose version is invalid"),
    ],
)
def test_what_is_no_artifact(start: bytes, message: str, file: File) -> None:
    data = encode(file)
    rest = data[data.index(b"\0") :] if len(start) > len(b"ML\xefR") else b""
    refused(text, start + rest, message)


def test_a_section_that_means_nothing_is_passed_on() -> None:
    section = join(encode_section("dialect_versions", [b"x"]))
    data = bytes(vt.serialize(EXAMPLES / "saxpy.mlir", "1.0.0")) + section
    assert encode(decode(data)) == data
    assert bytes(vt.strip(data)).endswith(b"x")


def test_more_entries_than_any_program_has() -> None:
    """An entry takes a hundred times the memory that it takes of the file, and an attribute thirty times."""
    for things, most, read in (
        ("attributes", MOST_ATTRIBUTES, lambda sizes: decode_entries(sizes, ByteReader(memoryview(b"")), 1)),
        ("types", LARGEST_TABLE, lambda sizes: decode_entries(sizes, ByteReader(memoryview(b"")), 1)),
        ("properties", LARGEST_TABLE, decode_properties),
    ):
        number = most + 1
        data = varint(0) + varint(number) if things == "types" else varint(number)
        with pytest.raises(vt.MalformedArtifactError, match=f"the file has {number} {things}; the limit is "):
            read(ByteReader(memoryview(data + bytes(number))))


def test_small_entries_are_no_views() -> None:
    for program in (PROGRAM_OF_ONE_OP, EXAMPLES / "saxpy.mlir"):
        file = decode(bytes(vt.serialize(program)))
        assert all(isinstance(each.data, bytes) for each in [*file.attributes, *file.types])
        assert all(isinstance(each.data, bytes) for each in file.properties)
