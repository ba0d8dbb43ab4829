"""Attributes and types in few words."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

import vhlo_tools as vt
from vhlo_tools.artifact.differences import Describer, shortened
from vhlo_tools.artifact.numbering import FileNumbering, ValueNumbering
from vhlo_tools.bytecode import File
from vhlo_tools.bytecode.editing import Tables

Made = Callable[[Tables], int]


@pytest.fixture
def file() -> File:
    return vt.serialize("func.func @main() { return }").copy_of_file()


def described(file: File, make: Made) -> str:
    return Describer(FileNumbering(file, ValueNumbering())).attribute(make(Tables(file)))


def tensor(element: str, *shape: int, data: bytes) -> Made:
    def make(tables: Tables) -> int:
        kind = tables.structure("type", {"type": "tensor_v1", "shape": shape, "element": {"type": element}})
        return tables.vhlo("tensor_v1", kind, data)

    return make


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little", signed=True) for number in numbers)


def sha256(data: bytes) -> str:
    return f"sha256 {hashlib.sha256(data).hexdigest()[:16]}"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (tensor("i32_v1", 2, data=words(1, -2)), "dense<[1, -2]> : tensor<2xi32>"),
        (tensor("i32_v1", data=words(7)), "dense<7> : tensor<i32>"),
        # One element stands for all, if there are several; a list of one stays a list.
        (tensor("i32_v1", 3, data=words(7)), "dense<7> : tensor<3xi32>"),
        (tensor("i32_v1", 3, data=words(7, 7, 7)), "dense<7> : tensor<3xi32>"),
        (tensor("i32_v1", 1, data=words(7)), "dense<[7]> : tensor<1xi32>"),
        (tensor("i32_v1", 0, data=b""), "dense<> : tensor<0xi32>"),
        (tensor("i32_v1", 16, data=words(*range(16))), f"dense<[{', '.join(map(str, range(16)))}]> : tensor<16xi32>"),
        # More elements, and those of a type that Python has not, go by their digest.
        (tensor("i32_v1", 17, data=words(*range(17))), f"tensor<17xi32>, 68 bytes, {sha256(words(*range(17)))}"),
        (tensor("f8E5M2_v1", 2, data=b"ab"), f"tensor<2xf8E5M2>, 2 bytes, {sha256(b'ab')}"),
        # A shape that no program has.
        (tensor("i32_v1", *[1] * 101, data=words(7)), f"dense<[7]> : tensor<{'1x' * 101}i32>"),
    ],
)
def test_constants(make: Made, text: str, file: File) -> None:
    assert described(file, make) == text


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda tables: tables.vhlo("string_v1", tables.string("text")), '"text"'),
        (lambda tables: tables.structure("attribute", {"attribute": "bool_v1", "value": True}), "true"),
        (lambda tables: tables.vhlo("integer_v1", tables.structure("type", {"type": "i32_v1"}), 5), "5 : i32"),
        (lambda tables: tables.structure("attribute", {"attribute": "comparison_direction_v1", "case": "LT"}), "LT"),
        (lambda tables: tables.vhlo("type_v1", tables.structure("type", {"type": "f32_v1"})), "!vhlo.f32_v1"),
        (lambda tables: tables.vhlo("array_v1", (tables.vhlo("string_v1", tables.string("a")),) * 2), '["a", "a"]'),
        (
            lambda tables: tables.structure("attribute", {"attribute": "type_extensions_v1", "bounds": [3, 4]}),
            "#vhlo.type_extensions_v1<bounds = [3, 4]>",
        ),
        (
            lambda tables: tables.vhlo(
                "dict_v1", ((tables.vhlo("string_v1", tables.string("key")), tables.vhlo("array_v1", ())),)
            ),
            "{key = []}",
        ),
    ],
)
def test_attributes(make: Made, text: str, file: File) -> None:
    assert described(file, make) == text


@pytest.mark.parametrize("named", [False, True], ids=["arrays", "dictionaries"])
def test_nesting_ends_somewhere(named: bool, file: File) -> None:
    def nested(depth: int) -> Made:
        def make(tables: Tables) -> int:
            index = tables.vhlo("array_v1", ())
            key = tables.vhlo("string_v1", tables.string("k"))
            for _ in range(depth):
                index = tables.vhlo("dict_v1", ((key, index),)) if named else tables.vhlo("array_v1", (index,))
            return index

        return make

    assert described(file, nested(90))
    with pytest.raises(vt.MalformedArtifactError, match="nest deeper than 100"):
        described(file, nested(150))


def test_a_long_list_is_not_written_out(file: File) -> None:
    def make(tables: Tables) -> int:
        return tables.vhlo("array_v1", tuple(tables.vhlo("string_v1", tables.string(f"{n:0100}")) for n in range(1000)))

    assert len(described(file, make)) < 500


def test_a_tensor_without_a_digest_is_read_up_to_a_size(file: File) -> None:
    describer = Describer(FileNumbering(file, ValueNumbering()), digests=False)
    for size, text in ((1 << 16, "dense<7> : tensor<16384xi32>"), ((1 << 16) + 4, "tensor<16385xi32>, 65540 bytes")):
        make = tensor("i32_v1", size // 4, data=words(7) * (size // 4))
        assert describer.attribute(make(Tables(file))) == text


def test_what_is_shortened_is_told_from_others_that_begin_so() -> None:
    assert shortened("x" * 400) == "x" * 400
    one, other = shortened("x" * 401), shortened("x" * 402)
    assert len(one) < 402
    assert one != other
    assert one.startswith("x" * 360 + "... (sha256 ")
