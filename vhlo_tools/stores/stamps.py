"""Identity of the content of a file or an object, by which a change by somebody else is noticed."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from vhlo_tools.files import Url, digest_of, is_url, place, read_bytes
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.files import Stamp as ObjectStamp


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


def object_url(path: str) -> Url:
    found = place(path)
    assert isinstance(found, Url)
    return found


def hash_at(path: str) -> str | None:
    """Return the SHA-256; ``None`` if the file or object does not exist or cannot be read."""
    with suppress(OSError):
        return digest_of(read_bytes(place(path))).hex()
    return None
