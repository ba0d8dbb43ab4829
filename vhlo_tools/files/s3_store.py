"""Objects of Amazon S3 and of stores that speak its protocol, by s3fs."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import s3fs
from aiobotocore.httpsession import AIOHTTPSession
from botocore.httpsession import HTTPClientError
from botocore.parsers import ResponseParserError
from fsspec.asyn import sync
from fsspec.config import conf

from vhlo_tools.files.answers import OversizeError, bound, bounded
from vhlo_tools.files.connections import (
    ANY,
    CLOSING,
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


class _Session(AIOHTTPSession):  # type: ignore[misc]
    """Requests of which no answer is longer than what was asked for."""

    async def send(self, request: Any) -> Any:
        is_read, request.stream_output = not request.stream_output, True
        response = await super().send(request)
        bound(response.raw, is_object=not is_read)
        if is_read:
            try:
                await response.content
            except (aiohttp.ClientError, TimeoutError) as error:
                raise HTTPClientError(error=error) from error
        return response


#: Retries with backoff of what is transient, by botocore, and the seconds that one try may take.
_CONFIG: Final = {
    "retries": {"mode": "standard", "total_max_attempts": 6},
    "connect_timeout": 10,
    "read_timeout": 60,
    "http_session_cls": _Session,
}
#: The seconds before each new request for what botocore does not repeat: a body that broke off, and an answer that
#: cannot be parsed, as some stores send when they are busy.
_PAUSES: Final = (0.4, 0.8, 1.6)
#: The parts that are on their way at the same time.
_UNDER_WAY: Final = 4
_PAGE: Final = 1000
#: What a new version of an object keeps of the old one.
_KEPT: Final = ("CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage", "ContentType")
_TYPE: Final = "application/octet-stream"


class S3Store:
    def __init__(self, url: Url) -> None:
        given = conf.get("s3", {}).get("config_kwargs", {})
        self._files = s3fs.S3FileSystem(
            use_listings_cache=False, skip_instance_cache=True, config_kwargs={**_CONFIG, **given}
        )
        # s3fs would repeat five times what botocore has repeated six times already.
        self._files.retries = 1

    @property
    def is_conditional(self) -> bool | None:
        """Only Amazon's own service is known to honour the conditions of writes."""
        self._files.connect()
        return True if self._files.s3.meta.endpoint_url.endswith(".amazonaws.com") else None

    @understood
    def stamp(self, url: Url) -> Stamp:
        try:
            found = self._call("head_object", url)
        except Exception:
            # The answer to HEAD has no text that says what is wrong; that to GET has.
            found = self._call("get_object", url, Range="bytes=0-0")
            found["Body"].close()
        return _stamp(found, found["ContentLength"])

    @understood
    def read(self, url: Url, start: int, size: int, token: str | None) -> tuple[bytes, Stamp]:
        condition = {"IfMatch": token} if token else {}

        async def read() -> tuple[dict[str, Any], bytes]:
            for pause in (*_PAUSES, None):
                found = await self._request(
                    "get_object", Bucket=url.bucket, Key=url.key, Range=f"bytes={start}-{start + size - 1}", **condition
                )
                try:
                    async with found["Body"] as body:
                        return found, await body.read()
                except Exception as error:
                    if pause is None or isinstance(error, OversizeError):
                        raise
                    await asyncio.sleep(pause)
            raise AssertionError

        try:
            found, data = self._run(url, read, wanted=size)
        except EmptyRangeError:
            return b"", self.stamp(url)
        count(read=len(data))
        return data, _stamp(found, whole_size(found.get("ContentRange"), start, data))

    def pages(self, prefix: Url) -> Iterator[list[Listed]]:
        more: dict[str, str] | None = {}
        while more is not None:
            page, more = self._page(prefix, more)
            yield page

    @understood
    def _page(self, prefix: Url, more: dict[str, str]) -> tuple[list[Listed], dict[str, str] | None]:
        page = self._call("list_objects_v2", prefix, key=None, Prefix=prefix.key, MaxKeys=_PAGE, **more)
        found = [
            Listed(
                prefix.with_key(each["Key"]),
                Stamp(each["Size"], each["ETag"], modified=each["LastModified"].timestamp()),
            )
            for each in page.get("Contents", ())
        ]
        return found, {"ContinuationToken": page["NextContinuationToken"]} if page.get("IsTruncated") else None

    @understood
    def put(self, url: Url, data: bytes, condition: Condition, metadata: Mapping[str, str], old: Stamp | None) -> Stamp:
        found = self._call("put_object", url, Body=data, **_conditions(condition), **_properties(metadata, old))
        count(written=len(data))
        return Stamp(len(data), found["ETag"], found.get("VersionId"))

    @understood
    def upload(self, url: Url, condition: Condition, metadata: Mapping[str, str], old: Stamp | None) -> _Upload:
        found = self._call("create_multipart_upload", url, **_properties(metadata, old))
        return _Upload(self, url, condition, found["UploadId"])

    def delete(self, url: Url, condition: Condition = ANY) -> None:
        self._call("delete_object", url, **_conditions(condition))

    def close(self) -> None:
        if self._files._s3 is not None:
            sync(self._files.loop, self._files._s3.close, timeout=CLOSING)

    def _call(self, method: str, url: Url, *, key: str | None = "", **arguments: Any) -> Any:
        named = {} if key is None else {"Key": url.key}

        async def call() -> Any:
            return await self._request(method, Bucket=url.bucket, **named, **arguments)

        if "Body" not in arguments:
            count()
        return self._run(url, call, sent=len(arguments.get("Body", b"")))

    async def _request(self, method: str, **arguments: Any) -> Any:
        for pause in (*_PAUSES, None):
            try:
                return await self._files._call_s3(method, **arguments)
            except ResponseParserError:
                if pause is None:
                    raise
                await asyncio.sleep(pause)
        raise AssertionError

    def _run(self, url: Url, work: Callable[[], Coroutine[Any, Any, Any]], **sizes: int) -> Any:
        try:
            return sync(self._files.loop, bounded, work, **sizes)
        except Exception as error:
            raise _as_error(error, url) from error

    def begin(self, url: Url, method: str, **arguments: Any) -> Future[Any]:
        """Begin a request, and return the future of its answer."""

        async def call() -> Any:
            return await self._request(method, Bucket=url.bucket, Key=url.key, **arguments)

        return asyncio.run_coroutine_threadsafe(bounded(call, sent=len(arguments["Body"])), self._files.loop)


class _Upload:
    def __init__(self, store: S3Store, url: Url, condition: Condition, upload: str) -> None:
        self._store, self._url, self._condition = store, url, condition
        self._named = {"UploadId": upload}
        self._under_way: deque[tuple[int, int, Future[Any]]] = deque()
        self._parts: list[dict[str, Any]] = []
        self._number = self._size = 0

    def add(self, part: bytes) -> None:
        while len(self._under_way) >= _UNDER_WAY:
            self._await_one()
        self._number += 1
        begun = self._store.begin(self._url, "upload_part", PartNumber=self._number, Body=part, **self._named)
        self._under_way.append((self._number, len(part), begun))

    @understood
    def finish(self) -> Stamp:
        while self._under_way:
            self._await_one()
        found = self._store._call(
            "complete_multipart_upload",
            self._url,
            MultipartUpload={"Parts": self._parts},
            **_conditions(self._condition),
            **self._named,
        )
        return Stamp(self._size, found["ETag"], found.get("VersionId"))

    def abort(self) -> None:
        for _, _, begun in self._under_way:
            begun.cancel()
        self._under_way.clear()
        self._store._call("abort_multipart_upload", self._url, **self._named)

    @understood
    def _await_one(self) -> None:
        number, size, begun = self._under_way.popleft()
        try:
            found = begun.result()
        except Exception as error:
            raise _as_error(error, self._url) from error
        count(written=size)
        self._size += size
        self._parts.append({"PartNumber": number, "ETag": found["ETag"]})


def _stamp(found: Mapping[str, Any], size: int) -> Stamp:
    kept = {name: found[name] for name in _KEPT if found.get(name)}
    version = found.get("VersionId")
    return Stamp(
        size,
        found["ETag"],
        version if version != "null" else None,
        found["LastModified"].timestamp(),
        {"metadata": dict(found.get("Metadata", {})), "properties": kept},
    )


def _properties(metadata: Mapping[str, str], old: Stamp | None) -> dict[str, Any]:
    """Return the properties of an object: kept ones and new metadata."""
    kept = old.kept if old else {}
    return {"ContentType": _TYPE, **kept.get("properties", {}), "Metadata": {**kept.get("metadata", {}), **metadata}}


def _conditions(condition: Condition) -> dict[str, str]:
    if condition.always:
        return {}
    return {"IfNoneMatch": "*"} if condition.token is None else {"IfMatch": condition.token}


def _as_error(error: Exception, url: Url) -> Exception:
    # s3fs raises Python's own errors, with those of botocore as their causes.
    cause = error if hasattr(error, "response") or error.__cause__ is None else error.__cause__
    response = getattr(cause, "response", None)
    if not isinstance(response, dict):
        return as_error(Failure("s3", None, type(cause).__name__), url)
    code = str(response.get("Error", {}).get("Code", ""))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return as_error(Failure("s3", status, "" if code.isdecimal() else code), url)
