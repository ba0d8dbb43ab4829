"""HLO as a protocol buffer: recognised, and its header read as that of the text."""

from __future__ import annotations

import pytest
from support.protobuf_messages import field, varint

import vhlo_tools as vt
from vhlo_tools.aliasing import Alias, Array, Donor, Signature
from vhlo_tools.aliasing.shapes import Opaque, Shape, Tuple
from vhlo_tools.bindings.xla import hlo_of_text, text_of_hlo
from vhlo_tools.files import Kind, recognise
from vhlo_tools.files.hlo import find_hlo_module, parse_header, read_hlo_module

TEXT = """HloModule m, input_output_alias={ {1}: (0, {}), {0}: (2, {1}, must-alias) }, buffer_donor={ (1, {}) }

ENTRY entry {
  %p = f32[4] parameter(0)
  %q = f32[4] parameter(1)
  %t = (s32[], f32[4]) parameter(2)
  %s = f32[4] add(%p, %q)
  ROOT %out = (f32[4], f32[4]) tuple(%s, %p)
}
"""
F32, TUPLE, OPAQUE, TOKEN = 11, 13, 14, 17


def packed(number: int, *values: int) -> bytes:
    return field(number, b"".join(map(varint, values)))


def array(*sizes: int, dynamic: tuple[int, ...] = ()) -> bytes:
    return field(2, F32) + packed(3, *sizes) + (packed(6, *dynamic) if dynamic else b"")


def module(*fields: bytes) -> memoryview:
    return memoryview(field(1, "name") + b"".join(fields))


def test_the_header_is_that_of_the_text() -> None:
    proto = hlo_of_text(TEXT)
    assert recognise(proto) is Kind.HLO_PROTO
    header = read_hlo_module(memoryview(proto))
    assert header == parse_header(text_of_hlo(proto).partition("\n")[0])
    assert header.aliases == (Alias((0,), 2, (1,), "must-alias"), Alias((1,), 0))
    assert header.donors == (Donor(1),)


@pytest.mark.parametrize(
    ("entry", "alias"),
    [
        # Fields that are zero or empty are left out.
        (b"", Alias((), 0)),
        (packed(1, 0, 3) + field(2, 5) + packed(3, 7) + field(4, 2), Alias((0, 3), 5, (7,), "must-alias")),
        # Numbers of a list each for itself, and the last of a number that is there more than once.
        (field(1, 0) + field(1, 3) + field(2, 4) + field(2, 6) + field(4, 2) + field(4, 1), Alias((0, 3), 6)),
        (field(2, 1) + field(4, 1) + field(4, 2), Alias((), 1, (), "must-alias")),
    ],
)
def test_aliases(entry: bytes, alias: Alias) -> None:
    header = read_hlo_module(module(field(8, field(1, entry))))
    assert (header.name, header.aliases, header.donors, header.signature) == ("name", (alias,), (), None)


def test_several_aliases_and_donors_in_several_fields() -> None:
    one, two = field(1, field(2, 1)), field(1, field(2, 2) + packed(2 + 1, 9))
    header = read_hlo_module(module(field(8, one + two), field(8, one), field(18, field(1, field(2, 3)))))
    assert header.aliases == (Alias((), 1), Alias((), 2, (9,)), Alias((), 1))
    # Of a donor the index stands in field 2, and its parameter in field 1.
    assert header.donors == (Donor(0, (3,)),)
    assert read_hlo_module(module(field(18, field(1, field(1, 3) + field(1, 4))))).donors == (Donor(4),)


@pytest.mark.parametrize(
    ("shape", "read"),
    [
        (array(), Array("f32", ())),
        (array(2, 3), Array("f32", (2, 3))),
        (array(2, 3, dynamic=(0, 1)), Array("f32", (2, None), (None, 3))),
        (array(2, 3, dynamic=(1,)), Array("f32", (None, 3), (2, None))),
        # Without a bound the size is the smallest number of 64 bits.
        (array(1 << 63, 3, dynamic=(1, 0)), Array("f32", (None, 3))),
        (field(2, TOKEN), Opaque("token[]")),
        (field(2, OPAQUE), Opaque("opaque[]")),
        (field(2, TUPLE), Tuple(())),
        (field(2, TUPLE) + field(4, array(2)) + field(4, field(2, TOKEN)), Tuple((Array("f32", (2,)), Opaque()))),
        (field(2, 99) + packed(3, 2), Array("unknown", (2,))),
    ],
)
def test_shapes(shape: bytes, read: Shape) -> None:
    program = field(1, shape) + field(1, array(7)) + field(2, shape)
    assert read_hlo_module(module(field(4, program))).signature == Signature((read, Array("f32", (7,))), read)
    assert read_hlo_module(module(field(4, field(1, shape)))).signature == Signature((read,), Opaque())


def test_shapes_nest_no_deeper_than_real_ones() -> None:
    def nested(depth: int) -> memoryview:
        shape = array()
        for _ in range(depth):
            shape = field(2, TUPLE) + field(4, shape)
        return module(field(4, field(2, shape)))

    assert read_hlo_module(nested(100)).signature is not None
    with pytest.raises(vt.MalformedArtifactError, match="shapes that nest deeper than 100"):
        read_hlo_module(nested(101))


BODY = field(1, "entry") + field(2, field(1, "p") + field(2, "parameter"))
WHOLE = field(1, "name") + field(2, "entry") + field(3, BODY)


def test_a_module_alone_or_in_what_holds_it() -> None:
    assert bytes(find_hlo_module(memoryview(WHOLE)) or b"") == WHOLE
    assert bytes(find_hlo_module(memoryview(field(1, WHOLE) + field(3, b"buffers"))) or b"") == WHOLE
    # The name of the computation may be left out.
    assert (
        find_hlo_module(memoryview(field(1, "name") + field(2, "entry") + field(3, field(2, field(2, "add")))))
        is not None
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        field(1, "name"),
        field(1, "name") + field(2, "entry"),
        field(2, "entry") + field(1, "name") + field(3, BODY),
        field(1, "name") + field(3, BODY),
        field(1, "\x01") + field(2, "entry") + field(3, BODY),
        field(1, b"\xff") + field(2, "entry") + field(3, BODY),
        field(1, "x" * 70_000) + field(2, "entry") + field(3, BODY),
        field(1, "name") + field(2, 7) + field(3, BODY),
        field(1, "name") + field(2, "entry") + field(3, 7),
        field(1, "name") + field(2, "entry") + field(4, BODY),
        field(1, "name") + field(2, "entry") + field(3, field(1, "\x01") + field(2, field(2, "add"))),
        field(1, "name") + field(2, "entry") + field(3, field(1, "entry")),
        field(1, "name") + field(2, "entry") + field(3, field(2, field(1, "p"))),
        field(1, "name") + field(2, "entry") + field(3, field(2, field(2, "\x01"))),
        field(2, WHOLE),
        WHOLE[:-1],
    ],
)
def test_what_is_no_module(data: bytes) -> None:
    assert find_hlo_module(memoryview(data)) is None
