"""jax.export files that were made to harm: small ones that unfold to large ones, deep ones, and parts that overlap."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.jax_export_writer import CUSTOM, DICT, LIST, MODULE, TUPLE, Writer

import vhlo_tools as vt
from vhlo_tools.files import decode_jax_export, read_bytes, read_signature, recognise
from vhlo_tools.files.flatbuffer import FlatBufferReader, replace_vectors
from vhlo_tools.files.jax_export import JAX_EXPORT, replace_modules
from vhlo_tools.files.mapping import View, join, view


def wide_tree(writer: Writer) -> dict[str, int]:
    node = writer.leaf()
    for _ in range(60):
        node = writer.tree(TUPLE, [node, node])
    return {"in_tree": node}


def deep_tree(writer: Writer) -> dict[str, int]:
    node = writer.leaf()
    for _ in range(1200):
        node = writer.tree(LIST, [node])
    return {"in_tree": node, "in_avals": writer.offsets([writer.aval()])}


def one_name_for_all(writer: Writer) -> dict[str, int]:
    long = writer.text("x" * 100_000)
    return {"in_avals": writer.offsets([writer.aval(*[long] * 1000)])}


def one_tree_for_all(writer: Writer) -> dict[str, int]:
    leaves = writer.tree(TUPLE, [writer.leaf()] * 3000)
    return {"out_tree": writer.tree(TUPLE, [leaves] * 3000)}


def one_platform_for_all(writer: Writer) -> dict[str, int]:
    return {"platforms": writer.offsets([writer.text("cpu" * 10_000)] * 10_000)}


def leaves_without_types(writer: Writer) -> dict[str, int]:
    return {"in_tree": writer.tree(TUPLE, [writer.leaf()])}


def a_type_of_no_number(writer: Writer) -> dict[str, int]:
    return {"unique_avals": writer.offsets([writer.aval()]), "in_avals_idxs": writer.numbers([1])}


def a_sharding_too_many(writer: Writer) -> dict[str, int]:
    return {"in_shardings": writer.offsets([writer.table("Sharding")])}


HARM: list[Callable[[Writer], dict[str, int]]] = [
    wide_tree,
    deep_tree,
    one_name_for_all,
    one_tree_for_all,
    one_platform_for_all,
    leaves_without_types,
    a_type_of_no_number,
    a_sharding_too_many,
]


@pytest.mark.parametrize("harm", HARM, ids=lambda harm: harm.__name__)
def test_what_cannot_be_described_is_refused(harm: Callable[[Writer], dict[str, int]]) -> None:
    writer = Writer()
    data = writer.file(**harm(writer))
    assert str(recognise(data)) == "jax-export"
    with pytest.raises(vt.MalformedArtifactError) as raised:
        read_signature(decode_jax_export(data))
    assert raised.value.section == "jax.export"
    assert raised.value.offset is not None


@pytest.mark.parametrize(
    "harm", [wide_tree, deep_tree, one_name_for_all, one_tree_for_all], ids=lambda harm: harm.__name__
)
def test_parts_that_many_refer_to_are_moved_once(harm: Callable[[Writer], dict[str, int]]) -> None:
    writer = Writer()
    data = writer.file(**harm(writer))
    rewritten = join(replace_modules(data, lambda *_: [MODULE * 100]))
    assert bytes(decode_jax_export(rewritten).module) == MODULE * 100
    assert join(replace_modules(rewritten, lambda *_: [MODULE])) == data


def test_effects_and_checks() -> None:
    writer = Writer()
    effects = writer.offsets([writer.table("Effect", type_name=writer.text("<class 'a.Print'>"))])
    checks = [
        writer.table("DisabledSafetyCheck", kind=1, custom_call_target=writer.text("f")),
        writer.table("DisabledSafetyCheck", kind=0),
        writer.table("DisabledSafetyCheck", kind=77),
    ]
    platforms = writer.offsets([writer.text("cpu"), writer.text("tpu")])
    types = writer.offsets([writer.aval()])
    kept = writer.builder.CreateByteVector(b"\1\0\2\0")
    struct.pack_into("<I", writer.builder.Bytes, writer.builder.Head(), 2)
    data = writer.file(
        ordered_effects=effects,
        disabled_checks=writer.offsets(checks),
        platforms=platforms,
        in_avals=writer.offsets([writer.aval(), writer.aval()]),
        in_tree=writer.tree(TUPLE, [writer.tree(TUPLE, [writer.leaf(), writer.leaf()])]),
        out_avals=types,
        out_tree=writer.leaf(),
        module_kept_var_idx=kept,
    )
    export = decode_jax_export(data)
    assert export.ordered_effects == ("a.Print",)
    assert export.disabled_checks == ("custom_call f", "platform", "check 77")
    signature = read_signature(export)
    # As jax calls main; the last argument is one that the file does not have.
    last = "argument 2, which does not exist"
    assert signature.main_arguments == ("platform index", "token of a.Print", "args[1]", last)
    assert signature.main_results == ("token of a.Print", "result")
    assert [each.main for each in signature.arguments] == [None, 2]
    assert [each.main for each in signature.results] == [1]


def test_derivatives_without_end() -> None:
    writer = Writer()
    level: dict[str, int] = {}
    for _ in range(70):
        module = writer.builder.CreateByteVector(MODULE)
        level = {"vjp": writer.table("Exported", mlir_module_serialized=module, **level)}
    export = decode_jax_export(writer.file(**level))
    with pytest.raises(vt.MalformedArtifactError, match="has more than 64 derivatives"):
        list(export.levels())


def overlapping(change: Callable[[bytearray, Any], None]) -> bytes:
    writer = Writer()
    tree = writer.tree(DICT, [writer.leaf()], children_names=writer.offsets([writer.text("a")]))
    data = bytearray(writer.file(in_tree=tree, in_avals=writer.offsets([writer.aval()])))
    change(data, decode_jax_export(data).table)
    return bytes(data)


def point(data: bytearray, place: int, target: int) -> None:
    struct.pack_into("<I", data, place, target - place)


def a_tree_in_the_module(data: bytearray, table: Any) -> None:
    point(data, table.place("in_tree"), table.vector("mlir_module_serialized").start + 2)


def a_tree_that_is_a_type(data: bytearray, table: Any) -> None:
    point(data, table.place("in_tree"), table.reader.offset(table.vector("in_avals").first))


def a_field_outside_its_table(data: bytearray, table: Any) -> None:
    struct.pack_into("<H", data, table.vtable + 2, 8)


def a_module_within_another_part(data: bytearray, table: Any) -> None:
    point(data, table.place("mlir_module_serialized"), table.vector("in_avals").start)


@pytest.mark.parametrize(
    "change",
    [a_tree_in_the_module, a_tree_that_is_a_type, a_field_outside_its_table, a_module_within_another_part],
    ids=lambda change: change.__name__,
)
def test_what_overlaps_is_not_rewritten(change: Callable[[bytearray, Any], None]) -> None:
    intact = overlapping(lambda data, table: None)
    assert read_signature(decode_jax_export(intact)).in_tree == "{'a': f32[]}"
    assert replace_modules(intact, lambda *_: [MODULE])
    with pytest.raises(vt.MalformedArtifactError):
        replace_modules(overlapping(change), lambda *_: [MODULE * 2])


def test_trees_of_every_kind() -> None:
    writer = Writer()
    custom = writer.tree(CUSTOM, [writer.leaf(), writer.table("PyTreeDef", kind=1)], custom_name=writer.text("Point"))
    names = writer.offsets([writer.text("it's"), writer.text("b")])
    newer = writer.tree(9, [writer.leaf()])
    tree = writer.tree(DICT, [custom, writer.tree(TUPLE, [newer])], children_names=names)
    outer = writer.tree(TUPLE, [writer.tree(LIST, [tree]), writer.tree(DICT, [], children_names=writer.offsets([]))])
    token = writer.table("AbstractValue", kind=1)
    avals = writer.offsets([writer.aval(writer.text("2*n"), dtype=27), token])
    signature = read_signature(decode_jax_export(writer.file(in_tree=outer, in_avals=avals)))
    assert signature.in_tree == """([{"it's": Point(key<fry>[2*n], None), 'b': (node of kind 9(token),)}], {})"""
    assert [each.path for each in signature.arguments] == ["""args[0]["it's"][0]""", "args[0]['b'][0][0]"]
    assert [each.main for each in signature.arguments] == [None, None]


def test_a_file_may_be_read_any_number_of_times() -> None:
    writer = Writer()
    names = [writer.text(f"{'long ' * 30}{index}") for index in range(50)]
    tree = writer.tree(DICT, [writer.leaf() for _ in names], children_names=writer.offsets(names))
    types = writer.offsets([writer.aval() for _ in names])
    inner = writer.table("Exported", in_tree=tree, in_avals=types)
    export = decode_jax_export(writer.file(vjp=inner))
    for _ in range(100):
        vjp = export.vjp()
        assert vjp is not None
        assert len(read_signature(vjp).arguments) == 50


def file_of_holes(path: Path, field: str) -> View:
    """Return a large file in which `field` is a vector of nothing but zeros that goes on for as long as the file."""
    writer = Writer()
    head = bytearray(writer.file(**{field: writer.text("")}))
    place = decode_jax_export(head).table.place(field)
    assert place is not None
    end = len(head)
    struct.pack_into("<I", head, place, end - place)
    with path.open("wb") as file:
        file.write(head + struct.pack("<I", 1 << 26))
        file.truncate(end + 4 + (4 << 26))
    return view(read_bytes(path))


@pytest.mark.parametrize("field", ["platforms", "module_kept_var_idx", "function_name", "ordered_effects"])
def test_a_long_file_is_not_read_at_length(field: str, tmp_path: Path) -> None:
    data = file_of_holes(tmp_path / "holes", field)
    assert str(recognise(data)) == "jax-export"
    with pytest.raises(vt.MalformedArtifactError, match="has a vector of 67108864 elements; the limit is [0-9]+"):
        decode_jax_export(data)


def test_more_offsets_than_a_function_can_have(tmp_path: Path) -> None:
    data = file_of_holes(tmp_path / "holes", "platforms")
    with pytest.raises(vt.MalformedArtifactError, match="has more than 8388608 offsets"):
        replace_vectors(FlatBufferReader(data, JAX_EXPORT).root("Exported"), {})


def test_a_small_file_may_refer_to_a_part_many_times() -> None:
    """What may be read is a multiple of the file, and in any case more than a small one comes to."""
    writer = Writer()
    data = writer.file(platforms=writer.offsets([writer.text("p" * 200)] * 100))
    export = decode_jax_export(data)
    assert 8 * len(data) < sum(map(len, export.platforms)) == 200 * 100


@pytest.mark.parametrize("size", [1, len(MODULE), 1000])
def test_a_module_of_any_size_goes_into_a_file_with_a_field_of_the_future(size: int) -> None:
    """What such a field refers to is not known, so that all else stays where it is."""
    writer = Writer()
    text = writer.text("main")
    module = writer.builder.CreateByteVector(MODULE)
    writer.builder.Finish(
        writer.table("Exported", future=7, mlir_module_serialized=module, function_name=text, serialization_version=2)
    )
    data = bytes(writer.builder.Output())
    wanted = MODULE[:4] + bytes([1]) * size
    found = decode_jax_export(join(replace_modules(data, lambda *_: [wanted])))
    assert (bytes(found.module), found.function_name) == (wanted, "main")


@pytest.mark.parametrize("wanted", [[MODULE[:4], MODULE * 9], [MODULE * 9, MODULE[:4]]])
def test_each_module_in_a_file_with_a_field_of_the_future_has_its_own_size(wanted: list[bytes]) -> None:
    writer = Writer()
    inner = writer.table("Exported", mlir_module_serialized=writer.builder.CreateByteVector(MODULE))
    module = writer.builder.CreateByteVector(MODULE)
    writer.builder.Finish(writer.table("Exported", future=7, mlir_module_serialized=module, vjp=inner))
    data = bytes(writer.builder.Output())
    found = decode_jax_export(join(replace_modules(data, lambda number, _: [wanted[number]])))
    assert [bytes(level.module) for level in found.levels()] == wanted
