"""Semantics of the ops of the ``check`` dialect.

Source: ``stablehlo/tests/CheckOps.cpp`` and ``stablehlo/tools/StablehloTranslateMain.cpp`` in openxla/stablehlo.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from vhlo_tools.execution import as_saved, is_near, ulp_difference
from vhlo_tools.records import dataclass

Array = np.ndarray[Any, Any]

#: Returns the elements of an array as text, in order.
Texts = Callable[[Array], list[str]]

#: The number of differences in a message.
_SHOWN: Final = 10
#: Differences of at least so many units in the last place are counted together.
_COUNTED: Final = 4


class CheckFailedError(Exception): ...


def expect_eq(actual: Array, expected: Array, texts: Texts) -> None:
    """NaN equals nothing."""
    with np.errstate(invalid="ignore"):
        good = np.asarray(actual == expected)
    _expect(good, actual, expected, texts, "Element values don't match")


def expect_almost_eq(actual: Array, expected: Array, texts: Texts, tolerance: float) -> None:
    good = np.asarray(is_near(actual, expected, tolerance))
    _expect(good, actual, expected, texts, f"Element values don't match with tolerance {tolerance:f}")


def expect_close(actual: Array, expected: Array, texts: Texts, least: int, most: int) -> None:
    """``least`` and ``most`` are units in the last place."""
    steps = np.asarray(ulp_difference(actual, expected))
    bad = np.argwhere((steps > most) | (steps < least))
    if not len(bad):
        return
    shown = _places(bad, actual, expected, texts)
    lines = [
        f"index={list(place)}, actual={one}, expected={other}, ULP difference={int(steps[place])}"
        for place, one, other in shown
    ]
    if len(bad) > len(shown):
        lines.append(f"and {len(bad) - len(shown)} more")
    counted = np.minimum(steps, _COUNTED)
    for number in range(_COUNTED + 1):
        sign = ">=" if number == _COUNTED else "=="
        lines.append(f"ULP difference {sign} {number} count is {int(np.sum(counted == number))}")
    raise CheckFailedError(
        f"Elements values don't match with respect to maximal ULP difference={most} limit:\n  " + "\n  ".join(lines)
    )


def _expect(good: Array, actual: Array, expected: Array, texts: Texts, what: str) -> None:
    bad = np.argwhere(~good)
    if len(bad):
        ((place, one, other),) = _places(bad[:1], actual, expected, texts)
        raise CheckFailedError(f"{what}: {one} (actual) vs {other} (expected) at index {list(place)}")


def _places(bad: Array, actual: Array, expected: Array, texts: Texts) -> list[tuple[tuple[int, ...], str, str]]:
    """Return the first of the given indices, each with the elements there."""
    places = [tuple(map(int, each)) for each in bad[:_SHOWN]]
    one, other = (texts(np.asarray([array[place] for place in places], array.dtype)) for array in (actual, expected))
    return list(zip(places, one, other, strict=True))


@dataclass(slots=True)
class ProbeFolder:
    """A folder of values that probes wrote: a numpy file for each, and ``index.csv``, with the identifier and type.

    Elements of types that numpy lacks are raw bytes in these files.
    """

    path: Path | None  # None for no folder
    count: int = 0  # values written

    @property
    def _index(self) -> Path:
        if self.path is None:
            raise CheckFailedError("Probe serialization directory cannot be empty: give --probe-output-dir=FOLDER")
        return self.path / "index.csv"

    def clear(self) -> None:
        """Remove the index of another run."""
        if self.path is not None:
            self._index.unlink(missing_ok=True)

    def write(self, identifier: str, type_: str, array: Array) -> None:
        index = self._index
        index.parent.mkdir(parents=True, exist_ok=True)
        self.count += 1
        file = index.with_name(f"probe{self.count}.npy")
        np.save(file, as_saved(array), allow_pickle=False)
        with index.open("a", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerow([identifier, type_, str(file)])

    def expect(self, identifier: str, iteration: int, type_: str, expected: Array, texts: Texts) -> None:
        """Check value number ``iteration`` of a probe.

        Upstream's program also counts values of other probes, contrary to ``CheckOps.td``; with a single probe there is
        no difference.
        """
        try:
            with self._index.open(newline="", encoding="utf-8") as stream:
                rows = [row for row in csv.reader(stream) if row[0] == identifier]
        except OSError as error:
            raise CheckFailedError(f"Failed to find serialized data for probe {identifier}.") from error
        if iteration >= len(rows):
            raise CheckFailedError(
                f"Failed to find serialized data for probe {identifier}: it wrote {len(rows)} values, and number "
                f"{iteration} is expected"
            )
        _, written, file = rows[iteration]
        if written != type_:
            raise CheckFailedError(
                f"Serialized types don't match: {type_} (actual) vs {written} (expected) for probe {identifier}."
            )
        try:
            stored = np.load(file, allow_pickle=False)
        except ValueError as error:
            raise CheckFailedError(f"Failed to verify serialized tensor {identifier}: {error}") from error
        if (stored.shape, stored.itemsize) != (expected.shape, expected.itemsize):
            raise CheckFailedError(
                f"Failed to verify serialized tensor {identifier}: {file} contains {stored.dtype}{list(stored.shape)}"
            )
        expect_eq(expected, stored if stored.dtype == expected.dtype else stored.view(expected.dtype), texts)
