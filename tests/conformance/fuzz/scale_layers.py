"""The layers that need the extra `scale`: results as Parquet, and what an object store answers."""

from __future__ import annotations

import io
import json
import os
import platform
import random
import struct
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from support.lying_store import Answer, Lies, lying_store
from support.store_servers import BUCKET, SERVERS

from fuzz.cases import Case, Seeds, any_answered
from fuzz.drawing import damage, hostile_string, near, number
from vhlo_tools.files import Url, objects_under, open_object, place, write_object
from vhlo_tools.files.objects import delete_object, read_object, stamp_of
from vhlo_tools.stores import summarize_results

# Parquet


def _rewritten(chance: random.Random, data: bytes) -> bytes:
    """Return a table with another schema, other metadata, or other values."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(data))
    at = chance.randrange(table.num_columns)
    field, column = table.schema.field(at), table.column(at)
    match chance.randrange(6):
        case 0:
            table = table.remove_column(at)
        case 1:
            kind = chance.choice((pa.binary(), pa.large_string(), pa.float64(), pa.list_(pa.int8()), field.type))
            table = table.set_column(at, pa.field(field.name, kind), pa.nulls(len(column), kind))
        case 2:
            table = table.append_column(field, column)
        case 3:
            pairs = dict(table.schema.metadata or {})
            pairs[chance.choice(sorted(pairs) or [b"k"])] = hostile_string(chance, b"vhlo")
            table = table.replace_schema_metadata(pairs)
        case 4:
            table = pa.concat_tables([table] * chance.choice((0, 2, 500))) if table.num_rows else table
        case _:
            texts = [hostile_string(chance).decode("utf-8", "replace") for _ in column]
            if pa.types.is_string(field.type):
                table = table.set_column(at, field, pa.array(texts, field.type))
    out = io.BytesIO()
    kinds = ("NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4", "BROTLI")
    pq.write_table(table, out, compression=chance.choice(kinds), use_dictionary=chance.random() < 0.5)
    return out.getvalue()


def mutate_parquet(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Return a file with other contents, or with pages or a footer that lie."""
    if chance.random() < 0.3:
        data = _rewritten(chance, data)
    out = bytearray(data)
    (size,) = struct.unpack_from("<I", out, len(out) - 8)
    footer = len(out) - 8 - size
    drawn = chance.random()
    if drawn < 0.1:
        struct.pack_into("<I", out, len(out) - 8, near(chance, size, 1 << 32))
    elif drawn < 0.6:
        changed = damage(chance, bytes(out[footer:-8]))
        out[footer:] = changed + struct.pack("<I", len(changed)) + b"PAR1"
    elif drawn < 0.9:
        # Pages keep their places: what the footer says of them holds.
        changed = damage(chance, bytes(out[4:footer]))
        out[4:footer] = changed[: footer - 4].ljust(footer - 4, b"\0")
    return bytes(out)


def draw_parquet(mutant: Callable[..., bytes], chance: random.Random, seeds: Seeds) -> Case:
    files = {"a.parquet": mutant(chance, seeds, "parquet")}
    if chance.random() < 0.2:
        files["b.parquet"] = chance.choice(seeds["parquet"])

    def run(folder: Path) -> bool:
        where = folder if len(files) > 1 else folder / "a.parquet"
        return any_answered([lambda: json.dumps(summarize_results(str(where)).as_json())])

    return Case("results in Parquet", files, run, files_raise=True)


# Object stores

#: For each kind of store, what is true of an object, and how it is listed.
_DATE = "Fri, 27 Nov 2026 10:00:00 GMT"
_HEADS = {
    "s3": {"ETag": '"a"', "Last-Modified": _DATE, "x-amz-version-id": "v", "x-amz-meta-a": "b"},
    "azure": {"ETag": '"a"', "Last-Modified": _DATE, "x-ms-blob-type": "BlockBlob", "x-ms-version-id": "v"},
    "gcs": {"X-Goog-Generation": "7", "ETag": "a", "X-Goog-Metageneration": "1"},
}
_STATUSES = (200, 200, 200, 201, 202, 204, 206, 206, 206, 301, 304, 307, 308, 400, 401, 403, 404, 409, 412, 416, 429)
_SERVER_ERRORS = (500, 502, 503)


def _listing(kind: str, number: int) -> bytes:
    more = "" if number > 2 else f"t{number}"
    key = f"p/a{number}"
    if kind == "gcs":
        item = {"name": key, "size": "3", "generation": "7", "metageneration": "1", "bucket": BUCKET}
        found = {"kind": "storage#objects", "items": [item, {**item, "name": f"{key}b"}]}
        return json.dumps({**found, **({"nextPageToken": more} if more else {})}).encode()
    if kind == "s3":
        entry = f"<Key>{key}</Key><Size>3</Size><ETag>a</ETag><LastModified>2026-01-01T00:00:00Z</LastModified>"
        token = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{more}</NextContinuationToken>" if more else ""
        return f"<ListBucketResult>{token}<Contents>{entry}</Contents></ListBucketResult>".encode()
    about = f"<Last-Modified>{_DATE}</Last-Modified><Etag>0x1</Etag><Content-Length>3</Content-Length>"
    blob = f"<Blob><Name>{key}</Name><Properties>{about}<BlobType>BlockBlob</BlobType></Properties></Blob>"
    return (
        f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://x/" ContainerName="c">'
        f"<Blobs>{blob}</Blobs><NextMarker>{more}</NextMarker></EnumerationResults>"
    ).encode()


def _metadata(kind: str) -> bytes:
    if kind == "gcs":
        return json.dumps({"name": "p/a", "bucket": BUCKET, "size": "9", "generation": "7", "id": "i"}).encode()
    return b"<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"


def _true_answer(kind: str, number: int, method: str, path: str, wanted: str) -> tuple[int, dict[str, str], bytes]:
    is_media = "alt=media" in path or (kind != "gcs" and "list" not in path)
    if method == "GET" and is_media:
        return 206, {**_HEADS[kind], "Content-Range": "bytes 0-8/9"}, b"some data"
    if method == "GET" and ("list" in path or path.rpartition("/")[2].startswith("o?")):
        return 200, {"Content-Type": "application/json" if kind == "gcs" else "application/xml"}, _listing(kind, number)
    if method == "HEAD":
        return 200, {**_HEADS[kind], "Content-Length": "9"}, b""
    return 200, dict(_HEADS[kind]), _metadata(kind)


def _header(chance: random.Random, old: str) -> str:
    if old.isdigit() and chance.random() < 0.7:
        return str(near(chance, int(old)) - chance.choice((0, 0, 1, 1 << 63)))
    drawn = hostile_string(chance, old.encode()).decode("latin-1")
    # A line of a head ends where it says; the server of this test would write another one.
    return drawn.translate({0: None, 10: None, 13: None})


def _changed(chance: random.Random, answer: tuple[int, dict[str, str], bytes]) -> Answer:
    status, head, body = answer
    head = dict(head)
    for _ in range(chance.choice((0, 1, 1, 2))):
        match chance.randrange(8):
            case 0:
                status = chance.choice(_STATUSES + _SERVER_ERRORS)
            case 1 | 2 if head:
                name = chance.choice(sorted(head))
                head[name] = _header(chance, head[name])
            case 3 if head:
                del head[chance.choice(sorted(head))]
            case 4:
                head["Content-Range"] = f"bytes {number(chance)}-{number(chance)}/{number(chance)}"
            case 5:
                head |= chance.choice(
                    (
                        {"Content-Encoding": chance.choice(("gzip", "br", "deflate", "zstd", "identity", "x"))},
                        {"Content-Length": str(near(chance, len(body)))},
                        {"Transfer-Encoding": "chunked"},
                        {"Location": hostile_string(chance, b"/p/a").decode("latin-1").translate({10: None, 13: None})},
                        {"Retry-After": str(number(chance))},
                        {"Content-Type": hostile_string(chance, b"text/html").decode("latin-1").translate({10: None})},
                    )
                )
            case 6:
                body = chance.choice((b"", body * 2, bytes(1 << 20), b"[" * 10_000, b"<a>" * 10_000, b"null", b"[1]"))
            case _:
                body = damage(chance, body)
    return status, head, [body]


#: The server ends with the process.
_SERVERS = ExitStack()


@cache
def _server() -> Lies:
    """Return what the server of this process answers; all stores are this server."""
    # Imported here because it needs the extra.
    from vhlo_tools.files import answers, objects

    for name in tuple(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_", "STORAGE_EMULATOR", "FSSPEC_")):
            del os.environ[name]
    # Libraries ask for it when they are imported, which starts a process.
    platform.processor()
    port, lies = _SERVERS.enter_context(lying_store())
    for server in SERVERS.values():
        os.environ |= server.settings(port)
    _wait_for_nothing()
    # Two seconds for each request, one that sends megabytes too.
    answers.SECONDS, answers._SLOWEST, objects._PAGES = 2, 1 << 30, 50  # type: ignore[misc]
    return lies


def _wait_for_nothing() -> None:
    """Let the libraries repeat requests at once."""
    import asyncio

    sleep = asyncio.sleep

    async def none(seconds: float, *result: Any) -> Any:
        return await sleep(0, *result)

    asyncio.sleep = none  # type: ignore[assignment]


def _listed(url: Url) -> None:
    for _ in objects_under(url.parent):
        pass


def _read(url: Url) -> None:
    bytes(open_object(url)[:100])


def draw_store(chance: random.Random, seeds: Seeds) -> Case:
    _server()
    kind, seed = chance.choice(list(SERVERS)), chance.getrandbits(64)
    calls: dict[str, Callable[[Url], object]] = {
        "read": _read,
        "list": _listed,
        "stamp": stamp_of,
        "write": lambda url: write_object(url, [b"some data"], force=chance.random() < 0.5),
        "write much": lambda url: write_object(url, [bytes(17 << 20)], force=True),
        "replace": lambda url: write_object(url, [b"data"], replaces=read_object(url)[1]),
        "delete": delete_object,
    }
    name = chance.choice(("read", "list", *sorted(calls)))

    def run(_: Path) -> bool:
        lies = _server()
        drawn = random.Random(seed)
        lies.answer = lambda *asked: _changed(drawn, _true_answer(kind, *asked))
        url = place(f"{SERVERS[kind].scheme}://{BUCKET}/p/a")
        assert isinstance(url, Url)
        with suppress(FileNotFoundError, FileExistsError):
            return any_answered([partial(calls[name], url)])
        return False

    return Case(f"{name} of {kind}", {}, run, in_memory=True)
