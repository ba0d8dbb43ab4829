"""Atomic writing of files and objects.

All output of the toolkit goes through :func:`write_atomically`: a reader never sees a partial file, an interrupted run
leaves none behind, and an existing file is replaced only on request.

A manifest (``artifact/manifest.py``) beside a file describes its bytes. Whatever writes the file anew removes
the manifest first, so that at no moment, and after no interruption, one describes other bytes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vhlo_tools.files.mapping import copy, join, slices, view
from vhlo_tools.files.urls import Url
from vhlo_tools.system import BINARY, keep_permissions

if TYPE_CHECKING:
    from vhlo_tools.files.mapping import Chunk
    from vhlo_tools.files.urls import Place

#: What follows the name of a file in that of its manifest.
MANIFEST_SUFFIX: Final = ".manifest.json"
#: What follows the name of a file in that of the signature of its manifest.
SIGNATURE_SUFFIX: Final = ".sig"
#: How every manifest begins: other files of such a name belong to others.
MANIFEST_HEAD: Final = b'{\n  "vhlo_manifest": '

_SMALL = 1 << 16
_PERMISSIONS = 0o666


def write_atomically(path: Place, chunks: Iterable[Chunk], *, force: bool = False) -> None:
    """Write a file or an object, which appears complete or not at all; on an error nothing is left behind.

    A manifest beside the file is removed; those behind URLs are left alone. A symbolic link is followed; a device or a
    pipe is written directly. A replaced file keeps its permissions.
    """
    if isinstance(path, Url):
        # Imported here, as in all rooms, so that commands on files need not load what handles objects.
        from vhlo_tools.files.objects import write_object

        write_object(path, chunks, force=force)
        return
    given = path
    # Not Path.resolve, which raises a RuntimeError for cyclic links.
    path = Path(os.path.realpath(path))
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as device:
                device.writelines(piece for chunk in chunks for piece in slices(view(chunk)))
            return
        if not force:
            _refuse_existing(path)
        _write_beside(path, chunks, force=force, also=given)
    except OSError as error:
        # Report the path that the caller passed, not the temporary file.
        raise type(error)(error.errno, error.strerror, str(path)) from error


def write_chunks(handle: int, chunks: Iterable[Chunk]) -> None:
    """Append ``chunks`` to an open file; the kernel copies the chunks that are ranges of a file."""
    for chunk in joined(chunks):
        copy(chunk, handle)


def remove_manifest(path: Path) -> None:
    """Remove the manifest beside a file that is about to be written anew, if there is one."""
    if not path.name:  # a folder such as `.`
        return
    beside = path.with_name(path.name + MANIFEST_SUFFIX)
    try:
        # A name that is too long is no file either.
        if not os.path.isfile(beside):  # noqa: PTH113
            return
        with beside.open("rb") as file:
            is_ours = file.read(len(MANIFEST_HEAD)) == MANIFEST_HEAD
    except PermissionError:
        # Nobody who reads as this user takes it for a manifest.
        return
    if is_ours:
        beside.unlink(missing_ok=True)


def _write_beside(path: Path, chunks: Iterable[Chunk], *, force: bool, also: Path) -> None:
    part = path.with_name(f".{os.urandom(8).hex()}.part")
    handle = _open_nameless(path.parent)
    nameless = handle is not None
    if handle is None:
        # As for any new file, the kernel applies the umask to these permissions.
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, _PERMISSIONS)
    try:
        try:
            write_chunks(handle, chunks)
            if path.exists():
                keep_permissions(handle, path.stat().st_mode & 0o777)
                # Otherwise a power failure could destroy both the old and the new file.
                os.fsync(handle)
            if nameless:
                # src_dir_fd makes Python call linkat, which follows the link in /proc; link would not.
                os.link(f"/proc/self/fd/{handle}", part, src_dir_fd=handle)
        finally:
            # Windows renames no open file.
            os.close(handle)
        if not force:
            _refuse_existing(path)
        for each in {path, also}:
            remove_manifest(each)
        if force:
            part.replace(path)
        else:
            _place_new(part, path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _open_nameless(folder: Path) -> int | None:
    """Open a file without a name, which disappears if the process is killed; ``None`` if unsupported."""
    # It gets its name through /proc.
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):  # noqa: PTH112
        return None
    try:
        return os.open(folder, os.O_WRONLY | os.O_TMPFILE | BINARY, _PERMISSIONS)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            return None
        raise


def joined(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    small: list[Chunk] = []
    size = 0
    for chunk in chunks:
        if len(chunk) < _SMALL:
            small.append(chunk)
            size += len(chunk)
        if len(chunk) >= _SMALL or size >= _SMALL:
            yield join(small)
            small, size = [], 0
        if len(chunk) >= _SMALL:
            yield chunk
    yield join(small)


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, "the file exists: force (--force) replaces it", str(path))


def _place_new(part: Path, path: Path) -> None:
    """Rename ``part`` to ``path``, unless a file of that name has appeared in the meantime."""
    try:
        os.link(part, path)
    except FileExistsError:
        _refuse_existing(path)
    except OSError:  # a file system without hard links
        _refuse_existing(path)
        part.replace(path)
