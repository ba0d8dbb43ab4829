"""HLO that a compiler has optimized and scheduled: pairs of asynchronous ops, and layouts with tiles."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import vhlo_tools as vt
from vhlo_tools.bindings.xla import hlo_of_text
from vhlo_tools.files import plain_hlo
from vhlo_tools.files.hlo import read_hlo_layout
from vhlo_tools.files.protobuf import Message, encode_message

pytestmark = pytest.mark.every_python

ADD = """wrapped {
  a = f32[4]{0} parameter(0)
  b = f32[4]{0} parameter(1)
  ROOT s = f32[4]{0} add(a, b)
}
"""
ADDING = """sum {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT o = f32[] add(l, r)
}
"""
#: By name: the computations, and the lines between the arguments x and y, of f32[4], and the result.
PAIRS = {
    "async": (
        ADD,
        "s = ((f32[4], f32[4]), f32[4], u32[]) async-start(x, y), calls=wrapped\n"
        "u = ((f32[4], f32[4]), f32[4], u32[]) async-update(s)\nROOT d = f32[4] async-done(u)",
    ),
    "copy": (
        "",
        "z = f32[4] add(x, y)\ns = (f32[4]{0:S(1)}, f32[4], u32[]) copy-start(z)\n"
        "d = f32[4]{0:S(1)} copy-done(s)\nROOT n = f32[4] negate(d)",
    ),
    "all-reduce": (
        ADDING,
        "z = f32[4] add(x, y)\ns = f32[4] all-reduce-start(z), replica_groups={{0}}, to_apply=sum\n"
        "ROOT d = f32[4] all-reduce-done(s)",
    ),
    "all-gather": (
        "",
        "z = f32[4] add(x, y)\ns = (f32[4], f32[4]) all-gather-start(z), replica_groups={{0}}, dimensions={0}\n"
        "ROOT d = f32[4] all-gather-done(s)",
    ),
    "collective-permute": (
        "",
        "z = f32[4] add(x, y)\n"
        "s = (f32[4], f32[4], u32[], u32[]) collective-permute-start(z), source_target_pairs={{0,0}}\n"
        "ROOT d = f32[4] collective-permute-done(s)",
    ),
}


def module(computations: str, lines: str, head: str = "") -> str:
    main = f"ENTRY main {{\nx = f32[4] parameter(0)\ny = f32[4] parameter(1)\n{lines}\n}}"
    return f"HloModule pairs{head}\n\n{computations}\n{main}\n"


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_are_one_op(name: str) -> None:
    artifact = vt.serialize(module(*PAIRS[name]))
    text = vt.deserialize(artifact)
    assert "mhlo" not in str(text).replace("mhlo.", "", 10).partition("func")[2]
    one, other = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    (found,) = vt.run(artifact, [one, other], engine="xla")
    np.testing.assert_array_equal(found, (one + other) * (-1 if name == "copy" else 1))


def test_pairs_nest_and_are_the_root() -> None:
    copied = "s = (f32[4], f32[4], u32[]) copy-start(a)\nd = f32[4] copy-done(s)\nROOT n = f32[4] add(d, b)"
    inner = f"wrapped {{\na = f32[4] parameter(0)\nb = f32[4] parameter(1)\n{copied}\n}}\n"
    (found,) = vt.run(module(inner, PAIRS["async"][1]), [np.ones(4, np.float32)] * 2, engine="reference")
    assert found.tolist() == [2, 2, 2, 2]


def test_a_start_without_its_end_is_refused() -> None:
    lines = "s = (f32[4], f32[4], u32[]) copy-start(x)\nROOT n = f32[4] add(x, y)"
    with pytest.raises(vt.InvalidProgramError, match="op copy-start whose end is not in the same computation"):
        vt.serialize(module("", lines))


def test_what_only_the_backend_knows_is_refused() -> None:
    tiles = ", entry_computation_layout={(f32[4]{0:T(128)}, f32[4]{0:T(128)})->f32[4]{0:T(128)}}"
    for dimensions, is_read in (("[]", True), ('["0"]', False)):
        config = f'backend_config={{"window_config":{{"output_reverse_dimensions":{dimensions}}}}}'
        text = module("", f"ROOT n = f32[4] add(x, y), {config}", tiles)
        if is_read:
            assert vt.serialize(text)
        else:
            with pytest.raises(vt.InvalidProgramError, match="op add whose results the compiler reverses"):
                vt.serialize(text)


# Layouts with tiles

TILES: list[list[tuple[int, ...]]] = [[(4, 8)], [(8,)], [(2, 4)], [(4, 8), (2, 1)], [(1, 8)], [(2, 2, 2)]]
OTHER_TILES: list[list[tuple[int, ...]]] = [[(2, 4)], [(4,)], [(1, 2)]]


def offset(index: tuple[int, ...], sizes: tuple[int, ...], tiles: list[tuple[int, ...]]) -> int:
    """Where an element lies, by the formula of XLA's documentation, of dimensions from the major one."""
    at, size = list(index), list(sizes)
    for tile in tiles:
        while len(at) < len(tile):
            at.insert(0, 0)
            size.insert(0, 1)
        k = len(tile)
        outer = [each // part for each, part in zip(at[-k:], tile, strict=True)]
        inner = [each % part for each, part in zip(at[-k:], tile, strict=True)]
        counts = [math.ceil(each / part) for each, part in zip(size[-k:], tile, strict=True)]
        at, size = at[:-k] + outer + inner, size[:-k] + counts + list(tile)
    place = 0
    for each, extent in zip(at, size, strict=True):
        place = place * extent + each
    return place


class Tiled(NamedTuple):
    """An array in memory."""

    sizes: tuple[int, ...]
    order: tuple[int, ...]  # the dimensions from minor to major
    tiles: list[tuple[int, ...]]

    @property
    def text(self) -> str:
        """The shape in HLO, with its layout."""
        return f"s32[{','.join(map(str, self.sizes))}]{layout_text(self.order, self.tiles)}"


def in_memory(array: Any, layout: Tiled) -> dict[int, int]:
    """Each element by its place."""
    major = layout.order[::-1]
    sizes = tuple(array.shape[at] for at in major)
    return {
        offset(tuple(index[at] for at in major), sizes, layout.tiles): int(array[index])
        for index in itertools.product(*map(range, array.shape))
    }


def layout_text(order: tuple[int, ...], tiles: list[tuple[int, ...]]) -> str:
    shown = "".join(f"({','.join(map(str, each))})" for each in tiles)
    return f"{{{','.join(map(str, order))}:T{shown}}}"


@st.composite
def bitcasts(draw: st.DrawFn) -> tuple[Tiled, Tiled]:
    """Sizes, orders and tiles of an array, and of one that lies as it does: whole tiles, or the same minor ones."""
    tiles = draw(st.sampled_from(TILES))
    tile = tiles[0]
    outer = draw(st.lists(st.integers(1, 3), max_size=2))
    numbers = draw(st.lists(st.integers(1, 3), min_size=len(tile), max_size=len(tile)))
    whole = [number * each for number, each in zip(numbers, tile, strict=True)]
    sizes = [*outer, *whole]
    order = draw(st.permutations(range(len(sizes))))
    source = [0] * len(sizes)
    for at, size in zip(order[::-1], sizes, strict=True):
        source[at] = size
    # The other array: of as many elements, with tiles of its own or none.
    count = math.prod(sizes)
    other = draw(st.sampled_from([tiles, *OTHER_TILES]))
    minor = math.prod(other[0])
    if count % minor:
        other = tiles
    factors = [count // math.prod(other[0]), *other[0]]
    target_order = draw(st.permutations(range(len(factors))))
    target = [0] * len(factors)
    for at, size in zip(target_order[::-1], factors, strict=True):
        target[at] = size
    return Tiled(tuple(source), tuple(order), tiles), Tiled(tuple(target), tuple(target_order), other)


@given(bitcasts())
@settings(deadline=None, max_examples=40)
def test_a_bitcast_keeps_every_element_where_it_is(drawn: tuple[Tiled, Tiled]) -> None:
    source, target = drawn
    text = f"""HloModule m, entry_computation_layout={{({source.text})->{target.text}}}

ENTRY main {{
  x = {source.text} parameter(0)
  ROOT r = {target.text} bitcast(x)
}}
"""
    array = np.arange(math.prod(source.sizes), dtype=np.int32).reshape(source.sizes)
    (found,) = vt.run(text, [array], engine="reference")
    assert in_memory(found, target) == in_memory(array, source)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("f32[2,8,16]{2,1,0:T(8,128)}", "f32[16,16]{1,0:T(8,128)}"),
        ("f32[5]{0:T(128)}", "f32[1,5]{1,0:T(1,128)}"),
        ("f32[3,5]{1,0:T(8,128)}", "f32[5,3]{0,1:T(8,128)}"),
        ("f32[0,5]{1,0:T(8,128)}", "f32[3,0]{0,1:T(4,128)}"),
    ],
)
def test_padding_stays_padding(source: str, target: str) -> None:
    head, tail = (f"HloModule m, entry_computation_layout={{({source})->{target}}}", "ROOT r =")
    text = f"{head}\n\nENTRY main {{\nx = {source} parameter(0)\n{tail} {target} bitcast(x)\n}}\n"
    sizes = [int(each) for each in source.partition("[")[2].partition("]")[0].split(",")]
    array = np.arange(math.prod(sizes), dtype=np.float32).reshape(sizes)
    (found,) = vt.run(text, [array], engine="reference")
    expected = array.T if target.startswith("f32[5,3]") else array.reshape(found.shape)
    np.testing.assert_array_equal(found, expected)


def test_bitcasts_to_wider_and_narrower_elements() -> None:
    words = np.arange(4 * 8, dtype=np.uint32).reshape(4, 8) * 0x01020305
    octets = words.view(np.uint8).reshape(4, 8, 4).transpose(0, 2, 1).reshape(16, 8)
    pair = "u32[4,8]{1,0:T(4,8)}", "u8[16,8]{1,0:T(16,8)(4,1)}"
    for source, target, array, expected in (
        (*pair, words, octets),
        (*pair[::-1], octets, words),
    ):
        head = f"HloModule m, entry_computation_layout={{({source})->{target}}}"
        text = f"{head}\n\nENTRY main {{\nx = {source} parameter(0)\nROOT r = {target} bitcast(x)\n}}\n"
        (found,) = vt.run(text, [array], engine="reference")
        np.testing.assert_array_equal(found, expected)
    head = "HloModule m, entry_computation_layout={(u32[4]{0:T(128)})->u32[8]{0:T(256)}}"
    text = f"{head}\n\nENTRY main {{\nx = u32[4]{{0:T(128)}} parameter(0)\nROOT r = u32[8]{{0:T(256)}} bitcast(x)\n}}\n"
    with pytest.raises(vt.InvalidProgramError, match=r"bitcast of u32\[4\]\{0:T\(128\)\} to .* the size in memory"):
        vt.serialize(text)


ALIASED = """HloModule tiles, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}, entry_computation_layout={{(s32[4]{{0:T({0})}}, f32[8]{{0:T({0})}})->f32[8]{{0:T({0})}}}}

ENTRY main {{
  x = s32[4]{{0:T({0})}} parameter(0)
  y = f32[8]{{0:T({0})}} parameter(1)
  ROOT r = f32[8]{{0:T({0})}} add(y, y)
}}
"""  # noqa: E501


def test_sizes_are_those_of_the_layout() -> None:
    artifact = vt.serialize(ALIASED.format(128))
    # It fits on the device only, where the compiler finds it again.
    assert (artifact.aliases().aliases, artifact.aliases().donors) == ((), (vt.Donor(0, ()),))
    with pytest.raises(vt.InvalidProgramError, match="of 32 bytes; parameter 0 at {} is s32\\[4\\] of 16"):
        vt.serialize(ALIASED.format(4))


def test_layouts_that_are_none_are_refused() -> None:
    tile = encode_message((1, 4))
    for sizes, layout in (
        ([4], encode_message((1, 1), (6, tile))),
        ([4], encode_message((1, 0), (6, encode_message((1, 0))))),
        ([4], encode_message((1, 0), (6, b""))),
        ([4], encode_message((1, 0), *[(6, tile)] * 9)),
        ([4], encode_message((1, 0), *[(6, encode_message((1, 1 << 62)))] * 8)),
    ):
        shape = encode_message((2, 11), *((3, each) for each in sizes), (5, layout))
        with pytest.raises(vt.MalformedArtifactError):
            read_hlo_layout(Message(memoryview(shape), "HLO"))


def test_it_is_plain_already_or_cut() -> None:
    proto = hlo_of_text(module(*PAIRS["async"]))
    plain = plain_hlo(proto, "x")
    assert plain_hlo(plain, "x") == plain
    for end in range(0, len(proto), 7):
        try:
            plain_hlo(proto[:end], "x")
        except (vt.InvalidProgramError, vt.MalformedArtifactError):
            continue


def test_shapes_that_nest_without_end_are_refused() -> None:
    shape = encode_message((2, 11), (3, 4))
    for _ in range(2000):
        shape = encode_message((2, 13), (4, shape))
    instruction = encode_message((1, "p"), (2, "parameter"), (3, shape), (35, 1))
    proto = encode_message((1, "m"), (2, "e"), (3, encode_message((1, "e"), (2, instruction))))
    with pytest.raises(vt.MalformedArtifactError, match="nest deeper than 100"):
        plain_hlo(proto, "x")


def test_unbounded_sizes_with_a_layout() -> None:
    main = "ENTRY e {\n  x = f32[?]{0} parameter(0)\n  ROOT r = f32[?]{0} add(x, x)\n}\n"
    text = f"HloModule m, entry_computation_layout={{(f32[?]{{0}})->f32[?]{{0}}}}\n\n{main}"
    assert "tensor<?xf32>" in str(vt.deserialize(vt.serialize(text)))
