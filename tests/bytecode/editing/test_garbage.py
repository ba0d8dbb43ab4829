"""Entries that nothing uses any more are overwritten, and no others."""

from __future__ import annotations

import vhlo_tools as vt
from vhlo_tools.bytecode import File, Tables, collect_garbage

PROGRAM = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"


def name_of(file: File, index: int) -> str | None:
    value = file.decode("attribute", index)
    return None if value is None else value.name


def test_what_only_dropped_entries_contain_is_overwritten() -> None:
    file = vt.serialize(PROGRAM).copy_of_file()
    before = [name_of(file, index) for index in range(len(file.attributes))]
    tables = Tables(file)
    text = tables.vhlo("string_v1", tables.string("dropped"))
    dropped = tables.vhlo("array_v1", (text,))
    collect_garbage(file, tables, [dropped])
    assert (name_of(file, text), name_of(file, dropped)) == ("unknown", "unknown")
    assert [name_of(file, index) for index in range(len(before))] == before


def test_what_an_op_uses_stays() -> None:
    file = vt.serialize(PROGRAM).copy_of_file()
    tables = Tables(file)
    used = next(index for index in range(len(file.attributes)) if name_of(file, index) == "type_v1")
    dropped = tables.vhlo("array_v1", (used,))
    collect_garbage(file, tables, [dropped])
    assert (name_of(file, used), name_of(file, dropped)) == ("type_v1", "unknown")
