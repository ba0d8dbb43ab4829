"""Results of a migration as objects, which record their origin in their metadata.

A store lets an object appear whole, in place of the version that was read and of no other. So a migration needs neither
temporary objects nor a note before each write: an object at the target that names the migration was moved by it, even
if its writer could not report that any more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from vhlo_tools.files import Buffer, Chunk, slices, view
from vhlo_tools.stores import Stamp, hash_at, object_url

if TYPE_CHECKING:
    from vhlo_tools.files import Stamp as ObjectStamp

#: The names in the metadata for the key of the migration, and for the SHA-256 of what was replaced. Azure takes only
#: what is an identifier of C#.
MIGRATION: Final = "vhlomigration"
BEFORE: Final = "vhlobefore"


class ObjectResult:
    """A result that is written as an object."""

    def __init__(self, destination: str, chunks: Sequence[Chunk], metadata: Mapping[str, str]) -> None:
        self._url = object_url(destination)
        self._chunks = chunks
        self._metadata = metadata
        self.size: int = 0
        self.digest: str | None = None

    def write(self, replaces: ObjectStamp | None, *, force: bool) -> Stamp:
        """``replaces`` is ``None`` beside the source; only then may ``force`` replace any object.

        On an error nothing is left behind; ``ObjectChangedError`` means that there is another version.
        """
        from vhlo_tools.files import write_object

        written = write_object(
            self._url, self._hashed(), force=force and replaces is None, replaces=replaces, metadata=self._metadata
        )
        return Stamp.of_object(written)

    def digest_of_chunks(self) -> str | None:
        """Return the SHA-256 of the bytes, which need not have been written."""
        for _ in self._hashed():
            pass
        return self.digest

    def _hashed(self) -> Iterator[Chunk]:
        # As they go, because reading constants of gigabytes once more takes as long as writing them.
        digest = hashlib.sha256()
        self.size = 0
        for chunk in self._chunks:
            for piece in slices(view(chunk)):
                digest.update(piece)
                self.size += len(piece)
                yield piece
        self.digest = digest.hexdigest()


def digest_before(url: str, version: ObjectStamp, key: str) -> str | None:
    """Return the SHA-256 of the object's predecessor, if this migration (``key``) has written it."""
    from vhlo_tools.files import metadata_of, stamp_of

    if not version.kept:
        # Google's store says nothing of an object with its bytes.
        there = stamp_of(object_url(url))
        version = there if there is not None and there.token == version.token else version
    said = metadata_of(version)
    return (said.get(BEFORE) or None) if said.get(MIGRATION) == key else None


def digest_of_source(url: str, key: str) -> str | None:
    """Return the SHA-256 of the object's source, if this migration (``key``) has written it."""
    from vhlo_tools.files import stamp_of

    there = stamp_of(object_url(url))
    return digest_before(url, there, key) if there else None


def keep_object(backup: str, data: Buffer) -> None:
    """Write the bytes of an old object under another name; they may be there already."""
    result = ObjectResult(backup, [view(data)], {})
    try:
        result.write(None, force=False)
    except FileExistsError:
        if hash_at(backup) != result.digest_of_chunks():
            raise
