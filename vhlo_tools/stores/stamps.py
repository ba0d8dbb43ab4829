"""The identity of what a file or an object holds, by which a change by somebody else is noticed."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from vhlo_tools.formats import read_bytes
from vhlo_tools.mapping import digest_of
from vhlo_tools.records import dataclass
from vhlo_tools.remote import Url, is_url, place

if TYPE_CHECKING:
    from vhlo_tools.remote import Stamp as ObjectStamp


@dataclass(frozen=True, slots=True)
class Stamp:
    """The identity of a file's content: size, modification time and inode; that of an object: size and token.

    Attributes:
        size: The size in bytes.
        modified: The modification time in nanoseconds.
        inode: The inode number.
        token: What a store compares in conditional requests: an ETag, or a generation.
    """

    size: int
    modified: int = 0
    inode: int = 0
    token: str | None = None

    @classmethod
    def of(cls, path: str) -> Self:
        """Return the stamp of a file or an object.

        Raises:
            OSError: If it does not exist.
        """
        if is_url(path):
            from vhlo_tools.remote import stamp_of

            found = stamp_of(object_url(path))
            if found is None:
                raise FileNotFoundError(errno.ENOENT, "there is no such object", path)
            return cls.of_object(found)
        status = os.stat(path)  # noqa: PTH116 - for each file, several times
        return cls(status.st_size, status.st_mtime_ns, status.st_ino)

    @classmethod
    def of_object(cls, stamp: ObjectStamp) -> Self:
        """Return the stamp of an object, as its store describes it."""
        return cls(stamp.size, token=stamp.token)


def object_url(path: str) -> Url:
    """Return the URL of an object, of which ``path`` is the text."""
    found = place(path)
    assert isinstance(found, Url)
    return found


def hash_at(path: str) -> str | None:
    """Return the SHA-256 of a file or an object, or ``None`` if it does not exist or cannot be read."""
    with suppress(OSError):
        return digest_of(read_bytes(place(path))).hex()
    return None
