"""Arrays as bytes: an ``.npz`` of unsigned integers, because ``.npy`` lacks the element types of ``ml_dtypes``."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from typing import Any

import ml_dtypes  # noqa: F401  # names its element types to numpy
import numpy as np


def unpack_arrays(data: bytes) -> list[np.ndarray[Any, Any]]:
    """Unpack an archive in which each array is named by its number and its element type.

    It may come from a process that a program took over: the arrays take no more memory than the archive, whatever it
    claims about their shapes and about itself.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if any(each.compress_type != zipfile.ZIP_STORED for each in entries):
                raise ValueError("it is compressed")
            if sum(each.file_size for each in entries) > len(data):
                raise ValueError("its arrays are larger than itself")
            found = dict(_unpacked(each.filename, archive.read(each)) for each in entries)
        return [found[number] for number in range(len(entries))]
    except Exception as error:  # what zipfile and numpy raise for damage is of a dozen kinds
        raise ValueError(f"expected an archive of arrays: {type(error).__name__}: {error}") from None


def _unpacked(name: str, data: bytes) -> tuple[int, np.ndarray[Any, Any]]:
    number, dtype = name[: -len(".npy")].split()
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array of another format than 1.0")
    shape, columns, bits = np.lib.format.read_array_header_1_0(stream)
    if bits.kind not in "uc" or min(shape, default=0) < 0:
        raise ValueError(f"an array of {bits} of the shape {shape}")
    # Of the bytes that are there: numpy's own reader makes room first, for what the header says.
    array: np.ndarray[Any, Any] = np.ndarray(
        shape, bits, bytearray(data), offset=stream.tell(), order="F" if columns else "C"
    )
    return int(number), array.view(np.dtype(dtype))


def pack_arrays(arrays: Iterable[np.ndarray[Any, Any]]) -> bytes:
    named: dict[str, Any] = {}
    for number, array in enumerate(arrays):
        plain = np.array(array, order="C")
        bits = plain.view(f"u{plain.itemsize}") if plain.itemsize in (1, 2, 4, 8) else plain
        named[f"{number} {plain.dtype}"] = bits
    archive = io.BytesIO()
    np.savez(archive, **named)
    return archive.getvalue()
