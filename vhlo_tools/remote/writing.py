"""Objects written whole or not at all, and only in place of the version that the writer knew.

A store lets an object appear at once, when all of it is there. The condition, that there is no object or a certain
version of it, is checked by the store at that moment, so that no other writer's object is lost.

A request may be done and its answer lost; repeated, it finds its own object where there must be none. Each write
therefore leaves a mark among the metadata of its object, by which it knows what it wrote.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import ObjectChangedError, StoreError
from vhlo_tools.mapping import slices, view
from vhlo_tools.remote.connections import store_of
from vhlo_tools.remote.failures import ConditionError
from vhlo_tools.remote.store import ANY, NEW, Condition

if TYPE_CHECKING:
    from vhlo_tools.mapping import Chunk
    from vhlo_tools.remote.places import Url
    from vhlo_tools.remote.store import Stamp, Store

#: The name of the mark in the metadata. Azure takes only what is an identifier of C#.
MARK: Final = "vhlowrite"

#: An object of up to this size is written in one request, a longer one in parts of at least this size.
_PART: Final = 1 << 23
#: Parts become twice as long after so many, for stores take ten thousand: in all two terabytes.
_EQUAL: Final = 1000
_LARGEST: Final = 1 << 29

#: Whether the store of a bucket honours the conditions of writes.
_HONOURED: dict[tuple[int, str, str], bool] = {}


def write_object(
    url: Url,
    chunks: Iterable[Chunk],
    *,
    force: bool = False,
    replaces: Stamp | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Stamp:
    """Write an object, which appears complete or not at all; it keeps the media type and metadata of the old one.

    Chunks are not held together in memory. If ``replaces`` is given, nothing is written over another version. Names of
    ``metadata`` have lower-case letters.
    """
    store = store_of(url.as_object())
    condition = Condition(replaces.token) if replaces else ANY if force else NEW
    # Who has read an object knows what a write keeps of it: then the store alone looks whether it is still there.
    old = replaces if replaces and replaces.kept else _old(store, url, condition)
    if not condition.always:
        _require_conditions(store, url, condition)
    mark = os.urandom(16).hex()
    try:
        return _write(store, url, _parts(chunks), condition, {**(metadata or {}), MARK: mark}, old)
    except (ConditionError, FileNotFoundError) as error:
        if isinstance(error, FileNotFoundError) and condition.token is None:
            raise
        with suppress(FileNotFoundError):
            there = store.stamp(url)
            if metadata_of(there).get(MARK) == mark:
                return there
        raise _refusal(url, condition) from None


def delete_object(url: Url, *, replaces: Stamp | None = None) -> None:
    """Delete an object, if it is there; with ``replaces``, only that version."""
    condition = Condition(replaces.token) if replaces else ANY
    try:
        store_of(url.as_object()).delete(url, condition)
    except ConditionError:
        raise _refusal(url, condition) from None


def _old(store: Store, url: Url, condition: Condition) -> Stamp | None:
    """Return the object that is there, after a first check of the condition: before anything is sent."""
    try:
        old = store.stamp(url)
    except FileNotFoundError:
        old = None
    if not condition.always and (old and old.token) != condition.token:
        raise _refusal(url, condition)
    return old


def _refusal(url: Url, condition: Condition) -> Exception:
    if condition.token is None:
        return FileExistsError(errno.EEXIST, "the object exists: force (--force) replaces it", str(url))
    return ObjectChangedError(f"{url} was replaced or deleted after it was read: nothing was written; read it again")


def _write(
    store: Store,
    url: Url,
    parts: Iterator[bytes],
    condition: Condition,
    metadata: Mapping[str, str],
    old: Stamp | None,
) -> Stamp:
    first = next(parts, b"")
    second = next(parts, None)
    if second is None:
        return store.put(url, first, condition, metadata, old)
    if not condition.always:
        # Before gigabytes are sent.
        _old(store, url, condition)
    upload = store.upload(url, condition, metadata, old)
    try:
        upload.add(first)
        upload.add(second)
        for part in parts:
            upload.add(part)
        if not condition.always:
            # Minutes may have passed. The store looks too, if it knows how.
            _old(store, url, condition)
        return upload.finish()
    except BaseException:
        with suppress(StoreError, FileNotFoundError):
            upload.abort()
        raise


def _parts(chunks: Iterable[Chunk]) -> Iterator[bytes]:
    """Yield the bytes in equal parts; only the last may be shorter, and only the only one empty."""
    number, size = 0, _PART
    waiting = bytearray()
    for chunk in chunks:
        for piece in slices(view(chunk)):
            waiting += piece
            while len(waiting) >= size:
                yield bytes(memoryview(waiting)[:size])
                del waiting[:size]
                number += 1
                size = min(_PART << number // _EQUAL, _LARGEST)
    if waiting:
        yield bytes(waiting)


def metadata_of(stamp: Stamp) -> Mapping[str, str]:
    """Return the metadata with lower-case names; a stamp of a listing has none."""
    # Servers and proxies write the names of headers as they like.
    return {name.lower(): value for name, value in (stamp.kept.get("metadata") or {}).items()}


def _require_conditions(store: Store, url: Url, condition: Condition) -> None:
    """Refuse to replace a version in a store that would replace any; warn where there was no object."""
    if store.is_conditional if store.is_conditional is not None else _honours(store, url):
        return
    if condition.token is not None:
        raise StoreError(
            f"{url}: the store ignores the conditions of writes (If-Match), so that another writer's object could be "
            "lost: "
            f"use a store that knows them, or copy the objects to this machine first"
        )
    logging.getLogger("vhlo_tools").warning(
        "vhlo: %s: the store ignores the conditions of writes: an object that another writer puts there at the same "
        "moment would be replaced",
        url,
    )


def _honours(store: Store, url: Url) -> bool:
    """Test, once for each bucket, whether a store refuses to replace an object that does not exist."""
    key = (os.getpid(), url.scheme, f"{url.bucket}@{url.account}")
    if key not in _HONOURED:
        trial = url.parent / f".vhlo-trial-{os.urandom(8).hex()}"
        try:
            # Not of zeros: for Google, generation 0 is that of no object.
            store.put(trial, b"", Condition("1" * 18), {}, None)
        except (ConditionError, FileNotFoundError):
            _HONOURED[key] = True
        else:
            store.delete(trial)
            _HONOURED[key] = False
    return _HONOURED[key]
