"""Pictures of growth: lines where their values are, and names that can be read."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from growth_picture import Line, Panel, draw

SIZES = [(10.0, "10"), (1_000.0, "1,000"), (100_000.0, "100,000")]
SVG = "{http://www.w3.org/2000/svg}"


def drawn(*lines: Line) -> ElementTree.Element:
    return ElementTree.fromstring(draw([Panel("reads & writes", lines)], what="seconds", sizes=SIZES, of="ops"))


def dots(picture: ElementTree.Element) -> list[tuple[float, float]]:
    return [(float(each.attrib["cx"]), float(each.attrib["cy"])) for each in picture.iter(f"{SVG}circle")]


def test_equal_factors_are_equal_distances() -> None:
    (x0, y0), (x1, y1), (x2, y2) = dots(drawn(Line("a", [(10, 0.1), (1_000, 1.0), (100_000, 10.0)])))
    assert abs((x1 - x0) - (x2 - x1)) < 0.2
    assert abs((y0 - y1) - (y1 - y2)) < 0.2
    assert x0 < x1
    assert y0 > y1


def test_names_of_lines_that_end_together_do_not_overlap() -> None:
    names = [f"command {number}" for number in range(12)]
    picture = drawn(*(Line(name, [(10, 0.1), (100_000, 1.0 + number / 1_000)]) for number, name in enumerate(names)))
    places = {each.text: float(each.attrib["y"]) for each in picture.iter(f"{SVG}text") if each.text in names}
    assert set(places) == set(names)
    assert all(below - above >= 12.9 for above, below in pairwise(sorted(places.values())))
    assert min(places.values()) > 0
    assert max(places.values()) < 270
    # In the order of the ends: more is higher.
    assert sorted(places, key=lambda name: -places[str(name)]) == names


def test_what_is_compared_with_is_dashed_and_without_a_colour() -> None:
    picture = drawn(Line("ours", [(10, 1), (1_000, 2)]), Line("cp", [(10, 1), (1_000, 2)], compared=True))
    lines = [each for each in picture.iter(f"{SVG}path") if each.get("stroke-width") == "1.8"]
    assert [each.get("stroke-dasharray") for each in lines] == [None, "5 3"]
    assert lines[1].get("stroke") == picture.get("fill") != lines[0].get("stroke")


def test_a_picture_is_read_on_white_and_on_black() -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: str, other: str) -> float:
        low, high = sorted((luminance(one), luminance(other)))
        return (high + 0.05) / (low + 0.05)

    picture = drawn(*(Line(str(number), [(10, 1), (1_000, 2 + number)]) for number in range(7)))
    colours = {
        picture.attrib["fill"],
        *(each.attrib["stroke"] for each in picture.iter(f"{SVG}path") if "stroke" in each.attrib),
    }
    assert len(colours) == 8
    for colour in colours:
        assert min(contrast(colour, "#ffffff"), contrast(colour, "#0d1117")) > 3.4, colour
