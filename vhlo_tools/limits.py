"""Limits that several rooms have: on the shape of an array, whatever says it, and on the time that MLIR may read."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final

#: numpy has 64 dimensions at most, and TensorFlow 254; MLIR and XLA have no limit. The product of the sizes takes the
#: square of their number.
MOST_DIMENSIONS: Final = 255
#: MLIR, XLA and numpy count elements in 64 bits, with a sign.
MOST_ELEMENTS: Final = (1 << 63) - 1

# Below this rate reading is assumed to hang. MLIR reads ops at 1.5 to 3 MB a second, and constants much faster.
_SECONDS: Final = 2.0
_BYTES_PER_SECOND: Final = 256 << 10


def seconds_of_reading(size: int) -> float:
    """Return the processor time after which MLIR is taken to hang on this many bytes."""
    return _SECONDS + size / _BYTES_PER_SECOND


def excess_of_shape(sizes: Collection[int | None]) -> str | None:
    """Return what a shape has too much of, as the end of a sentence, or ``None``. Dynamic sizes do not count."""
    if len(sizes) > MOST_DIMENSIONS:
        return f"{len(sizes)} dimensions; the limit is {MOST_DIMENSIONS}"
    known = [size for size in sizes if size is not None and size >= 0]
    if math.prod(known) > MOST_ELEMENTS:
        return f"2^{math.prod(known).bit_length() - 1} elements or more; the limit is 2^63 - 1"
    return None
