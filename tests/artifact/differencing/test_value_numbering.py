"""What stands in two files, whatever their tables look like."""

from __future__ import annotations

import pytest

import vhlo_tools as vt
from vhlo_tools.artifact.numbering import FileNumbering, ValueNumbering
from vhlo_tools.bytecode import Entry, File, attributes_of, decode, encode, heads_in
from vhlo_tools.bytecode.container import DialectName
from vhlo_tools.bytecode.editing import Tables
from vhlo_tools.bytecode.primitives import varint

PROGRAM = "func.func @main() { return }"


@pytest.fixture
def files() -> tuple[File, File]:
    """Return two files of the same program, of which the second has other tables."""
    one, other = (vt.serialize(PROGRAM).copy_of_file() for _ in range(2))
    tables = Tables(other)
    for text in ("something", "else"):
        tables.vhlo("string_v1", tables.string(text))
    return one, other


def numbers(files: tuple[File, File], one: int, other: int) -> tuple[int, int]:
    shared = ValueNumbering()
    first, second = (FileNumbering(file, shared) for file in files)
    return first.attribute(one), second.attribute(other)


def test_the_same_has_the_same_number_wherever_it_stands(files: tuple[File, File]) -> None:
    def made(file: File, *texts: str) -> int:
        tables = Tables(file)
        return tables.vhlo("array_v1", tuple(tables.vhlo("string_v1", tables.string(text)) for text in texts))

    one, other = files
    same = numbers(files, made(one, "a", "b"), made(other, "a", "b"))
    assert same[0] == same[1]
    swapped = numbers(files, made(one, "a", "b"), made(other, "b", "a"))
    assert swapped[0] != swapped[1]


def test_what_nobody_knows_is_compared_with_what_it_may_refer_to(files: tuple[File, File]) -> None:
    """Of other dialects: numbers in them may be those of attributes."""
    one, other = map(with_another_dialect, files)
    index = next(at for at in range(len(one.attributes)) if one.decode("attribute", at) is not None)
    same = numbers((one, other), opaque(one, index), opaque(other, index))
    assert same[0] == same[1]
    # What they refer to in the tables counts, and not only that they are the same bytes.
    another = len(files[0].attributes)
    assert len(set(numbers((one, other), opaque(one, another), opaque(other, another)))) == 2
    for file in (one, other):
        # Neither itself nor what is behind the end of the table is a reference.
        for beyond in range(3):
            assert isinstance(
                FileNumbering(file, ValueNumbering()).attribute(opaque(file, len(file.attributes) + beyond)), int
            )


@pytest.mark.parametrize("table", ["strings", "types"])
def test_short_opaque_bytes_are_compared_with_strings_and_types_too(table: str) -> None:
    one, other = (with_another_dialect(vt.serialize(PROGRAM).copy_of_file()) for _ in range(2))
    assert len(set(numbers((one, other), opaque(one, 0), opaque(other, 0)))) == 1
    if table == "strings":
        other.strings[0] = b"another"
    else:
        other.types[0] = Entry(len(other.dialects.names) - 1, True, b"\x01")
    assert len(set(numbers((one, other), opaque(one, 0), opaque(other, 0)))) == 2


def test_long_opaque_bytes_are_compared_with_the_whole_tables(files: tuple[File, File]) -> None:
    """Their numbers may be references, which mean something else in other tables."""
    data = varint(1) * 300

    def long(file: File) -> int:
        file.attributes.append(Entry(len(file.dialects.names) - 1, True, data))
        return len(file.attributes) - 1

    one, other = map(with_another_dialect, files)
    twin = with_another_dialect(vt.serialize(PROGRAM).copy_of_file())
    assert len(set(numbers((one, twin), long(one), long(twin)))) == 1
    assert len(set(numbers((one, other), long(one), long(other)))) == 2


def with_another_dialect(file: File) -> File:
    file.dialects.names.append(DialectName(Tables(file).string("another")))
    return decode(encode(file))


def opaque(file: File, number: int) -> int:
    """Return the index of a new attribute, of the last dialect, that holds a number."""
    file.attributes.append(Entry(len(file.dialects.names) - 1, True, varint(number)))
    return len(file.attributes) - 1


def test_long_blobs_are_told_apart_however_alike_they_are() -> None:
    shared = ValueNumbering()
    blobs = [bytes(1000) + bytes([number]) + bytes(1000) for number in range(8)]
    keys = [shared.of_blob(memoryview(blob)) for blob in blobs]
    assert len(set(keys)) == len(blobs)
    assert [shared.of_blob(memoryview(bytearray(blob))) for blob in blobs] == keys
    assert shared.of_blob(memoryview(bytes(256))) != shared.of_blob(memoryview(bytes(255)))


def test_a_dictionary_in_the_properties_of_an_unknown_op_is_one_attribute() -> None:
    """Only ops of other dialects have such a dictionary in place of properties."""
    program = "func.func @main() { %0 = stablehlo.constant dense<1> : tensor<i8> return }"
    file = decode(bytes(vt.serialize(program)).replace(b"constant_v1", b"constanz_v1"))
    op = next(head for head in heads_in(file.program) if file.op_name(head.name) == "vhlo.constanz_v1")
    (index,) = attributes_of(file, op).values()
    tables = Tables(file)
    value = tables.vhlo("string_v1", tables.string("text"))
    held = tables.dictionary({"name": value})
    assert held is not None
    file.attributes[index] = file.attributes[held]
    assert FileNumbering(file, ValueNumbering()).attributes_of(op) == {"0": index}
