"""What the ops of the ``check`` dialect mean.

Source: ``stablehlo/tests/CheckOps.cpp`` and ``stablehlo/tools/StablehloTranslateMain.cpp`` in openxla/stablehlo.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from vhlo_tools.interpreter import as_saved, is_near, ulp_difference

__all__ = ["CheckFailedError", "ProbeFolder", "Texts", "expect_almost_eq", "expect_close", "expect_eq"]

Array = np.ndarray[Any, Any]

#: Returns the elements of an array as text, in order.
Texts = Callable[[Array], list[str]]

#: How many differences a message shows.
_SHOWN: Final = 10
#: From how many units in the last place on differences are counted together.
_COUNTED: Final = 4


class CheckFailedError(Exception):
    """A check that failed; the message says how."""


def expect_eq(actual: Array, expected: Array, texts: Texts) -> None:
    """Raise unless all elements are equal; what is no number equals nothing."""
    with np.errstate(invalid="ignore"):
        good = np.asarray(actual == expected)
    _expect(good, actual, expected, texts, "Element values don't match")


def expect_almost_eq(actual: Array, expected: Array, texts: Texts, tolerance: float) -> None:
    """Raise unless all elements are at most so far apart."""
    good = np.asarray(is_near(actual, expected, tolerance))
    _expect(good, actual, expected, texts, f"Element values don't match with tolerance {tolerance:f}")


def expect_close(actual: Array, expected: Array, texts: Texts, least: int, most: int) -> None:
    """Raise unless all elements are so many units in the last place apart: not fewer, and not more."""
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
    """Return the first of some places, each with the elements there."""
    places = [tuple(map(int, each)) for each in bad[:_SHOWN]]
    one, other = (texts(np.asarray([array[place] for place in places], array.dtype)) for array in (actual, expected))
    return list(zip(places, one, other, strict=True))


@dataclass(slots=True)
class ProbeFolder:
    """A folder of values that probes wrote: a file of numpy for each, and ``index.csv``, with the identifier and type.

    Numbers of types that numpy has not are in these files as raw bytes.

    Attributes:
        path: The folder, if there is one.
        count: How many values were written.
    """

    path: Path | None
    count: int = 0

    @property
    def _index(self) -> Path:
        if self.path is None:
            raise CheckFailedError("Probe serialization directory cannot be empty: give --probe-output-dir=FOLDER")
        return self.path / "index.csv"

    def clear(self) -> None:
        """Take the index of another run away."""
        if self.path is not None:
            self._index.unlink(missing_ok=True)

    def write(self, identifier: str, kind: str, array: Array) -> None:
        """Write a value."""
        index = self._index
        index.parent.mkdir(parents=True, exist_ok=True)
        self.count += 1
        file = index.with_name(f"probe{self.count}.npy")
        np.save(file, as_saved(array), allow_pickle=False)
        with index.open("a", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerow([identifier, kind, str(file)])

    def expect(self, identifier: str, iteration: int, kind: str, expected: Array, texts: Texts) -> None:
        """Raise unless the value that a probe wrote the so manyth time is of a type, and equal to an array.

        Upstream's program counts what other probes wrote too, against what ``CheckOps.td`` says; of one probe, both are
        the same.
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
        if written != kind:
            raise CheckFailedError(
                f"Serialized types don't match: {kind} (actual) vs {written} (expected) for probe {identifier}."
            )
        try:
            stored = np.load(file, allow_pickle=False)
        except ValueError as error:
            raise CheckFailedError(f"Failed to verify serialized tensor {identifier}: {error}") from error
        if (stored.shape, stored.itemsize) != (expected.shape, expected.itemsize):
            raise CheckFailedError(
                f"Failed to verify serialized tensor {identifier}: {file} holds {stored.dtype}{list(stored.shape)}"
            )
        expect_eq(expected, stored if stored.dtype == expected.dtype else stored.view(expected.dtype), texts)
