"""What attributes and types need, with all that they hold."""

from __future__ import annotations

import pytest

import vhlo_tools as vt
from vhlo_tools.bytecode import Entry, File, decode, encode, table_of
from vhlo_tools.bytecode.editing import Tables
from vhlo_tools.compat.uses import Introductions, Structures
from vhlo_tools.spec import EntryKind, encodings_of

FUTURE = vt.Version("99.0.0")


@pytest.fixture
def file() -> File:
    return vt.serialize("func.func @main() { return }").copy_of_file()


def nested(tables: Tables, depth: int, innermost: int) -> int:
    """Return the index of an array in an array, and so on, around an attribute."""
    for _ in range(depth):
        innermost = tables.vhlo("array_v1", (innermost,))
    return innermost


def names(introductions: Introductions, index: int) -> tuple[set[str], set[str]]:
    needs = introductions.of("attribute", index)
    return {each.name for each in needs.checked}, {each.name for each in needs.unchecked}


def test_what_an_attribute_holds_is_needed_by_it(file: File) -> None:
    tables = Tables(file)
    young = tables.vhlo("type_v1", tables.structure("type", {"type": "f4E2M1FN_v1"}))
    old = tables.vhlo("string_v1", tables.string("old"))
    introductions = Introductions(file, FUTURE)
    assert names(introductions, old) == (set(), set())
    assert names(introductions, tables.vhlo("array_v1", (old, young))) == ({"f4E2M1FN_v1"}, set())
    # The conversion does not look into what is not of VHLO.
    assert names(introductions, tables.builtin("array", (old, young))) == (set(), {"f4E2M1FN_v1"})
    pairs = tables.vhlo("dict_v1", ((old, young), (old, old)))
    assert names(introductions, pairs) == ({"f4E2M1FN_v1"}, set())


def test_nesting_ends_somewhere_however_much_stands_beside_it(file: File) -> None:
    tables = Tables(file)
    wide = tables.vhlo("array_v1", tuple(tables.vhlo("string_v1", tables.string(f"{n}")) for n in range(300)))
    fine, deep = nested(tables, 90, wide), nested(tables, 150, tables.vhlo("array_v1", ()))
    for of in (Introductions(file, FUTURE).of, Structures(file).of):
        # What is wide does not count, and neither does what was deep before.
        for index in (wide, fine):
            of("attribute", index)
        with pytest.raises(vt.MalformedArtifactError, match="nest deeper than 100"):
            of("attribute", deep)


def test_integers_of_two_bits_in_attributes(file: File) -> None:
    tables = Tables(file)
    two, four = (tables.structure("type", {"type": f"{name}_v1"}) for name in ("i2", "i4"))
    assert not Introductions(file, FUTURE).has_integers_of(("i2_v1", "ui2_v1"))
    tables.vhlo("integer_v1", four, 1)
    # The type alone does no harm.
    assert not Introductions(file, FUTURE).has_integers_of(("i2_v1", "ui2_v1"))
    tables.vhlo("integer_v1", two, 1)
    assert Introductions(file, FUTURE).has_integers_of(("i2_v1", "ui2_v1"))
    assert not Introductions(file, FUTURE).has_integers_of(("ui2_v1",))


def test_codes_that_the_builtin_dialect_gained_later_are_as_young(file: File) -> None:
    tables = Tables(file)
    old = tables.builtin("unit")
    young = tables.builtin_type("tf32")
    named = tables.builtin("distinct", old)
    introductions = Introductions(file, FUTURE)
    assert introductions.of("attribute", old).unchecked == frozenset()
    assert {(each.name, str(each.since)) for each in introductions.of("type", young).unchecked} == {
        ("builtin_codes tf32", "1.18.0")
    }
    assert {(each.name, str(each.since)) for each in introductions.of("attribute", named).unchecked} == {
        ("builtin_codes distinct", "0.14.0")
    }


@pytest.mark.parametrize("kind", ["attribute", "type"])
def test_codes_whose_contents_are_bytes_are_known_by_their_code(kind: EntryKind, file: File) -> None:
    (opaque, *_) = (each for each in encodings_of("builtin", kind).values() if each.opaque and each.since)
    number = next(i for i in range(len(file.dialects.names)) if file.dialect(i) == "builtin")
    table = file.attributes if kind == "attribute" else file.types
    table.append(Entry(number, True, bytes([opaque.code << 1 | 1, 3, 5])))
    assert file.decode(kind, len(table) - 1) is None
    (found,) = Introductions(file, FUTURE).of_tables()
    assert (found.name, found.since) == (f"builtin_codes {opaque.name}", opaque.since)
    written = decode(encode(file))
    assert bytes(table_of(written, kind)[len(table) - 1].data) == bytes([opaque.code << 1 | 1, 3, 5])


def test_a_module_attribute_of_a_young_type_is_told() -> None:
    text = "module attributes {my.a = tf32, my.b = affine_map<(d0) -> (d0)>} { func.func @main() { return } }"
    artifact = vt.serialize(text, "1.0.0", allow_other_dialects=True)
    if any(artifact.file.called("type", "builtin", "tf32")):  # older libraries write text
        (found,) = artifact.requirements().findings(vt.Version("1.4.2"))
        assert (found.feature, found.level) == ("builtin_codes", "warning")
        assert artifact.requirements().readable_since == "1.18.0"
    assert vt.diff(artifact, vt.retarget(artifact, "1.4.0")) != []
