"""Arrays as bytes: an ``.npz`` of unsigned integers, for ``.npy`` does not know the element types of ``ml_dtypes``."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import ml_dtypes  # noqa: F401  # names its element types to numpy
import numpy as np

__all__ = ["pack_arrays", "unpack_arrays"]


def unpack_arrays(data: bytes) -> list[np.ndarray[Any, Any]]:
    """Return arrays from the bytes of an archive, in which each is named by its number and its element type.

    Raises:
        ValueError: If they are none.
    """
    found = {}
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        for name in archive.files:
            number, dtype = name.split()
            found[int(number)] = archive[name].view(np.dtype(dtype))
    return [found[number] for number in range(len(found))]


def pack_arrays(arrays: Iterable[np.ndarray[Any, Any]]) -> bytes:
    """Return the bytes of such an archive."""
    named: dict[str, Any] = {}
    for number, array in enumerate(arrays):
        plain = np.array(array, order="C")
        bits = plain.view(f"u{plain.itemsize}") if plain.itemsize in (1, 2, 4, 8) else plain
        named[f"{number} {plain.dtype}"] = bits
    archive = io.BytesIO()
    np.savez(archive, **named)
    return archive.getvalue()
