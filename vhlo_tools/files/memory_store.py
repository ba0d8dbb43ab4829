"""Objects of this process: ``memory://``, which fsspec shares within a process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

from vhlo_tools.files.connections import ANY, ConditionError, Failure, Listed, Stamp, as_error, count

if TYPE_CHECKING:
    from vhlo_tools.files.connections import Condition
    from vhlo_tools.files.urls import Url

#: The objects of a page of a listing.
_PAGE: Final = 1000
_WRITING = Lock()


class MemoryStore:
    is_conditional = True

    def __init__(self, url: Url) -> None:
        self._files: dict[str, Any] = MemoryFileSystem.store

    def stamp(self, url: Url) -> Stamp:
        count()
        return _stamp(self._found(url))

    def read(self, url: Url, start: int, size: int, token: str | None) -> tuple[bytes, Stamp]:
        while True:
            file = self._found(url)
            before = _stamp(file)
            if token not in (None, before.token):
                raise ConditionError(f"{url}: the condition does not hold")
            found = bytes(file.getbuffer()[start : start + size])
            # It may have been written while it was copied, or be another object now.
            if _stamp(self._found(url)) == before:
                break
        count(read=len(found))
        return found, before

    def pages(self, prefix: Url) -> Iterator[list[Listed]]:
        names = sorted(name for name in tuple(self._files) if name.startswith(f"/{prefix.key}"))
        for at in range(0, len(names), _PAGE):
            count()
            found = ((name, self._files.get(name)) for name in names[at : at + _PAGE])
            yield [Listed(prefix.with_key(name[1:]), _stamp(file)) for name, file in found if file is not None]

    def put(self, url: Url, data: bytes, condition: Condition, metadata: Mapping[str, str], old: Stamp | None) -> Stamp:
        with _WRITING:
            self._require(url, condition)
            count(written=len(data))
            # As a file of fsspec's own, whose readers expect one.
            made = MemoryFile(MemoryFileSystem(), f"/{url.key}", data)
            # It has no metadata, but takes any attribute.
            made.vhlo_metadata = {**(old.kept.get("metadata", {}) if old else {}), **metadata}
            made.commit()
            return _stamp(made)

    def upload(self, url: Url, condition: Condition, metadata: Mapping[str, str], old: Stamp | None) -> _Upload:
        return _Upload(self, url, condition, metadata, old)

    def delete(self, url: Url, condition: Condition = ANY) -> None:
        with _WRITING:
            self._require(url, condition)
            count()
            self._files.pop(f"/{url.key}", None)

    def close(self) -> None:
        """There is no connection."""

    def _found(self, url: Url) -> Any:
        try:
            return self._files[f"/{url.key}"]
        except KeyError:
            raise as_error(Failure("memory", None, "NoSuchKey"), url) from None

    def _require(self, url: Url, condition: Condition) -> None:
        there = self._files.get(f"/{url.key}")
        if not condition.always and (None if there is None else _stamp(there).token) != condition.token:
            raise ConditionError(f"{url}: the condition does not hold")


class _Upload:
    """An object whose parts are collected."""

    def __init__(
        self, store: MemoryStore, url: Url, condition: Condition, metadata: Mapping[str, str], old: Stamp | None
    ) -> None:
        self._store, self._url, self._condition = store, url, condition
        self._metadata, self._old = metadata, old
        self._parts: list[bytes] = []

    def add(self, part: bytes) -> None:
        self._parts.append(part)

    def finish(self) -> Stamp:
        return self._store.put(self._url, b"".join(self._parts), self._condition, self._metadata, self._old)

    def abort(self) -> None:
        self._parts.clear()


def _stamp(file: Any) -> Stamp:
    size = file.getbuffer().nbytes
    # A file that is written again is another object in memory, made at another time.
    modified = file.modified.timestamp()
    kept = {"metadata": getattr(file, "vhlo_metadata", {})}
    return Stamp(size, f"{id(file):x}-{modified}-{size}", modified=modified, kept=kept)
