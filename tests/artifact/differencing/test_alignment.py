"""The shortest edit between two sequences."""

from __future__ import annotations

import random
import time
from array import array
from itertools import pairwise

import pytest

from vhlo_tools.artifact.numbering import align, common_prefix, paired


def longest(one: str, other: str) -> int:
    """Return the length of the longest common subsequence, by the book."""
    row = [0] * (len(other) + 1)
    for x in one:
        before = row
        row = [0]
        for j, y in enumerate(other):
            row.append(before[j] + 1 if x == y else max(before[j + 1], row[j]))
    return row[-1]


@pytest.mark.parametrize("seed", range(200))
def test_it_is_the_shortest(seed: int) -> None:
    chance = random.Random(seed)
    one, other = ("".join(chance.choices("abc", k=chance.randrange(12))) for _ in range(2))
    pairs = align(one, other)
    assert pairs is not None
    assert all(one[i] == other[j] for i, j in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))
    # The ends are taken for each other first, and things that one side lacks are left out: both keep it shortest.
    assert len(pairs) == longest(one, other)


def test_many_equal_things_with_few_edits_are_fast() -> None:
    one = [0, 1, 2, 3] * 25_000
    other = [*one[:40_000], 9, *one[40_000:60_000], *one[60_001:]]
    start = time.process_time()
    pairs = align(one, other)
    assert time.process_time() - start < 5
    assert pairs is not None
    assert len(pairs) == len(one) - 1


def test_too_many_edits_are_not_sought() -> None:
    chance = random.Random(0)
    one, other = (chance.choices(range(3), k=5000) for _ in range(2))
    assert align(one, other, most_edits=20) is None


def test_pairs_by_position_if_as_many() -> None:
    assert paired([1, 2], [3, 4]) == [(0, 0), (1, 1)]
    assert paired([1, 2], [0, 1, 2]) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 1000])
def test_a_common_prefix_ends_at_the_first_difference(size: int) -> None:
    one = array("I", range(size))
    assert common_prefix(one, one) == size
    for place in range(size) if size < 10 else (0, 1, 499, 500, 511, 998, 999):
        other = one[:]
        other[place] += 1
        assert common_prefix(one, other) == place
        assert common_prefix(one[:place], one) == place
