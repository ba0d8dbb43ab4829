"""Contents of programs, read and hashed ahead of their use."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Final

from vhlo_tools.errors import VhloToolsError
from vhlo_tools.files import Buffer, FileRange, Url, digest_of, is_saved_model, is_url, place, read_bytes
from vhlo_tools.gate.examination import Content, os_message
from vhlo_tools.stores import ListedFile, read_identified

# Digests of the contents of programs, independent of names and dates


def digest_at(where: Path | Url) -> bytes:
    """Return SHA-256 of a file or an object; for a SavedModel, of the names and contents of its files."""
    if isinstance(where, Url) or not is_saved_model(where):
        return digest_of(read_bytes(where))

    def refuse(error: OSError) -> None:
        raise error

    names = [
        os.path.relpath(os.path.join(folder, name), where)  # noqa: PTH118
        for folder, _, found in os.walk(where, onerror=refuse)
        for name in found
    ]
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(os.fsencode(name) + b"\0" + digest_of(read_bytes(where / name)))
    return digest.digest()


# Read and hash files ahead of their use
#
# Hashing releases the lock of Python's interpreter, so threads suffice; a file of usual size is read once.

#: The most threads: two hash on two cores while two wait for the disk.
_THREADS: Final = 4
#: The files that a thread reads at once: to hand over a small one takes as long as to hash it.
_TOGETHER: Final = 8
#: The number of times as many that are read before they are needed.
_AHEAD: Final = 8
#: Larger files are read again when they are examined, so that the files read ahead fit in 64 MiB.
_KEPT: Final = 1 << 20


#: Reads what stands for a path; ``None`` if that is the file of this name.
ReadOther = Callable[[str], Buffer | None]


def read_ahead(
    files: Iterable[ListedFile], read: ReadOther, is_known: Callable[[ListedFile], bool]
) -> Iterator[Content]:
    """Yield contents in order; ``read`` returns what is not a file, such as standard input, in this thread.

    Objects whose version ``is_known`` are not read. Files are: their content says more than their times.
    """
    waiting: deque[Future[list[Content]]] = deque()
    with ThreadPoolExecutor(min(_THREADS, 2 * (os.cpu_count() or 1))) as threads:
        try:
            left = iter(files)
            while some := [_ahead(file, read, is_known) for file in islice(left, _TOGETHER)]:
                waiting.append(threads.submit(lambda some: [_read(each) for each in some], some))
                if len(waiting) > _AHEAD:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


#: A content that is known already; or its path, what stands for it, and the reason why that could not be read.
_Ahead = Content | tuple[str, Buffer | None, Exception | None]


def _ahead(file: ListedFile, read: ReadOther, is_known: Callable[[ListedFile], bool]) -> _Ahead:
    if file.identity is not None and is_url(file.path) and is_known(file):
        return Content(file.path, size=file.size, identity=file.identity)
    return file.path, *_given(file.path, read)


def _read(ahead: _Ahead) -> Content:
    return ahead if isinstance(ahead, Content) else _content(*ahead)


def unread(files: Iterable[ListedFile], read: ReadOther) -> Iterator[Content]:
    """Yield files that other processes read; contents are set only where those processes cannot read."""
    for file in files:
        given, error = _given(file.path, read)
        # Only this process has objects of memory://.
        where = place(file.path) if error is None and given is None and is_url(file.path) else None
        if isinstance(where, Url) and where.kind == "memory":
            given, error = _given(file.path, lambda path: read_bytes(place(path)))
        if error is not None or given is not None:
            yield _content(file.path, given, error)
        else:
            yield Content(file.path, size=file.size, identity=file.identity)


def _given(path: str, read: ReadOther) -> tuple[Buffer | None, Exception | None]:
    # Not in a thread: whoever interrupts a read of standard input need not wait for its end.
    try:
        return read(path), None
    except (VhloToolsError, OSError) as error:
        return None, error


def _content(path: str, given: Buffer | None, error: Exception | None) -> Content:
    try:
        if error is not None:
            raise error
        if given is not None:
            return Content(path, given, digest_of(given), detached=True)
        where = place(path)
        if isinstance(where, Path) and is_saved_model(where):
            return Content(path, digest=digest_at(where))
        data, identity = read_identified(where)
        if isinstance(where, Url) and isinstance(data, FileRange):
            # Of a large object only the tables are read, where they are needed.
            return Content(path)
        return Content(path, data if len(data) <= _KEPT else None, digest_of(data), identity=identity)
    except VhloToolsError as problem:
        return Content(path, error=str(problem))
    except OSError as problem:
        return Content(path, error=os_message(path, problem))
