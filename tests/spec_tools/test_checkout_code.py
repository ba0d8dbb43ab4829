"""What of a checkout is read from C++, by patterns: it needs no ``llvm-tblgen``."""

from __future__ import annotations

from pathlib import Path

import pytest

from vhlo_tools.spec.ops import Slot
from vhlo_tools.spec_tools.checkout import (
    Definitions,
    EncodingSource,
    EnumSource,
    KindSource,
    OpSource,
    read_constraints,
    read_encodings,
)
from vhlo_tools.spec_tools.checkout_files import (
    Checkout,
    Records,
    body_from,
    bytecode_versions,
    plain_code,
    read_current,
    read_minimum,
    snake_case,
    split_arguments,
    version_in,
    version_log,
)
from vhlo_tools.version import Version

FORK = Path(__file__).parent / "fork"
FIRST = Version("0.9.0")


def kind(cpp: str, name: str) -> KindSource:
    return KindSource(cpp, name, FIRST, None, "here:1")


SIDE = kind("SideV1Attr", "side_v1")
#: What llvm-tblgen says of the fork, as far as its C++ names it.
DEFINITIONS = Definitions(
    (
        OpSource("PushOpV2", "push", 2, FIRST, None, ("load",), (Slot("load"),), ("where",), (), (), "here:1"),
        OpSource("ShoveOpV1", "shove", 1, FIRST, None, ("tools",), (Slot("tools", True),), (), (), (), "here:2"),
    ),
    (kind("Float32V1Type", "f32_v1"), kind("ShapedV1Type", "shaped_v1"), kind("FibreV1Type", "fibre_v1")),
    (kind("BooleanV1Attr", "bool_v1"), kind("TextV1Attr", "string_v1"), kind("KnotV1Attr", "knot_v1"), SIDE),
    (EnumSource("SideV1", SIDE, {"LEFT": 0, "RIGHT": 1, "UP": 2}),),
)


def test_encodings() -> None:
    checkout = Checkout.open(FORK)
    shape = (("shape", "svarint[]"), ("element", "type"))
    assert read_encodings(checkout, DEFINITIONS) == {
        "Float32V1Type": (EncodingSource(1, ()),),
        "ShapedV1Type": (EncodingSource(2, shape), EncodingSource(3, (("frame", "attribute"), *shape))),
        "FibreV1Type": (EncodingSource(8, ()),),
        "BooleanV1Attr": (EncodingSource(2, (("value", "varint"),)),),
        "TextV1Attr": (EncodingSource(4, (("value", "string"),)),),
        "SideV1Attr": (EncodingSource(5, (("value", "enum side_v1"),)),),
        "KnotV1Attr": (
            EncodingSource(
                7,
                (
                    ("kind", "type"),
                    ("strength", "f64"),
                    ("last_turn", "flagged attribute"),
                    ("ends", "pair[]"),
                    ("turns", "svarint[]"),
                ),
            ),
        ),
    }
    assert checkout.unread == []


def test_constraints() -> None:
    checkout = Checkout.open(FORK)
    constraints = read_constraints(checkout, DEFINITIONS)
    assert [each.place for each in constraints] == [f"stablehlo/dialect/VhloOps.cpp:{line}" for line in (1, 16)]
    found = {(each.op.name, str(each.since)): each.requires for each in constraints}
    assert found == {
        ("push_v2", "0.12.0"): (
            {"requires": "attributes_are_not", "attributes": ["where"], "kind": "knot_v1"},
            {
                "requires": "attributes_are_not",
                "attributes": ["where"],
                "value": {"attribute": "side_v1", "case": "UP"},
            },
        ),
        ("shove_v1", "0.12.0"): ({"requires": "operands_are_not", "operands": ["tools"], "kind": "fibre_v1"},),
    }
    assert checkout.unread == []


def test_versions() -> None:
    checkout = Checkout.open(FORK)
    # A patch changes nothing in the dialect.
    assert (read_current(checkout), read_minimum(checkout)) == (Version("0.12.0"), FIRST)
    assert [str(version) for version in version_log(checkout)] == ["0.9.0", "0.11.0", "0.12.0"]
    versions = [Version(f"0.{minor}.0") for minor in (9, 10, 11, 12)]
    assert list(bytecode_versions(checkout, versions).values()) == [5, 5, 6, 6]
    assert checkout.unread == []


def test_a_record_of_a_multiclass_is_where_it_is_made() -> None:
    locations = ["/mlir/IR/Base.td:3", f"{FORK}/stablehlo/dialect/VhloOps.td:63"]
    assert Records({}, FORK).place({"!locs": locations}) == "stablehlo/dialect/VhloOps.td:63"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a // b\nc", "a  \nc"),
        ("a /* b\n */ c", "a \n c"),
        ('a "// b" c', 'a "// b" c'),
        ('a "\\"/*" c /* d', 'a "\\"/*" c  '),
        ('a "// b\nc // d', 'a "// b\nc  '),
    ],
)
def test_comments(text: str, plain: str) -> None:
    assert plain_code(text) == plain


def test_pieces_of_code() -> None:
    assert body_from("f() { a { b } c } d", 0) == " a { b } c "
    assert body_from("f() { a { b } c", 0) == ""
    assert body_from("f()", 0) == ""
    assert split_arguments("a, b(c, d), {e, f}, g\n  .h()); i") == ["a", "b(c, d)", "{e, f}", "g .h()"]
    assert [snake_case(name) for name in ("Value", "UseGlobalDeviceIds", "where")] == [
        "value",
        "use_global_device_ids",
        "where",
    ]
    # As a template of upstream's has written some.
    assert version_in('return mlir::vhlo::Version("1, 2, 0");') == Version("1.2.0")
    assert version_in("Version(01, 2, 3)") == Version("1.2.3")
    assert version_in("getCurrentVersion()") is None
