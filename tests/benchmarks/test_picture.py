"""What pictures of growth are made of: places of names that can be read, and colours."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from growth_picture import COLOURS, INK, spread

DISTANCE = 0.05


@pytest.mark.parametrize("number", [0, 1, 2, 7, 20, 21])
def test_names_do_not_overlap_and_stay_within_the_panel(number: int) -> None:
    for seed in range(50):
        wanted = sorted(Random(seed).uniform(0.0, 1.0) ** 4 for _ in range(number))
        places = spread(wanted, DISTANCE)
        assert len(places) == number
        assert all(above - below >= DISTANCE - 1e-9 for below, above in pairwise(places))
        assert all(-1e-9 <= each <= 1 + 1e-9 for each in places)


def test_names_that_are_far_apart_stand_at_their_ends() -> None:
    assert spread([0.1, 0.5, 0.9], DISTANCE) == pytest.approx([0.1, 0.5, 0.9])
    # Both move by half of what is missing.
    assert spread([0.50, 0.52], DISTANCE) == pytest.approx([0.485, 0.535])


@pytest.mark.parametrize("colour", [*COLOURS, INK])
@pytest.mark.parametrize("page", ["#ffffff", "#0d1117"])
def test_a_picture_is_read_on_white_and_on_black(colour: str, page: str) -> None:
    low, high = sorted((luminance(colour), luminance(page)))
    assert (high + 0.05) / (low + 0.05) > 3.4


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
