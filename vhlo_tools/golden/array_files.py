"""Reading of the files of a record: inside its folder, regular, and no larger than they say."""

from __future__ import annotations

import hashlib
import io
import math
import os
from pathlib import Path
from typing import Any, Final

import numpy as np

from vhlo_tools.errors import GoldenError
from vhlo_tools.files import open_regular

#: The limit on the size of a file of a record.
LARGEST_FILE: Final = 8 << 30


def read_file(folder: Path, name: str, sha256: str | None = None) -> bytes:
    """Refuses a file outside of the folder, one that is too large, and one with another SHA-256."""
    path = folder / name
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise GoldenError(f"{path} leads to {os.path.realpath(path)}, outside of the record")
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST_FILE:
            raise GoldenError(f"{path} has {size} bytes; the limit is {LARGEST_FILE}")
        data = file.read(size)
    if sha256 is not None and (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise GoldenError(f"{path} was changed after it was recorded: its SHA-256 is {found}, expected {sha256}")
    return data


def read_array(data: bytes, dtype: str) -> np.ndarray[Any, Any]:
    """Allocates the array only if the file contains all of it; ``.npy`` files do not name types of ml_dtypes."""
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, is_fortran, stored = reader(file)
    except Exception as error:  # numpy parses headers as Python, and raises whatever that does
        raise ValueError(f"its header is damaged: {error}") from error
    if stored.hasobject:
        raise ValueError("it contains Python objects, which are not read")
    expected, found = math.prod(shape) * stored.itemsize, len(data) - file.tell()
    if expected != found or any(size < 0 for size in shape):
        raise ValueError(f"its header announces {expected} bytes, and {found} follow")
    flat = np.frombuffer(data, stored, offset=file.tell()) if found else np.empty(0, stored)
    array = flat.reshape(shape, order="F" if is_fortran else "C").copy()
    return array.view(_dtype(dtype)) if stored.kind == "V" else array


def _dtype(name: str) -> np.dtype[Any]:
    import ml_dtypes

    try:
        found = np.dtype(getattr(ml_dtypes, name, name))
    except TypeError as error:
        raise ValueError(f"{name!r} is not an element type") from error
    if found.hasobject:
        raise ValueError(f"{name!r} is not an element type")
    return found
