"""Access to the bytes of files and objects: small ones are read at once, large ones on access."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from vhlo_tools.mapping import View, map_file, open_regular
from vhlo_tools.remote import Url

if TYPE_CHECKING:
    from vhlo_tools.remote import Place

Buffer = bytes | bytearray | View

# Below this, one read costs less than several.
_READ_BELOW = 1 << 24


def read_bytes(path: Place) -> Buffer:
    """Access to a large file raises if the file has been cut short, or the object replaced, in the meantime."""
    if isinstance(path, Url):
        from vhlo_tools.remote import open_object

        return open_object(path)
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size < _READ_BELOW:
            return file.read()
    return map_file(path)


def as_bytes(data: Buffer) -> Buffer:
    """Convert views with gaps, other formats or other ranks to single bytes."""
    if not isinstance(data, memoryview) or (data.contiguous and data.format == "B" and data.ndim == 1):
        return data
    return data.cast("B") if data.contiguous else data.tobytes()
