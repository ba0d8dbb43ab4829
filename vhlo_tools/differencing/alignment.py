"""Align two sequences by the shortest edit script.

Source: E. W. Myers, «An O(ND) Difference Algorithm and Its Variations», 1986. Its time grows with the number of edits
and not with the square of the length, like that of :mod:`difflib` if few elements are unique: a program consists of the
same few ops many times over.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field
from typing import Final

from vhlo_tools.records import dataclass

#: Positions of corresponding elements, in order.
Pairs = list[tuple[int, int]]

_MOST_EDITS: Final = 1000


def align(one: Sequence[Hashable], other: Sequence[Hashable], *, most_edits: int = _MOST_EDITS) -> Pairs | None:
    """Return the positions of common elements, in order; ``None`` if more than ``most_edits`` differ."""
    start, end = 0, 0
    shorter = min(len(one), len(other))
    while start < shorter and one[start] == other[start]:
        start += 1
    while end < shorter - start and one[-1 - end] == other[-1 - end]:
        end += 1
    middle = _myers(one[start : len(one) - end], other[start : len(other) - end], most_edits)
    if middle is None:
        return None
    return [
        *((i, i) for i in range(start)),
        *((start + i, start + j) for i, j in middle),
        *((len(one) - i, len(other) - i) for i in range(end, 0, -1)),
    ]


def _myers(one: Sequence[Hashable], other: Sequence[Hashable], most_edits: int) -> Pairs | None:
    if not one or not other:
        return []
    # An element of one side only is an edit in any case; searching for it would cost the square of the number of edits.
    there, here = set(other), set(one)
    left = [i for i, each in enumerate(one) if each in there]
    right = [j for j, each in enumerate(other) if each in here]
    pairs = _path([one[i] for i in left], [other[j] for j in right], most_edits)
    return None if pairs is None else [(left[i], right[j]) for i, j in pairs]


def _path(one: Sequence[Hashable], other: Sequence[Hashable], most_edits: int) -> Pairs | None:
    length, width = len(one), len(other)
    # The furthest position in `one` by diagonal for a number of edits; and a copy before each number of edits.
    reach = {1: 0}
    history: list[dict[int, int]] = []
    for edits in range(min(length + width, most_edits) + 1):
        history.append(reach.copy())
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])
            x = reach[diagonal + 1] if down else reach[diagonal - 1] + 1
            y = x - diagonal
            while x < length and y < width and one[x] == other[y]:
                x, y = x + 1, y + 1
            reach[diagonal] = x
            if x >= length and y >= width:
                return _back(history, length, width)
    return None


def _back(history: list[dict[int, int]], x: int, y: int) -> Pairs:
    pairs: Pairs = []
    for edits in range(len(history) - 1, -1, -1):
        reach, diagonal = history[edits], x - y
        down = diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])
        before = diagonal + 1 if down else diagonal - 1
        start_x = reach[before]
        start_y = start_x - before
        while x > max(start_x, 0) and y > max(start_y, 0):
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = start_x, start_y
    return pairs[::-1]


def common_prefix(one: array[int], other: array[int]) -> int:
    """Compare slices as wholes, for speed."""
    same, size = 0, min(len(one), len(other))
    step = size
    while step:
        if same + step <= size and one[same : same + step] == other[same : same + step]:
            same += step
        else:
            step //= 2
    return same


@dataclass(slots=True)
class Script:
    """The alignment of the ops of two blocks."""

    same: int = 0  # the number of ops with which both begin, equal with their operands
    pairs: Pairs = field(default_factory=list)  # positions of corresponding ops behind these
    unlike: list[tuple[range, range]] = field(default_factory=list)  # ranges with too few matches for an alignment

    def merged(self, size_a: int, size_b: int) -> Iterator[tuple[int | range | None, int | range | None]]:
        """Yield positions behind :attr:`same` in order: a pair of ops, an op of one side, or two unaligned ranges."""
        at_i = at_j = self.same
        stops = sorted(
            [*((i, j, i + 1, j + 1) for i, j in self.pairs)]
            + [(gone.start, come.start, gone.stop, come.stop) for gone, come in self.unlike]
        )
        ranges = {(gone.start, come.start): (gone, come) for gone, come in self.unlike}
        for i, j, stop_i, stop_j in [*stops, (size_a, size_b, size_a, size_b)]:
            yield from ((each, None) for each in range(at_i, i))
            yield from ((None, each) for each in range(at_j, j))
            if (i, j) in ranges:
                yield ranges[i, j]
            elif i < stop_i:
                yield i, j
            at_i, at_j = stop_i, stop_j


def paired(one: Sequence[int], other: Sequence[int]) -> Pairs:
    """Pair positions by their order if the lengths are equal, else by equality of elements."""
    if len(one) == len(other):
        return [(i, i) for i in range(len(one))]
    return align(one, other) or []
