"""Objects of Azure's blob storage, by adlfs."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import aiohttp
from adlfs import AzureBlobFileSystem
from adlfs.utils import close_credential
from azure.core import MatchConditions
from azure.core.pipeline.transport import AioHttpTransport
from azure.storage.blob import BlobBlock, ContentSettings
from azure.storage.blob.aio import BlobServiceClient, ExponentialRetry
from fsspec.asyn import sync

from vhlo_tools.errors import StoreError
from vhlo_tools.files.answers import BOUNDED, bounded
from vhlo_tools.files.connections import (
    ANY,
    CLOSING,
    Body,
    Condition,
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
    from vhlo_tools.files.urls import Url

_PAGE: Final = 1000
#: One request for each read and each write: who calls chooses the sizes.
_SIZES: Final = {"max_single_get_size": 1 << 30, "max_chunk_get_size": 1 << 30, "max_single_put_size": 1 << 30}
#: A longer body goes as a block, for only those does the library send in pieces.
_AT_ONCE: Final = 1 << 20
_TIMES: Final = {"connection_timeout": 10, "read_timeout": 60, "connection_data_block_size": 1 << 18}
_TYPE: Final = "application/octet-stream"

# It logs errors that it raises as well, which without logging would be printed.
logging.getLogger("azure").addHandler(logging.NullHandler())


class AzureStore:
    """The blobs of one account; adlfs finds the account and the credentials.

    The client is another one, with retries that begin after a second and not after fifteen.
    """

    is_conditional = True

    def __init__(self, url: Url) -> None:
        account = {"account_name": url.account.partition(".")[0]} if url.account else {}
        try:
            files = AzureBlobFileSystem(use_listings_cache=False, skip_instance_cache=True, **account)
        except ValueError as error:
            raise StoreError(
                f"{url}: no account is known ({error}): set AZURE_STORAGE_ACCOUNT_NAME or "
                "AZURE_STORAGE_CONNECTION_STRING, "
                f"or write az://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY"
            ) from None
        _forget_exit(files)
        self._files, self._loop = files, files.loop
        options = {
            "retry_policy": ExponentialRetry(initial_backoff=1, increment_base=2, retry_total=5),
            "transport": sync(files.loop, _transport),
            **_SIZES,
        }
        if files.connection_string is not None:
            self._client = BlobServiceClient.from_connection_string(files.connection_string, **options)
        else:
            signature = files.sas_token if files.sas_token and not (files.credential or files.account_key) else ""
            self._client = BlobServiceClient(
                files.account_url + signature, credential=files.credential or files.account_key, **options
            )

    @understood
    def stamp(self, url: Url) -> Stamp:
        count()
        return _stamp(self._run(url, lambda: self._blob(url).get_blob_properties()))

    @understood
    def read(self, url: Url, start: int, size: int, token: str | None) -> tuple[bytes, Stamp]:
        condition = _conditions(Condition(token)) if token else {}

        async def read() -> tuple[bytes, Any]:
            found = await self._blob(url).download_blob(start, size, max_concurrency=1, **condition)
            return await found.readall(), found.properties

        try:
            data, properties = self._run(url, read, wanted=size)
        except EmptyRangeError:
            return b"", self.stamp(url)
        count(read=len(data))
        # The size among the properties is that of the range.
        properties.size = whole_size(properties.content_range, start, data)
        return data, _stamp(properties)

    def pages(self, prefix: Url) -> Iterator[list[Listed]]:
        container = self._client.get_container_client(prefix.bucket)
        pages = container.list_blobs(name_starts_with=prefix.key or None, results_per_page=_PAGE).by_page()

        while (page := self._page(prefix, pages)) is not None:
            yield page

    @understood
    def _page(self, prefix: Url, pages: Any) -> list[Listed] | None:
        async def page() -> list[Any] | None:
            try:
                return [each async for each in await anext(pages)]
            except StopAsyncIteration:
                return None

        if (found := self._run(prefix, page)) is None:
            return None
        count()
        return [Listed(prefix.with_key(each.name), _stamp(each)) for each in found]

    @understood
    def put(self, url: Url, data: bytes, condition: Condition, metadata: Mapping[str, str], old: Stamp | None) -> Stamp:
        """Large objects take several requests."""
        if len(data) > _AT_ONCE:
            upload = self.upload(url, condition, metadata, old)
            upload.add(data)
            return upload.finish()

        async def put() -> Any:
            return await self._blob(url).upload_blob(
                Body(data), length=len(data), overwrite=True, **_conditions(condition), **_properties(metadata, old)
            )

        found = self._run(url, put, sent=len(data))
        count(written=len(data))
        return Stamp(len(data), found["etag"], found.get("version_id"))

    def upload(self, url: Url, condition: Condition, metadata: Mapping[str, str], old: Stamp | None) -> _Upload:
        return _Upload(self, url, condition, _properties(metadata, old))

    def delete(self, url: Url, condition: Condition = ANY) -> None:
        count()
        try:
            self._run(url, lambda: self._blob(url).delete_blob(**_conditions(condition)))
        except FileNotFoundError:
            return

    def close(self) -> None:
        sync(self._loop, self._client.close, timeout=CLOSING)
        sync(self._loop, close_credential, self._files, timeout=CLOSING)

    def _blob(self, url: Url) -> Any:
        return self._client.get_blob_client(url.bucket, url.key)

    def _run(self, url: Url, work: Callable[[], Coroutine[Any, Any, Any]], **sizes: int) -> Any:
        try:
            return sync(self._loop, bounded, work, **sizes)
        except Exception as error:
            raise _as_error(error, url) from error


async def _transport() -> AioHttpTransport:
    # It decompresses what is compressed, which the library would do without a bound.
    session = aiohttp.ClientSession(response_class=BOUNDED, cookie_jar=aiohttp.DummyCookieJar(), trust_env=True)
    return AioHttpTransport(session=session, **_TIMES)


class _Upload:
    """Blocks that a last request makes a blob.

    No request removes blocks: Azure does, a week after the last one, and they are no part of any listing.
    """

    def __init__(self, store: AzureStore, url: Url, condition: Condition, properties: dict[str, Any]) -> None:
        self._store, self._url, self._condition, self._properties = store, url, condition, properties
        self._blocks: list[BlobBlock] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        name = uuid4().hex
        self._store._run(
            self._url,
            lambda: self._store._blob(self._url).stage_block(name, Body(part), length=len(part)),
            sent=len(part),
        )
        count(written=len(part))
        self._size += len(part)
        self._blocks.append(BlobBlock(name))

    @understood
    def finish(self) -> Stamp:
        count()
        found = self._store._run(
            self._url,
            lambda: self._store._blob(self._url).commit_block_list(
                self._blocks, **_conditions(self._condition), **self._properties
            ),
        )
        return Stamp(self._size, found["etag"], found.get("version_id"))

    def abort(self) -> None:
        self._blocks.clear()


def _stamp(properties: Any) -> Stamp:
    changed = properties.last_modified
    kept = {"metadata": dict(properties.metadata or {}), "settings": properties.content_settings}
    # A listing has the tag without quotes.
    tag = properties.etag if properties.etag.startswith('"') else f'"{properties.etag}"'
    return Stamp(properties.size, tag, properties.version_id, changed.timestamp() if changed else None, kept)


def _properties(metadata: Mapping[str, str], old: Stamp | None) -> dict[str, Any]:
    kept = old.kept if old else {}
    settings = kept.get("settings") or ContentSettings(content_type=_TYPE)
    # The digest is that of the old bytes.
    settings.content_md5 = None
    return {"content_settings": settings, "metadata": {**kept.get("metadata", {}), **metadata}}


def _conditions(condition: Condition) -> dict[str, Any]:
    if condition.always:
        return {}
    if condition.token is None:
        return {"match_condition": MatchConditions.IfMissing}
    return {"etag": condition.token, "match_condition": MatchConditions.IfNotModified}


def _as_error(error: Exception, url: Url) -> Exception:
    status = getattr(error, "status_code", None)
    code = getattr(error, "error_code", None)
    return as_error(Failure("azure", status, str(getattr(code, "value", code) or type(error).__name__)), url)


def _forget_exit(files: AzureBlobFileSystem) -> None:
    """Make adlfs close nothing at exit: a forked process would wait for ever for a thread of its parent."""
    for each in tuple(getattr(weakref.finalize, "_registry", ())):
        found = each.peek()
        if found is not None and found[0] is files:
            each.detach()
