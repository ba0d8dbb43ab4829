"""Objects behind URLs: read in ranges of one version, written whole or not at all, listed page by page."""

from __future__ import annotations

import errno
import logging
import os
import re
import time
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import MalformedArtifactError, ObjectChangedError, StoreError
from vhlo_tools.files.connections import ANY, NEW, Condition, ConditionError, store_of
from vhlo_tools.files.mapping import FileRange, slices, view

if TYPE_CHECKING:
    from vhlo_tools.files.connections import Listed, Stamp, Store
    from vhlo_tools.files.mapping import Chunk
    from vhlo_tools.files.urls import Url

# Objects read on access: in ranges of one version, of which some are kept

#: What is read first, which is all of most programs.
_HEAD: Final = 1 << 18
#: What is read at a new place, such as the head of the next constant of gigabytes, of which there may be a thousand. It
#: grows while reading goes on there.
_JUMP: Final = 1 << 10
_GROWTH: Final = 4
_LONGEST: Final = 1 << 20
#: The bytes that are kept of an object.
_KEPT: Final = 1 << 24
#: The pieces in which constants go through this process, and how many of them are on their way.
_PIECE: Final = 1 << 23
_AHEAD: Final = 3


def open_object(url: Url, *, head: int = _HEAD) -> bytes | FileRange:
    """Return the contents of the present version, read on access if longer than ``head`` bytes."""
    return read_object(url, head=head)[0]


def read_object(url: Url, *, head: int = _HEAD) -> tuple[bytes | FileRange, Stamp]:
    """Like :func:`open_object`, but also return the version."""
    store = store_of(url)
    data, stamp = store.read(url.as_object(), 0, head, None)
    if len(data) == stamp.size:
        return data, stamp
    if data:
        _require_all(str(url), data, 0, min(head, stamp.size))
    return FileRange(RemoteObject(store, url, stamp, data), 0, stamp.size), stamp


def stamp_of(url: Url) -> Stamp | None:
    if url.is_prefix:
        return None
    try:
        return store_of(url).stamp(url)
    except FileNotFoundError:
        return None


class RemoteObject:
    """One version of an object behind a URL, a :class:`.mapping.RangeSource`; ``head`` is its beginning."""

    def __init__(self, store: Store, url: Url, stamp: Stamp, head: bytes = b"") -> None:
        self._store = store
        self._url = url
        self._token = stamp.token
        self.name: str = str(url)
        self.size: int = stamp.size
        self._lock = Lock()
        # The ranges that are kept by their offsets, the oldest first; the offsets in order; and the range used last.
        self._ranges: dict[int, bytes] = {}
        self._starts: list[int] = []
        self._size_kept = 0
        self._last = (0, b"")
        self._keep(0, head)

    def read(self, start: int, size: int) -> bytes:
        if size <= _LONGEST:
            return bytes(self.near(start, start + size))
        return b"".join(self.pieces(start, start + size, _PIECE))

    def near(self, start: int, stop: int) -> memoryview:
        """Return a short range, from the kept ones if possible."""
        base, found = self._last
        if not base <= start <= stop <= base + len(found):
            base, found = self._range_at(start)
            if stop > base + len(found):
                # More than the range that ends here, if there is one: somebody reads on.
                before = len(found) if start <= base + len(found) else 0
                size = max(stop - start, min(max(_JUMP, _GROWTH * before), _LONGEST))
                base, found = start, self._fetch(start, min(size, self.size - start))
                self._keep(base, found)
            self._last = (base, found)
        return memoryview(found)[start - base : stop - base]

    def _range_at(self, start: int) -> tuple[int, bytes]:
        """Return the kept range that begins last before an offset, or at it."""
        with self._lock:
            index = bisect_right(self._starts, start) - 1
            return (self._starts[index], self._ranges[self._starts[index]]) if index >= 0 else (0, b"")

    def _keep(self, start: int, found: bytes) -> None:
        with self._lock:
            self._forget(start)
            self._ranges[start] = found
            insort(self._starts, start)
            self._size_kept += len(found)
            while self._size_kept > _KEPT and len(self._ranges) > 1:
                self._forget(next(iter(self._ranges)))

    def _forget(self, start: int) -> None:
        found = self._ranges.pop(start, None)
        if found is not None:
            self._starts.remove(start)
            self._size_kept -= len(found)

    def pieces(self, start: int, stop: int, size: int) -> Iterator[bytes | memoryview]:
        """Yield a range in pieces; some are read ahead."""
        step = max(_PIECE // size, 1) * size
        if stop - start <= _LONGEST:
            whole = self.near(start, stop)
            yield from (whole[at : at + size] for at in range(0, len(whole), size))
            return
        waiting: deque[Future[bytes]] = deque()
        pool = ThreadPoolExecutor(_AHEAD, thread_name_prefix="vhlo-read")
        try:
            for at in range(start, stop, step):
                waiting.append(pool.submit(self._fetch, at, min(step, stop - at)))
                if len(waiting) >= _AHEAD:
                    yield from _cut(waiting.popleft().result(), size)
            while waiting:
                yield from _cut(waiting.popleft().result(), size)
        finally:
            pool.shutdown(cancel_futures=True)

    def copy_to(self, start: int, size: int, out: int) -> int:
        """No kernel copies objects."""
        return 0

    def _fetch(self, start: int, size: int) -> bytes:
        try:
            found, _ = self._store.read(self._url, start, size, self._token)
        except (ConditionError, FileNotFoundError):
            raise ObjectChangedError(
                f"{self.name} was replaced or deleted while it was read: read it again once nobody writes it"
            ) from None
        _require_all(self.name, found, start, size)
        return found


def _require_all(name: str, found: bytes, start: int, size: int) -> None:
    if len(found) != size:
        raise MalformedArtifactError(
            f"{name}: the store sent {len(found)} bytes of {size}; it may decompress objects as it sends them",
            offset=start,
        )


def _cut(piece: bytes, size: int) -> Iterator[memoryview]:
    whole = memoryview(piece)
    return (whole[at : at + size] for at in range(0, len(whole), size))


# Objects written whole or not at all, and only in place of the version that the writer knew
#
# A store lets an object appear at once, when all of it is there. The condition, that there is no object or a certain
# version of it, is checked by the store at that moment, so that no other writer's object is lost.
#
# A request may be done and its answer lost; repeated, it finds its own object where there must be none. Each write
# therefore leaves a mark among the metadata of its object, by which it knows what it wrote.

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
    store: Store, url: Url, parts: Iterator[bytes], condition: Condition, metadata: Mapping[str, str], old: Stamp | None
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


# Listings of objects, page by page: a prefix or a glob of millions of objects is never held as a whole

_MAGIC: Final = re.compile(r"[*?\[]")


#: The pages of a listing, of a thousand objects each, and the seconds that one waits for all of them.
_PAGES: Final = 10_000
_LISTING: Final = 3600


def objects_under(prefix: Url) -> Iterator[list[Listed]]:
    """Yield objects page by page, as the store lists them at that moment; folder markers are left out."""
    before: list[Listed] = []
    waited = 0.0
    pages = store_of(prefix).pages(prefix)
    for _ in range(_PAGES):
        asked = time.monotonic()
        if (page := next(pages, None)) is None:
            return
        waited += time.monotonic() - asked
        if waited > _LISTING:
            raise StoreError(f"{prefix}: the store has listed objects for an hour: name folders of it")
        if page and page == before:
            raise StoreError(f"{prefix}: the store lists the same objects again and again: check the endpoint")
        if not all(each.url.key.startswith(prefix.key) for each in page):
            raise StoreError(f"{prefix}: the store lists objects whose keys do not begin so: check the endpoint")
        # Consoles write an empty object for a folder.
        yield [each for each in page if not each.url.is_prefix]
        before = page
    raise StoreError(f"{prefix}: there are more than {_PAGES:,} pages of objects: name folders of it")


def is_glob(url: Url) -> bool:
    """Whether the key of a URL can be a glob."""
    return _MAGIC.search(url.key) is not None


def glob_start(url: Url) -> Url:
    """Return the prefix of everything that a glob can match."""
    found = _MAGIC.search(url.key)
    return url if found is None else url.with_key(url.key[: found.start()])


def matcher(glob: str) -> re.Pattern[str]:
    """Return an expression for the keys, or the paths with forward slashes, that a glob selects.

    As in :mod:`glob`: ``*`` and ``?`` match neither slashes nor a dot that begins a name, ``**`` is any number of
    folders.
    """
    parts = glob.split("/")
    last = len(parts) - 1
    text = ""
    for index, part in enumerate(parts):
        if part == "**":
            text += r"(?:[^/.][^/]*/)*" if index < last else r"(?:[^/.][^/]*/)*[^/.][^/]*"
        else:
            text += _part(part) + ("/" if index < last else "")
    return re.compile(text, re.DOTALL)


def _part(part: str) -> str:
    """Return the expression for the text between two slashes of a glob."""
    text = r"(?!\.)" if part[:1] in ("*", "?", "[") else ""
    at = 0
    while at < len(part):
        sign = part[at]
        end = part.find("]", at + 2 + (part[at + 1 : at + 2] == "!")) if sign == "[" else -1
        if sign == "*":
            text += "[^/]*"
        elif sign == "?":
            text += "[^/]"
        elif end > 0:
            inside = part[at + 1 : end]
            negated = inside.startswith("!")
            chosen = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside[negated:])
            text += f"(?!/)[{'^' if negated else ''}{chosen}]"
            at = end
        else:
            text += re.escape(sign)
        at += 1
    return text
