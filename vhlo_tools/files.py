"""Files written whole or not at all.

Every output of the toolkit goes through :func:`write_atomically`: a reader never sees half a file, an interrupted run
leaves none behind, and an existing file is replaced only when that was asked for.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from vhlo_tools.mapping import copy

__all__ = ["joined", "write_atomically", "write_chunks"]

_SMALL = 1 << 16
_PERMISSIONS = 0o666


def write_atomically(path: Path, chunks: Iterable[bytes | memoryview], *, force: bool = False) -> None:
    """Write ``chunks`` to ``path``, so that the file appears complete or not at all.

    Args:
        path: Where the file shall be. A symbolic link is followed; a device or a pipe is written as it is.
        chunks: The bytes, in order.
        force: Whether an existing file may be replaced. Its permissions are kept.

    Raises:
        FileExistsError: If ``path`` exists and ``force`` is not set.
        OSError: If it cannot be written; nothing is left behind.
    """
    # Not Path.resolve, which raises a RuntimeError for links that go in a circle.
    path = Path(os.path.realpath(path))
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as device:
                device.writelines(chunks)
            return
        if not force:
            _refuse_existing(path)
        _write_beside(path, chunks, force=force)
    except OSError as error:
        # The user knows nothing of the temporary file.
        raise type(error)(error.errno, error.strerror, str(path)) from error


def write_chunks(handle: int, chunks: Iterable[bytes | memoryview]) -> None:
    """Write ``chunks`` to the end of an open file; the kernel copies what stands in a mapped file.

    Raises:
        OSError: If they cannot be written.
    """
    for chunk in joined(chunks):
        copy(chunk, handle)


def _write_beside(path: Path, chunks: Iterable[bytes | memoryview], *, force: bool) -> None:
    part = path.with_name(f".{os.urandom(8).hex()}.part")
    handle = _open_nameless(path.parent)
    nameless = handle is not None
    if handle is None:
        # As for any new file, the kernel takes the umask off these permissions.
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PERMISSIONS)
    try:
        write_chunks(handle, chunks)
        if path.exists():
            os.fchmod(handle, path.stat().st_mode & 0o777)
            # Or a power cut could take the old file and the new one.
            os.fsync(handle)
        if nameless:
            # The folder is only named because without one Python calls another function, which follows no link.
            os.link(f"/proc/self/fd/{handle}", part, src_dir_fd=handle)
        if force:
            part.replace(path)
        else:
            _place_new(part, path)
    finally:
        os.close(handle)
        with suppress(FileNotFoundError):
            part.unlink()


def _open_nameless(folder: Path) -> int | None:
    """Open a new file without a name, of which nothing is left if the process is killed; ``None`` if that cannot be."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        return os.open(folder, os.O_WRONLY | os.O_TMPFILE, _PERMISSIONS)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            return None
        raise


def joined(chunks: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Yield ``chunks``, small ones together."""
    small: list[bytes | memoryview] = []
    size = 0
    for chunk in chunks:
        if len(chunk) < _SMALL:
            small.append(chunk)
            size += len(chunk)
        if len(chunk) >= _SMALL or size >= _SMALL:
            yield b"".join(small)
            small, size = [], 0
        if len(chunk) >= _SMALL:
            yield chunk
    yield b"".join(small)


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, "file exists, and is replaced only with force (--force)", str(path))


def _place_new(part: Path, path: Path) -> None:
    """Give ``part`` the name ``path``, unless somebody else took that name meanwhile."""
    try:
        os.link(part, path)
    except FileExistsError:
        _refuse_existing(path)
    except OSError:  # a file system without hard links
        _refuse_existing(path)
        part.replace(path)
