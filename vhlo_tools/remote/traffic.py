"""Counts of requests and bytes between this process and stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from vhlo_tools.records import dataclass
from vhlo_tools.system import after_fork


@dataclass(slots=True)
class Traffic:
    """Requests and bytes of objects; requests that a library repeated count once."""

    requests: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


_LOCK = Lock()
_COUNTING: list[Traffic] = []


@contextmanager
def counted() -> Iterator[Traffic]:
    """Yield a counter of the requests of all threads of this process, until the block is left.

    >>> from vhlo_tools.remote import counted
    >>> with counted() as traffic:
    ...     pass
    >>> traffic
    Traffic(requests=0, bytes_read=0, bytes_written=0)
    """
    traffic = Traffic()
    with _LOCK:
        _COUNTING.append(traffic)
    try:
        yield traffic
    finally:
        with _LOCK:
            # By identity: two counters may be equal.
            _COUNTING[:] = [each for each in _COUNTING if each is not traffic]


def _after_fork() -> None:
    global _LOCK
    # Another thread of the parent may have held it.
    _LOCK = Lock()


after_fork(_after_fork)


def count(*, read: int = 0, written: int = 0) -> None:
    with _LOCK:
        for each in _COUNTING:
            each.requests += 1
            each.bytes_read += read
            each.bytes_written += written
