"""Batches of files, limited in number and in bytes: what a process gets, and loses, at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from vhlo_tools.executors.workers import Workers

_T = TypeVar("_T")

#: The most files of a batch.
LARGEST_BATCH: Final = 32
#: The bytes with which a batch is complete.
_BYTES: Final = 4 << 20
#: So many batches per process are made of a small number of files.
_SHARES: Final = 4


def in_batches(
    items: Iterable[_T], workers: Workers, *, size_of: Callable[[_T], int], found: Callable[[], int]
) -> Iterator[list[_T]]:
    """Yield items in batches; a small number of files is distributed over all processes too.

    ``found`` returns how many items were found so far, because items may come in while the first batches are worked on.
    """
    batch: list[_T] = []
    size = 0
    for item in items:
        batch.append(item)
        size += size_of(item)
        most = max(1, min(LARGEST_BATCH, found() // (workers.count * _SHARES)))
        if len(batch) >= most or size >= _BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
