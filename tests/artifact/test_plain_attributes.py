"""Attributes of files as plain values, and types as shapes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import vhlo_tools as vt
from vhlo_tools.aliasing import Array, Opaque, Other, Plain, Shape, Tuple, Unit
from vhlo_tools.artifact.entry_function import PlainReader, PlainWriter
from vhlo_tools.bytecode import File
from vhlo_tools.bytecode.editing import Tables

Made = Callable[[Tables], int]


@pytest.fixture
def file() -> File:
    return vt.serialize("func.func @main() { return }").copy_of_file()


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(8, "little", signed=True) for number in numbers)


def integer(element: str, value: object) -> Made:
    return lambda tables: tables.vhlo("integer_v1", tables.structure("type", {"type": f"{element}_v1"}), value)


def tensor(element: str, *shape: int, data: bytes) -> Made:
    def make(tables: Tables) -> int:
        kind = tables.structure("type", {"type": "tensor_v1", "shape": shape, "element": {"type": f"{element}_v1"}})
        return tables.vhlo("tensor_v1", kind, data)

    return make


def dense_array(number: int, data: bytes, *, bits: int = 64) -> Made:
    return lambda tables: tables.builtin("dense_array", tables.builtin_type("integer", bits << 2), number, data)


@pytest.mark.parametrize(
    ("make", "plain"),
    [
        (lambda tables: tables.vhlo("string_v1", tables.string("text")), "text"),
        (lambda tables: tables.builtin("string", tables.string("text")), "text"),
        (lambda tables: tables.builtin("unit"), Unit()),
        (lambda tables: tables.structure("attribute", {"attribute": "bool_v1", "value": True}), True),
        (integer("i32", 5), 5),
        # As signed numbers of their width, whatever the file says.
        (integer("i32", (1 << 32) - 5), -5),
        (integer("ui8", 200), -56),
        (integer("i64", -5), -5),
        (tensor("i64", 2, data=words(1, -2)), (1, -2)),
        (tensor("i64", 3, data=words(7)), (7, 7, 7)),
        (tensor("i64", 0, data=b""), ()),
        # As many as may be.
        (tensor("i64", 1 << 17, data=words(7)), (7,) * (1 << 17)),
        (dense_array(2, words(1, -2)), (1, -2)),
        (dense_array(0, b""), ()),
        (lambda tables: tables.vhlo("array_v1", (integer("i32", 1)(tables), integer("i32", 2)(tables))), [1, 2]),
        (lambda tables: tables.builtin("dictionary", ()), {}),
        (
            lambda tables: tables.vhlo(
                "dict_v1", ((tables.vhlo("string_v1", tables.string("k")), integer("i32", 1)(tables)),)
            ),
            {"k": 1},
        ),
    ],
)
def test_plain_values(make: Made, plain: Plain, file: File) -> None:
    index = make(Tables(file))
    assert PlainReader(file).attribute(index) == plain


@pytest.mark.parametrize(
    "make",
    [
        # Of two dimensions, also if one element stands for all; of other elements; and with bytes that do not fit.
        tensor("i64", 1, 1, data=words(5)),
        tensor("i64", 2, 2, data=words(1, 2, 3, 4)),
        tensor("i64", data=words(5)),
        tensor("i32", 2, data=words(5)),
        tensor("i64", 3, data=words(1, 2)),
        tensor("i64", (1 << 17) + 1, data=words(7)),
        tensor("i64", 2, data=words(1, 2)[:12]),
        dense_array(2, bytes(8), bits=32),
        dense_array(3, words(1, 2)),
        lambda tables: tables.vhlo("type_v1", tables.structure("type", {"type": "f32_v1"})),
    ],
)
def test_others_are_told_by_their_text(make: Made, file: File) -> None:
    index = make(Tables(file))
    assert isinstance(PlainReader(file).attribute(index), Other)


@pytest.mark.parametrize(("value", "plain"), [((), 0), ((5,), 5), ((5, 7), 5), ((-5, 7), -5)])
def test_of_wide_integers_the_lowest_word_counts(value: tuple[int, ...], plain: int, file: File) -> None:
    index = Tables(file).builtin("integer", Tables(file).builtin_type("integer", 128 << 2), value)
    assert PlainReader(file).attribute(index) == plain


@pytest.mark.parametrize(
    ("structure", "shape"),
    [
        ({"type": "tensor_v1", "shape": [2, 3], "element": {"type": "f32_v1"}}, Array("f32", (2, 3))),
        ({"type": "tensor_v1", "shape": [-(1 << 63), 3], "element": {"type": "bool_v1"}}, Array("pred", (None, 3))),
        ({"type": "token_v1"}, Opaque()),
        ({"type": "f32_v1"}, Opaque("!vhlo.f32_v1")),
        (
            {"type": "tuple_v1", "elements": [{"type": "token_v1"}, {"type": "tuple_v1", "elements": []}]},
            Tuple((Opaque(), Tuple(()))),
        ),
    ],
)
def test_shapes(structure: dict[str, object], shape: Shape, file: File) -> None:
    index = Tables(file).structure("type", structure)
    assert PlainReader(file).shape(index) == shape


def test_nothing_nests_or_unfolds_without_end(file: File) -> None:
    tables = Tables(file)

    def nested(depth: int, width: int) -> int:
        index = integer("i32", 1)(tables)
        for _ in range(depth):
            index = tables.vhlo("array_v1", (index,) * width)
        return index

    reader = PlainReader(file)
    for _ in range(3):
        # However much was read before.
        assert reader.attribute(nested(90, 1)) is not None
        assert reader.attribute(nested(15, 2)) is not None
    # As many entries as may be, and one more.
    largest = nested(16, 2)
    assert PlainReader(file).attribute(tables.vhlo("array_v1", (largest,))) is not None
    one_more = tables.vhlo("array_v1", (largest, integer("i32", 1)(tables)))
    for index in (nested(150, 1), nested(20, 2), one_more):
        with pytest.raises(vt.MalformedArtifactError, match="nest deeper than 100 levels, or expand to more than"):
            PlainReader(file).attribute(index)


@pytest.mark.parametrize("value", [0, -1, 1 << 40, "text", (), (1, -2), [], [1, "a"], {}, {"b": 1, "a": [(3,)]}])
def test_what_is_written_for_a_module_is_read_again(value: Plain, file: File) -> None:
    index = PlainWriter(Tables(file)).module(value)
    assert PlainReader(file).attribute(index) == value


@pytest.mark.parametrize("value", [True, False, 0, 5, -1])
def test_what_is_written_for_an_argument_is_read_again(value: Plain, file: File) -> None:
    index = PlainWriter(Tables(file)).argument(value)
    read = PlainReader(file).attribute(index)
    assert (read, type(read)) == (value, type(value))


def test_other_values_are_refused(file: File) -> None:
    writer = PlainWriter(Tables(file))
    for value in (True, Unit()):
        with pytest.raises(ValueError, match="is not an alias attribute of a module"):
            writer.module(value)
    with pytest.raises(ValueError, match="is not an alias attribute of an argument"):
        writer.argument("text")
