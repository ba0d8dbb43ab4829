"""Atomic writing of files and objects.

All output of the toolkit goes through :func:`write_atomically`: a reader never sees a partial file, an interrupted run
leaves none behind, and an existing file is replaced only on request.

A manifest (``artifact/manifest.py``) beside a file describes its bytes. Whatever writes the file anew removes
the manifest first, so that at no moment, and after no interruption, one describes other bytes.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vhlo_tools.files.mapping import copy, join, slices, view
from vhlo_tools.files.urls import Url
from vhlo_tools.records import dataclass
from vhlo_tools.system import BINARY, FOLDER, NO_BLOCKING, NO_LINKS, keep_permissions

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


# Folders that stay what they were when they were checked


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder: ``os.unlink(folder.at(name), dir_fd=folder.handle)`` is in it, whatever became of its path."""

    path: str
    handle: int | None  # None where the system opens none

    def at(self, name: str) -> str:
        """Return what names a file of the folder, beside its handle."""
        return name if self.handle is not None else os.path.join(self.path, name)  # noqa: PTH118


@contextmanager
def opened_folder(path: str | os.PathLike[str], *, make: bool = False) -> Iterator[Folder]:
    """Open a folder by a path in which all links are resolved; an ``OSError`` says that one has appeared since.

    Whoever may write in a folder above could otherwise have files written, and removed, anywhere. ``make`` makes what
    is missing, and removes that again on an error, if nothing is in it.
    """
    path = os.path.abspath(path)  # noqa: PTH100 - links are not resolved
    made: list[str] = []
    handle: int | None = None
    try:
        if make and not FOLDER:
            Path(path).mkdir(parents=True, exist_ok=True)
        elif FOLDER:
            handle = _walk(path, made, make=make)
        yield Folder(path, handle)
    except BaseException:
        for each in reversed(made):
            with suppress(OSError), opened_folder(os.path.dirname(each)) as above:  # noqa: PTH120
                os.rmdir(above.at(os.path.basename(each)), dir_fd=above.handle)  # noqa: PTH119
        raise
    finally:
        if handle is not None:
            os.close(handle)


def _walk(path: str, made: list[str], *, make: bool) -> int:
    handle = os.open(os.sep, FOLDER)
    at = ""
    try:
        for name in Path(path).parts[1:]:
            at += os.sep + name
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=handle)
                    made.append(at)
            try:
                following = os.open(name, FOLDER | NO_LINKS, dir_fd=handle)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR) and os.path.islink(at):  # noqa: PTH114
                    raise OSError(errno.ELOOP, f"{at} has become a link", path) from None
                raise OSError(error.errno, error.strerror, path) from None
            os.close(handle)
            handle = following
    except BaseException:
        os.close(handle)
        raise
    return handle


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
        if not force and os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "the file exists: force (--force) replaces it")
        _write_beside(path, chunks, force=force, also=given)
    except OSError as error:
        # Report the path that the caller passed, not the temporary file.
        raise type(error)(error.errno, error.strerror, str(path)) from error


def write_chunks(handle: int, chunks: Iterable[Chunk]) -> None:
    """Append ``chunks`` to an open file; the kernel copies the chunks that are ranges of a file."""
    for chunk in joined(chunks):
        copy(chunk, handle)


def remove_manifest(folder: Folder, name: str) -> None:
    """Remove the manifest beside a file that is about to be written anew, if there is one."""
    if not name:  # a folder such as `.`
        return
    beside = folder.at(name + MANIFEST_SUFFIX)
    try:
        handle = os.open(beside, os.O_RDONLY | NO_BLOCKING | BINARY, dir_fd=folder.handle)
    except OSError:
        # Nobody who reads as this user takes it for a manifest, nor a name that is too long.
        return
    try:
        is_ours = stat.S_ISREG(os.fstat(handle).st_mode) and os.read(handle, len(MANIFEST_HEAD)) == MANIFEST_HEAD
    finally:
        os.close(handle)
    if is_ours:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder.handle)


def _write_beside(path: Path, chunks: Iterable[Chunk], *, force: bool, also: Path) -> None:
    with opened_folder(path.parent) as folder:
        write_in(folder, path.name, chunks, force=force, also=also)


def write_in(folder: Folder, name: str, chunks: Iterable[Chunk], *, force: bool, also: Path | None = None) -> None:
    """Write a file as :func:`write_atomically` does, in the place of whatever has the name: no link is followed.

    ``also`` is another path of the file, beside which a manifest is removed too.
    """
    part, target, at = folder.at(f".{os.urandom(8).hex()}.part"), folder.at(name), folder.handle
    handle = _open_nameless(folder)
    nameless = handle is not None
    if handle is None:
        # As for any new file, the kernel applies the umask to these permissions.
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, _PERMISSIONS, dir_fd=at)
    try:
        try:
            write_chunks(handle, chunks)
            with suppress(FileNotFoundError):
                mode = os.lstat(target, dir_fd=at).st_mode
                if stat.S_ISREG(mode):
                    keep_permissions(handle, mode & 0o777)
                # Otherwise a power failure could destroy both the old and the new file.
                os.fsync(handle)
            if nameless:
                # src_dir_fd makes Python call linkat, which follows the link in /proc; link would not.
                os.link(f"/proc/self/fd/{handle}", part, src_dir_fd=handle, dst_dir_fd=at)
        finally:
            # Windows renames no open file.
            os.close(handle)
        if not force:
            _refuse_existing(folder, name)
        remove_manifest(folder, name)
        if also is not None and also != Path(folder.path, name):
            with opened_folder(os.path.realpath(also.parent)) as other:
                remove_manifest(other, also.name)
        if force:
            os.replace(part, target, src_dir_fd=at, dst_dir_fd=at)
        else:
            place_new(folder, part, name)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=at)


def _open_nameless(folder: Folder) -> int | None:
    """Open a file without a name, which disappears if the process is killed; ``None`` if unsupported."""
    # It gets its name through /proc.
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):  # noqa: PTH112
        return None
    try:
        return os.open(folder.at(os.curdir), os.O_WRONLY | os.O_TMPFILE | BINARY, _PERMISSIONS, dir_fd=folder.handle)
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


def _refuse_existing(folder: Folder, name: str) -> None:
    with suppress(FileNotFoundError):
        os.lstat(folder.at(name), dir_fd=folder.handle)
        where = os.path.join(folder.path, name)  # noqa: PTH118
        raise FileExistsError(errno.EEXIST, "the file exists: force (--force) replaces it", where)


def place_new(folder: Folder, part: str, name: str) -> None:
    """Rename ``part`` to a name, unless a file of that name has appeared in the meantime."""
    at, target = folder.handle, folder.at(name)
    try:
        os.link(part, target, src_dir_fd=at, dst_dir_fd=at)
    except FileExistsError:
        _refuse_existing(folder, name)
    except OSError:  # a file system without hard links
        _refuse_existing(folder, name)
        os.replace(part, target, src_dir_fd=at, dst_dir_fd=at)
