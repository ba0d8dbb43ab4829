"""Objects read on access: in ranges of one version, of which some are kept."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import MalformedArtifactError, ObjectChangedError
from vhlo_tools.mapping import FileRange
from vhlo_tools.remote.connections import store_of
from vhlo_tools.remote.failures import ConditionError

if TYPE_CHECKING:
    from vhlo_tools.remote.places import Url
    from vhlo_tools.remote.store import Stamp, Store

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
    return FileRange(RemoteObject(store, url, stamp, data), 0, stamp.size), stamp


def stamp_of(url: Url) -> Stamp | None:
    if url.is_prefix:
        return None
    try:
        return store_of(url).stamp(url)
    except FileNotFoundError:
        return None


class RemoteObject:
    """One version of an object behind a URL: a :class:`~vhlo_tools.mapping.RangeSource`; ``head`` is its beginning."""

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
        """Return exactly ``size`` bytes."""
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
        if len(found) != size:
            raise MalformedArtifactError(
                f"{self.name}: the store sent {len(found)} bytes of {size}; it may decompress objects as it sends them",
                offset=start,
            )
        return found


def _cut(piece: bytes, size: int) -> Iterator[memoryview]:
    whole = memoryview(piece)
    return (whole[at : at + size] for at in range(0, len(whole), size))
