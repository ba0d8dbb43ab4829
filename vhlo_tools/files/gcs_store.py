"""Objects of Google Cloud Storage, by gcsfs."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from fsspec.asyn import sync
from gcsfs.core import GCSFileSystem

from vhlo_tools.documents import read_json
from vhlo_tools.errors import StoreError
from vhlo_tools.files.answers import BOUNDED, bounded
from vhlo_tools.files.connections import (
    ANY,
    CLOSING,
    Body,
    EmptyRangeError,
    Failure,
    Listed,
    Stamp,
    as_error,
    count,
    understood,
    whole_size,
)

if TYPE_CHECKING:
    from vhlo_tools.files.connections import Condition
    from vhlo_tools.files.urls import Url

_PAGE: Final = 1000
#: What a listing and a look at an object ask for.
_FIELDS: Final = "name,size,generation,updated"
#: What a new version of an object keeps of the old one.
_KEPT: Final = ("cacheControl", "contentDisposition", "contentEncoding", "contentLanguage", "contentType", "metadata")
_TYPE: Final = "application/octet-stream"
#: The seconds that one try may take: gcsfs repeats it.
_TIMEOUT: Final = 60
#: Bodies in parts but for the last have a multiple of this size.
_UNIT: Final = 1 << 18
#: How often a part is sent of which the store takes less than all.
_ROUNDS: Final = 100

# gcsfs logs each error with a traceback that it raises as well, which without logging would be printed.
logging.getLogger("gcsfs").addHandler(logging.NullHandler())


class GcsStore:
    def __init__(self, url: Url) -> None:
        self._files = GCSFileSystem(
            use_listings_cache=False,
            skip_instance_cache=True,
            requests_timeout=_TIMEOUT,
            session_kwargs={"response_class": BOUNDED},
        )

    @property
    def is_conditional(self) -> bool | None:
        """Only Google's own service is known to honour the conditions of writes."""
        return True if self._files._location.endswith(".googleapis.com") else None

    @understood
    def stamp(self, url: Url) -> Stamp:
        count()
        return _stamp(read_json(self._call("GET", self._object(url), url)[1]))

    @understood
    def read(self, url: Url, start: int, size: int, token: str | None) -> tuple[bytes, Stamp]:
        condition = {"ifGenerationMatch": token} if token else {}
        # Without an encoding, a store that keeps an object compressed would decompress all of it.
        head = {"Range": f"bytes={start}-{start + size - 1}", "Accept-Encoding": "gzip"}
        address = f"{self._files._location}/download/storage/v1/{_path(url)}"

        async def call() -> Any:
            return await self._files._call("GET", address, headers=head, alt="media", **condition)

        try:
            headers, data = self._run(url, call, wanted=size)
        except EmptyRangeError:
            return b"", self.stamp(url)
        count(read=len(data))
        whole = whole_size(headers.get("Content-Range"), start, data)
        generation = headers.get("X-Goog-Generation")
        if generation is None:
            # An emulator: the object may have been replaced between the two requests.
            found = self.stamp(url)
            if token not in (None, found.token):
                raise as_error(Failure("gcs", 412, ""), url)
            return data, found
        return data, Stamp(whole, generation, generation)

    def pages(self, prefix: Url) -> Iterator[list[Listed]]:
        more: dict[str, str] | None = {}
        while more is not None:
            page, more = self._page(prefix, more)
            yield page

    @understood
    def _page(self, prefix: Url, more: dict[str, str]) -> tuple[list[Listed], dict[str, str] | None]:
        count()
        address = f"{self._files.base}b/{quote(prefix.bucket, safe='')}/o"
        asked = {"prefix": prefix.key, "maxResults": _PAGE, "fields": f"nextPageToken,items({_FIELDS})"}
        page = read_json(self._call("GET", address, prefix, **asked, **more)[1])
        found = [Listed(prefix.with_key(each["name"]), _stamp(each)) for each in page.get("items", ())]
        return found, {"pageToken": page["nextPageToken"]} if page.get("nextPageToken") else None

    @understood
    def put(self, url: Url, data: bytes, condition: Condition, metadata: Mapping[str, str], old: Stamp | None) -> Stamp:
        border = os.urandom(16).hex()
        described = json.dumps(_properties(url, metadata, old))
        lines = f"--{border}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{described}\r\n"
        lines += f"--{border}\r\nContent-Type: {_TYPE}\r\n\r\n"
        _, answer = self._call(
            "POST",
            self._uploads(url),
            url,
            uploadType="multipart",
            headers={"Content-Type": f"multipart/related; boundary={border}"},
            data=Body(lines.encode() + data + f"\r\n--{border}--\r\n".encode()),
            **_conditions(condition),
        )
        count(written=len(data))
        return _stamp(read_json(answer))

    @understood
    def upload(self, url: Url, condition: Condition, metadata: Mapping[str, str], old: Stamp | None) -> _Upload:
        count()
        headers, _ = self._call(
            "POST",
            self._uploads(url),
            url,
            uploadType="resumable",
            json=_properties(url, metadata, old),
            **_conditions(condition),
        )
        return _Upload(self, url, headers["Location"])

    def delete(self, url: Url, condition: Condition = ANY) -> None:
        count()
        try:
            self._call("DELETE", self._object(url), url, **_conditions(condition))
        except FileNotFoundError:
            return

    def close(self) -> None:
        if self._files._session is not None:
            sync(self._files.loop, self._files._session.close, timeout=CLOSING)

    def _object(self, url: Url) -> str:
        return f"{self._files.base}{_path(url)}"

    def _uploads(self, url: Url) -> str:
        return f"{self._files._location}/upload/storage/v1/b/{quote(url.bucket, safe='')}/o"

    def _call(self, method: str, address: str, url: Url, **arguments: Any) -> tuple[Any, bytes]:
        async def call() -> Any:
            return await self._files._call(method, address, **arguments)

        sent = len(arguments["data"].getbuffer()) if "data" in arguments else 0
        return self._run(url, call, sent=sent)  # type: ignore[no-any-return]

    def _run(self, url: Url, work: Callable[[], Coroutine[Any, Any, Any]], **sizes: int) -> Any:
        try:
            return sync(self._files.loop, bounded, work, **sizes)
        except Exception as error:
            raise _as_error(error, url) from error


class _Upload:
    """A resumable upload, whose parts go one after the other."""

    def __init__(self, store: GcsStore, url: Url, address: str) -> None:
        self._store, self._url, self._address = store, url, address
        self._waiting = b""
        self._size = 0

    @understood
    def add(self, part: bytes) -> None:
        whole = self._waiting + part
        # The last part is sent with the end.
        cut = (len(whole) - 1) // _UNIT * _UNIT
        self._waiting = whole[cut:]
        if cut:
            self._send(whole[:cut], "*")

    @understood
    def finish(self) -> Stamp:
        return _stamp(read_json(self._send(self._waiting, str(self._size + len(self._waiting)))))

    def abort(self) -> None:
        count()
        self._store._call("DELETE", self._address, self._url)

    def _send(self, data: bytes, total: str) -> bytes:
        for _ in range(_ROUNDS):
            last = f"{self._size}-{self._size + len(data) - 1}" if data else "*"
            head = {"Content-Range": f"bytes {last}/{total}", "Content-Type": _TYPE}
            headers, answer = self._store._call("PUT", self._address, self._url, headers=head, data=Body(data))
            count(written=len(data))
            if total != "*" and answer:
                return answer
            # The store may have taken less than it was sent.
            _, _, end = headers.get("Range", "").rpartition("-")
            taken = int(end) + 1 - self._size if end.isdecimal() else 0
            if not 0 <= taken <= len(data):
                raise ValueError(taken)
            self._size += taken
            data = data[taken:]
            if not data and total == "*":
                return b""
        raise StoreError(f"{self._url}: the store does not take all of it, in spite of repeating: try it again later")


def _path(url: Url) -> str:
    return f"b/{quote(url.bucket, safe='')}/o/{quote(url.key, safe='')}"


def _stamp(found: Mapping[str, Any]) -> Stamp:
    generation = str(found["generation"])
    changed = found.get("updated")
    return Stamp(
        int(found.get("size", 0)),
        generation,
        generation,
        datetime.fromisoformat(changed).timestamp() if changed else None,
        {name: found[name] for name in _KEPT if found.get(name)},
    )


def _properties(url: Url, metadata: Mapping[str, str], old: Stamp | None) -> dict[str, Any]:
    kept = dict(old.kept) if old else {}
    return {"contentType": _TYPE, **kept, "name": url.key, "metadata": {**kept.get("metadata", {}), **metadata}}


def _conditions(condition: Condition) -> dict[str, str]:
    return {} if condition.always else {"ifGenerationMatch": condition.token or "0"}


def _as_error(error: Exception, url: Url) -> Exception:
    # Errors of aiohttp have a status, and warn of their code.
    status = error.status if hasattr(error, "status") else getattr(error, "code", None)
    status = int(str(status)) if str(status).isdecimal() else None
    # gcsfs has no class of its own for this.
    code = "Forbidden" if str(error).startswith("Forbidden") else type(error).__name__
    return as_error(Failure("gcs", status, code if code != "HttpError" else ""), url)
