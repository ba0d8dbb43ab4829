"""Bytes from files: mapped when they are large, read when they are small."""

from __future__ import annotations

from pathlib import Path

from vhlo_tools.mapping import map_file

__all__ = ["Buffer", "as_bytes", "read_bytes"]

Buffer = bytes | bytearray | memoryview

# Below this a copy costs less than a mapping, and is safe from another process cutting the file short.
_MAPPED_FROM = 1 << 20


def read_bytes(path: Path) -> Buffer:
    """Return the contents of ``path``.

    A large file is mapped into memory, so that only what is looked at is loaded.

    Raises:
        OSError: If it cannot be read.
    """
    if path.is_file() and path.stat().st_size >= _MAPPED_FROM:
        return map_file(path)
    return path.read_bytes()


def as_bytes(data: Buffer) -> Buffer:
    """Return ``data`` as a sequence of single bytes; a view of other things, or with gaps, becomes one."""
    if not isinstance(data, memoryview) or (data.contiguous and data.format == "B" and data.ndim == 1):
        return data
    return data.cast("B") if data.contiguous else data.tobytes()
