"""Access to the bytes of files: small ones are read at once, large ones on access."""

from __future__ import annotations

import os
from pathlib import Path

from vhlo_tools.mapping import View, map_file, open_regular

__all__ = ["Buffer", "as_bytes", "read_bytes"]

Buffer = bytes | bytearray | View

# Below this, one read costs less than several.
_READ_BELOW = 1 << 24


def read_bytes(path: Path) -> Buffer:
    """Return the contents of a regular file.

    Of a large file, only the parts that are accessed are read; this raises an error if it has been cut short by then.

    Raises:
        OSError: If the file cannot be read, or is not a regular file.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size < _READ_BELOW:
            return file.read()
    return map_file(path)


def as_bytes(data: Buffer) -> Buffer:
    """Return ``data`` as a sequence of single bytes, converting views with gaps, other formats or other ranks."""
    if not isinstance(data, memoryview) or (data.contiguous and data.format == "B" and data.ndim == 1):
        return data
    return data.cast("B") if data.contiguous else data.tobytes()
