"""Pictures of growth, as matplotlib draws them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from growth_picture import COLOURS, INK, Line, Panel, draw
from measurements import load
from performance_page import PAGE, pictures

SIZES = [(10.0, "10"), (1_000.0, "1,000"), (100_000.0, "100,000")]
SVG = "{http://www.w3.org/2000/svg}"
PLACE = re.compile(r"[ML] ([\d.-]+) ([\d.-]+)")


def drawn(*lines: Line) -> ElementTree.Element:
    return ElementTree.fromstring(draw([Panel("reads & writes", lines)], what="seconds", sizes=SIZES, of="ops"))


def texts(picture: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in picture.iter(f"{SVG}text")]


def line(picture: ElementTree.Element, name: str) -> ElementTree.Element:
    (group,) = (each for each in picture.iter(f"{SVG}g") if each.get("id") == f"0-{name}")
    return next(group.iter(f"{SVG}path"))


def test_equal_factors_are_equal_distances() -> None:
    picture = drawn(Line("a", [(10, 0.1), (1_000, 1.0), (100_000, 10.0)]))
    places = [(float(x), float(y)) for x, y in PLACE.findall(line(picture, "a").attrib["d"])]
    (x0, y0), (x1, y1), (x2, y2) = places
    assert (x1 - x0, y0 - y1) == pytest.approx((x2 - x1, y1 - y2))
    assert x0 < x1
    assert y0 > y1


def test_everything_is_named() -> None:
    names = [f"command {number}" for number in range(12)]
    picture = drawn(*(Line(name, [(10, 0.1), (100_000, 1.0 + number)]) for number, name in enumerate(names)))
    assert set(texts(picture)) >= {*names, "reads & writes: seconds", "ops", *(name for _, name in SIZES)}


def test_what_is_compared_with_is_dashed_and_without_a_colour() -> None:
    picture = drawn(Line("ours", [(10, 1), (1_000, 2)]), Line("cp", [(10, 1), (1_000, 2)], compared=True))
    assert f"stroke: {COLOURS[0]}" in line(picture, "ours").attrib["style"]
    assert "dasharray" not in line(picture, "ours").attrib["style"]
    assert f"stroke: {INK}" in line(picture, "cp").attrib["style"]
    assert "dasharray" in line(picture, "cp").attrib["style"]


def test_a_picture_has_no_background_and_is_the_same_again() -> None:
    one = draw([Panel("a", [Line("b", [(10, 1), (1_000, 2)])])], what="seconds", sizes=SIZES, of="ops")
    assert one == draw([Panel("a", [Line("b", [(10, 1), (1_000, 2)])])], what="seconds", sizes=SIZES, of="ops")
    patches = [each for each in ElementTree.fromstring(one).iter(f"{SVG}g") if each.get("id") in ("patch_1", "patch_2")]
    assert all(
        "fill: none" in (path.get("style") or "") or "opacity: 0" in (path.get("style") or "")
        for patch in patches
        for path in patch.iter(f"{SVG}path")
    )


def test_the_pictures_of_the_page_show_what_was_measured() -> None:
    """Whatever matplotlib draws them now: the names, and the places of the lines."""
    for name, text in pictures(load()).items():
        one, other = (ElementTree.fromstring(each) for each in (text, PAGE.with_name(name).read_text()))
        assert sorted(texts(one)) == sorted(texts(other)), name
        places, kept = lines(one), lines(other)
        assert len(places) > 10
        assert set(places) == set(kept)
        for each, found in places.items():
            assert kept[each] == pytest.approx(found, abs=0.5), (name, each)


def lines(picture: ElementTree.Element) -> dict[str, list[float]]:
    named = {each.get("id", ""): each for each in picture.iter(f"{SVG}g") if re.match(r"[01]-", each.get("id", ""))}
    return {
        name: [float(number) for place in PLACE.findall(next(group.iter(f"{SVG}path")).attrib["d"]) for number in place]
        for name, group in named.items()
    }
