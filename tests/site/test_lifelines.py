"""Drawings of lives: each bar covers the versions that it says, and the drawing says in words what it shows."""

from __future__ import annotations

from xml.etree import ElementTree

from lifelines import COLUMN, Life, Row, drawing

from vhlo_tools.version import Version

VERSIONS = [Version(f"1.{minor}.0") for minor in range(6)]
ROWS = [
    Row("changed", (Life("v1", VERSIONS[0], VERSIONS[2], "first"), Life("v2", VERSIONS[3], None, "second"))),
    Row("a <b>", (Life("v1", Version("1.4.2"), None, "first"),)),
    Row("later", (Life("v1", Version("1.9.0"), None, "first"),)),
]


def drawn() -> ElementTree.Element:
    return ElementTree.fromstring(drawing("Lives of some", ROWS, VERSIONS))


def test_bars_cover_their_versions() -> None:
    bars = [
        (each.get("class"), float(each.get("x", "")), float(each.get("width", ""))) for each in drawn().iter("rect")
    ]
    (first, begin, width), (second, after, rest), (third, patch, last) = bars
    assert (first, second, third) == ("first", "second", "first")
    assert (width, rest, last) == (3 * COLUMN - 2, 3 * COLUMN - 2, 2 * COLUMN - 2)
    assert after - begin == 3 * COLUMN
    assert patch - begin == 4 * COLUMN


def test_it_says_what_it_shows() -> None:
    picture = drawn().find("svg")
    assert picture is not None
    names = {each.get("id"): each.text for each in picture if each.tag in ("title", "desc")}
    assert [names[each] for each in picture.get("aria-labelledby", "").split()] == [
        "Lives of some",
        "changed: v1 1.0.0 to 1.2.0, v2 1.3.0 to current; a <b>: v1 1.4.2 to current; later: v1 1.9.0 to current",
    ]


def test_it_is_one_line_of_markdown() -> None:
    assert "\n" not in drawing("Lives", ROWS, VERSIONS)
