"""Locations as older readers take them."""

from __future__ import annotations

import pytest

import vhlo_tools as vt
from vhlo_tools.artifact.retargeting import locate_arguments, make_locations_plain, with_plain_locations
from vhlo_tools.bytecode import Entry, File, decode
from vhlo_tools.bytecode.editing import Tables
from vhlo_tools.bytecode.primitives import varint

pytestmark = pytest.mark.every_python

TARGET = vt.Version("1.8.0")


@pytest.fixture
def file() -> File:
    return vt.serialize("func.func @main(%a: tensor<f32>) { return loc(unknown) }", "1.9.0").copy_of_file()


def range_of(tables: Tables, *numbers: int) -> int:
    """Return the index of a location in `a.py` with these lines and columns."""
    name = tables.builtin("string", tables.string("a.py"))
    return tables.builtin("file_line_col_range", name, numbers)


@pytest.mark.parametrize(
    ("numbers", "start"), [((), (0, 0)), ((7,), (7, 0)), ((7, 8), (7, 8)), ((7, 8, 9), (7, 8)), ((7, 8, 9, 10), (7, 8))]
)
def test_a_range_becomes_its_start(numbers: tuple[int, ...], start: tuple[int, int], file: File) -> None:
    index = range_of(Tables(file), *numbers)
    (note,) = make_locations_plain(file, TARGET)
    assert (note.feature, note.level, note.count, note.target) == ("range_locations", "note", 1, TARGET)
    plain = file.decode("attribute", index)
    assert plain is not None
    assert (plain.name, plain.field("line"), plain.field("column")) == ("file_line_col", *start)
    assert make_locations_plain(file, TARGET) == []


def test_every_range_is_found_whatever_stands_between(file: File) -> None:
    tables = Tables(file)
    first = range_of(tables, 1, 2, 3)
    dialect = file.attributes[first].dialect
    # Attributes of a future MLIR, of which nobody here knows what they are.
    file.attributes.append(Entry(dialect, True, varint(60)))
    file.attributes.append(Entry(dialect, True, varint(300)))
    tables.vhlo("string_v1", tables.string("text"))
    last = range_of(tables, 4, 5, 6)
    (note,) = make_locations_plain(file, TARGET)
    assert note.count == 2
    names = [each.name for index in (first, last) if (each := file.decode("attribute", index)) is not None]
    assert names == ["file_line_col"] * 2


def test_an_artifact_without_ranges_stays_the_very_same() -> None:
    plain = bytes(vt.serialize('func.func @main() { return loc("a.py":1:2) }', "1.9.0"))
    ranges = bytes(vt.serialize('func.func @main() { return loc("a.py":1:2 to :3) }', "1.9.0"))
    assert with_plain_locations(decode(plain), TARGET) is None
    changed = vt.open_artifact(with_plain_locations(decode(ranges), TARGET) or b"")
    assert '"a.py":1:2)' in changed.text(debug_info=True)
    assert " to " in vt.open_artifact(ranges).text(debug_info=True)


@pytest.mark.parametrize(("version", "located"), [(3, True), (4, False), (6, False)])
def test_block_arguments_have_locations_where_the_format_asks_for_them(version: int, located: bool, file: File) -> None:
    function = file.ir.operations[0].regions[0].blocks[0].operations[0]
    (block,) = function.regions[0].blocks
    block.arguments = [type(each)(each.type, None) for each in block.arguments]
    file.version = version
    locate_arguments(file, Tables(file))
    (argument,) = block.arguments
    assert (argument.location is not None) is located
    if argument.location is not None:
        unknown = file.decode("attribute", argument.location)
        assert unknown is not None
        assert unknown.name == "unknown"
