"""Programs of a store: their files, the identity of their content, and partners in another store."""

from __future__ import annotations

import errno
import glob
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Self

from vhlo_tools.errors import InvalidProgramError, MigrationError, VhloToolsError
from vhlo_tools.files import (
    ARTIFACT_PRODUCER,
    Kind,
    Others,
    Url,
    digest_of,
    is_saved_model,
    is_url,
    nobody,
    objects_at,
    open_regular,
    place,
    programs_at,
    read_bytes,
    recognise,
    view,
)
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.files import Buffer, Stamp as ObjectStamp

# Identity of the content of a file or an object, by which a change by somebody else is noticed


@dataclass(frozen=True, slots=True)
class Stamp:
    """Identity of a file's content: size, modification time and inode; of an object's: size and token."""

    size: int
    modified: int = 0  # in nanoseconds
    inode: int = 0
    token: str | None = None  # for conditional requests: an ETag, or a generation

    @classmethod
    def of(cls, path: str) -> Self:
        if is_url(path):
            from vhlo_tools.files import stamp_of

            found = stamp_of(object_url(path))
            if found is None:
                raise FileNotFoundError(errno.ENOENT, "there is no such object", path)
            return cls.of_object(found)
        status = os.stat(path)  # noqa: PTH116 - for each file, several times
        return cls(status.st_size, status.st_mtime_ns, status.st_ino)

    @classmethod
    def of_object(cls, stamp: ObjectStamp) -> Self:
        return cls(stamp.size, token=stamp.token)


#: A file that was changed later than this may change again within a tick of the clock of its file system.
_SETTLED: Final = 2_000_000_000


def identity_of(found: os.stat_result | ObjectStamp) -> str | None:
    """Return what becomes another with the content of a file or an object; ``None`` if nothing is sure to.

    Of a file, the time of its last change is part of it, which nobody can set, as that of modification.
    """
    if not isinstance(found, os.stat_result):
        return f"{found.size} {found.token}"
    if os.name == "nt" or not stat.S_ISREG(found.st_mode) or time.time_ns() - found.st_ctime_ns < _SETTLED:
        return None
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"


def read_identified(where: Path | Url) -> tuple[Buffer, str | None]:
    """Return the content of a file, or of an object with the identity of the version that was read."""
    if isinstance(where, Path):
        return read_bytes(where), None
    from vhlo_tools.files import read_object

    data, stamp = read_object(where)
    return data, identity_of(stamp)


def object_url(path: str) -> Url:
    found = place(path)
    assert isinstance(found, Url)
    return found


def hash_at(path: str) -> str | None:
    """Return the SHA-256; ``None`` if the file or object does not exist or cannot be read."""
    with suppress(OSError):
        return digest_of(read_bytes(place(path))).hex()
    return None


# Programs of a store: their files, and what the head of each says

#: The kinds that contain artifacts: they are migrated in place, and have windows.
IN_PLACE: Final = frozenset({Kind.PORTABLE_ARTIFACT, Kind.JAX_EXPORT})

_HEAD: Final = 4096
_SEEN_FROM_HEAD: Final = frozenset({Kind.MLIR_BYTECODE, Kind.MLIR_TEXT, Kind.HLO_TEXT})


@dataclass(frozen=True, slots=True)
class ListedFile:
    path: str  # Path or URL as the user named it, or as found below that; relative to the working directory.
    size: int = 0  # in bytes; 0 if it is unknown
    identity: str | None = None  # as of :func:`identity_of`


def listed_at(path: str, exclude: tuple[str, ...], others: Others = nobody) -> Iterator[ListedFile]:
    """Yield the files that a path selects, in the order of their names, each with its size.

    ``others`` is told of the files of a folder that are no programs.
    """
    where = place(path)
    if isinstance(where, Url):
        # Their listing says how large objects are.
        found = objects_at(where, exclude, others)
        return (ListedFile(str(each.url), each.stamp.size, identity_of(each.stamp)) for each in found)
    return map(_listed, programs_at(path, exclude, others=others))


def _listed(path: str) -> ListedFile:
    try:
        status = os.stat(path)  # noqa: PTH116 - for each file
    except OSError:
        return ListedFile(path)  # whoever reads it says why
    return ListedFile(path, status.st_size, identity_of(status))


def files_of(path: str, exclude: tuple[str, ...], others: Others = nobody) -> Iterator[str]:
    """In no particular order; ``MigrationError`` if the path matches nothing."""
    members = programs_at(path, exclude, ordered=False, others=others)
    first = next(members, None)
    if first is None:
        if os.path.lexists(path) and not Path(path).is_dir():
            yield path  # a dangling link, which is reported as unreadable later
            return
        raise MigrationError(f"{path}: not a file, not a folder with programs, and not a glob that matches a file")
    yield first
    yield from members


def look_at(path: str) -> tuple[Kind | None, Version | None]:
    """Return the kind and the version of a file, by its head if possible; its processing reports any error."""
    with suppress(OSError, VhloToolsError):
        head = _head_of(path)
        with suppress(InvalidProgramError):
            kind = recognise(head, path)
            if kind is Kind.PORTABLE_ARTIFACT:
                version = head.partition(ARTIFACT_PRODUCER)[2].partition(b"\0")[0]
                return kind, Version(version.decode("ascii", "replace"))
            if kind in _SEEN_FROM_HEAD:
                return kind, None
        data = read_bytes(place(path))
        kind = recognise(data, path)
        if kind is not Kind.JAX_EXPORT:
            return kind, None
        # Imported here because few stores have such files.
        from vhlo_tools.artifact import JaxContainer

        return kind, JaxContainer(data, name=path).version
    return None, None


def _head_of(path: str) -> bytes:
    if is_url(path):
        # Imported here because files need none of it.
        from vhlo_tools.files import open_object

        return bytes(view(open_object(object_url(path), head=_HEAD))[:_HEAD])
    with open_regular(Path(path)) as file:
        return file.read(_HEAD)


# Places in stores: bases of relative paths, and destinations of results of a migration

#: The suffix of what a migration writes for a file that it does not replace.
RESULT_SUFFIX: Final = ".mlirbc"


def resolved(path: str) -> str:
    """Resolve all links in a path; a URL stays."""
    return path if is_url(path) else os.path.realpath(path)


def below(folder: str, path: str, base: str) -> str:
    """Return the place in ``folder`` for a file at ``path``, which is in ``base``."""
    relative = relative_to(base, path)
    if is_url(folder):
        return f"{folder.rstrip('/')}/{relative}"
    return os.path.realpath(os.path.join(folder, relative))  # noqa: PTH118


def relative_to(base: str, path: str) -> str:
    """Return a relative path with forward slashes."""
    return path[len(base) :].lstrip("/") if is_url(path) else os.path.relpath(path, base).replace(os.sep, "/")


def result_at(destination: str, kind: Kind | None) -> str:
    """Return the destination of a result; only some kinds of files are replaced."""
    return destination if kind is None or kind in IN_PLACE else str(place(destination).with_suffix(RESULT_SUFFIX))


def result_name(relative: str) -> str:
    """As :func:`result_at`, for the relative path of a file that is not replaced."""
    folder, slash, name = relative.rpartition("/")
    return f"{folder}{slash}{PurePosixPath(name).stem}{RESULT_SUFFIX}"


def is_store(path: str) -> bool:
    """Whether a path stands for many programs: a folder, a prefix of keys, or a glob that is no file's name."""
    where = place(path)
    if isinstance(where, Url):
        from vhlo_tools.files import is_glob, objects_under, stamp_of

        if where.is_prefix:
            return True
        return stamp_of(where) is None and (is_glob(where) or any(objects_under(where.with_key(f"{where.key}/"))))
    if is_saved_model(where):
        return False
    return where.is_dir() or (glob.has_magic(str(where)) and not where.exists())


def base_of(path: str) -> str:
    """Return the folder that files of a path are relative to; for a URL with a final slash, except for a bucket."""
    if is_url(path):
        return _base_of_objects(path)
    if Path(path).is_dir():
        return path
    folder = Path(path).parent
    while glob.has_magic(str(folder)):
        folder = folder.parent
    return str(folder)


def _base_of_objects(path: str) -> str:
    from vhlo_tools.files import glob_start, is_glob, stamp_of

    url = object_url(path)
    if url.is_prefix:
        return str(url)
    if stamp_of(url) is not None:
        return str(url.parent)
    if is_glob(url):
        start = glob_start(url)
        return str(start if start.is_prefix else start.parent)
    return f"{url}/"
