"""Stores that lie: never more is taken than was asked, no listing and no body is awaited for ever, errors are typed."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator

import pytest
from support.lying_store import Answer, Lies, lying_store
from support.store_servers import BUCKET, SERVERS

from vhlo_tools.errors import MalformedArtifactError, StoreError
from vhlo_tools.files import Url, answers, forget_connections, objects, objects_under, open_object, place, write_object

Lying = Callable[[str], tuple[Url, Lies]]

DATE = "Fri, 27 Nov 2026 10:00:00 GMT"
HEADS = {
    "s3": {"ETag": '"a"', "Last-Modified": DATE},
    "azure": {"ETag": '"a"', "Last-Modified": DATE, "x-ms-blob-type": "BlockBlob"},
    "gcs": {"X-Goog-Generation": "7"},
}
#: The range that is asked for first, of an object that is longer.
RANGE = {"Content-Range": "bytes 0-262143/1000000"}
MEGABYTE = 1 << 20


@pytest.fixture
def lying(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lying]:
    """Return the URL of an object in a store of a kind, and what that answers."""
    for name in tuple(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_", "STORAGE_EMULATOR", "FSSPEC_")):
            monkeypatch.delenv(name)
    with lying_store() as (port, lies):

        def url_of(kind: str) -> tuple[Url, Lies]:
            for name, value in SERVERS[kind].settings(port).items():
                monkeypatch.setenv(name, value)
            url = place(f"{SERVERS[kind].scheme}://{BUCKET}/p/a")
            assert isinstance(url, Url)
            return url, lies

        forget_connections()
        yield url_of
        lies.ended.set()
        forget_connections()


def endless(piece: bytes = bytes(1 << 16), pause: float = 0) -> Iterator[bytes]:
    # Long enough to fail by, and no more than a machine has.
    for _ in range(4096):
        yield piece
        time.sleep(pause)


def page(kind: str, key: str, size: object, token: str) -> bytes:
    """Return a page of a listing of one object, after which there is said to be another one."""
    if kind == "gcs":
        return json.dumps({"nextPageToken": token, "items": [{"name": key, "size": size, "generation": "7"}]}).encode()
    if kind == "s3":
        entry = f"<Key>{key}</Key><Size>{size}</Size><ETag>a</ETag><LastModified>2026-01-01T00:00:00Z</LastModified>"
        more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>"
        return f"<ListBucketResult>{more}<Contents>{entry}</Contents></ListBucketResult>".encode(errors="surrogatepass")
    about = f"<Last-Modified>{DATE}</Last-Modified><Etag>0x1</Etag><Content-Length>{size}</Content-Length>"
    blob = f"<Blob><Name>{key}</Name><Properties>{about}<BlobType>BlockBlob</BlobType></Properties></Blob>"
    return (
        f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://x/" ContainerName="c">'
        f"<Blobs>{blob}</Blobs><NextMarker>{token}</NextMarker></EnumerationResults>"
    ).encode(errors="surrogatepass")


def objects_lie(kind: str, what: str) -> Answer:
    ranged = {**HEADS[kind], **RANGE}
    return {
        "ignores ranges": (200, {**HEADS[kind], "Content-Length": str(1 << 40)}, endless()),
        "sends more": (206, ranged, endless()),
        "refuses at length": (403, {}, endless()),
        "decompresses": (206, {**ranged, "Content-Encoding": "gzip"}, [gzip.compress(bytes(50 * MEGABYTE))]),
        "another range": (206, {**ranged, "Content-Range": "bytes 5-262148/1000000"}, [bytes(1 << 18)]),
        "a negative size": (206, {**ranged, "Content-Range": "bytes 0-262143/-1"}, [bytes(1 << 18)]),
        "a huge size": (206, {**ranged, "Content-Range": f"bytes 0-262143/{'9' * 17}"}, [bytes(1 << 18)]),
        "no head": (200, {}, [b"bytes"]),
    }[what]


OBJECTS = (
    "ignores ranges",
    "sends more",
    "refuses at length",
    "decompresses",
    "another range",
    "a negative size",
    "a huge size",
    "no head",
)


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize("what", OBJECTS)
@pytest.mark.parametrize("kind", SERVERS)
def test_no_more_is_taken_than_was_asked(lying: Lying, kind: str, what: str) -> None:
    url, lies = lying(kind)
    lies.answer = lambda *_: objects_lie(kind, what)
    if (kind, what) == ("azure", "another range"):
        pytest.skip("the library says that it got the range that it asked for")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises((StoreError, MalformedArtifactError, FileNotFoundError)):
        open_object(url)
    assert lies.requests <= 10
    # What the system keeps between the two of each request is some megabytes.
    assert lies.sent < 100 * MEGABYTE
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def listing(kind: str, what: str, number: int) -> Iterable[bytes]:
    """Return what lists one more page."""
    if what == "a page without end":
        return itertools.chain([page(kind, "p/a", 3, "t")[:90]], endless(b" " * (1 << 16)))
    return [
        {
            "the same page": page(kind, "p/a", 3, "t"),
            "ever new pages": page(kind, f"p/{number}", 3, f"t{number}"),
            "another folder": page(kind, "../a", 3, "t"),
            "a negative size": page(kind, "p/a", -1, "t"),
            "a huge size": page(kind, "p/a", 1 << 60, "t"),
            "no number": page(kind, "p/a", "three", "t"),
            "deep": b"[" * 100_000,
            "no text": page(kind, "p/\ud800", 3, "t"),
            "a zero": page(kind, "p/\0", 3, "t"),
        }[what]
    ]


LISTINGS = (
    "a page without end",
    "the same page",
    "ever new pages",
    "another folder",
    "a negative size",
    "a huge size",
    "no number",
    "deep",
    "no text",
    "a zero",
)


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize("what", LISTINGS)
@pytest.mark.parametrize("kind", SERVERS)
def test_every_listing_ends(lying: Lying, monkeypatch: pytest.MonkeyPatch, kind: str, what: str) -> None:
    url, lies = lying(kind)
    monkeypatch.setattr(objects, "_PAGES", 50)
    lies.answer = lambda number, *_: (200, {"Content-Type": "application/xml"}, listing(kind, what, number))
    with pytest.raises(StoreError):
        for _ in objects_under(url.parent):
            pass
    assert lies.requests <= 50
    assert lies.sent < 100 * MEGABYTE


@pytest.mark.parametrize("what", ["an object", "a page"])
@pytest.mark.parametrize("kind", SERVERS)
def test_no_answer_is_awaited_for_ever(lying: Lying, monkeypatch: pytest.MonkeyPatch, kind: str, what: str) -> None:
    """A byte comes often enough that no wait for the next one ends."""
    url, lies = lying(kind)
    monkeypatch.setattr(answers, "SECONDS", -3)
    head = {**HEADS[kind], **RANGE, "Content-Length": str(1 << 18)}
    lies.answer = lambda *_: (206, head, endless(b" ", 0.2))
    if what == "a page":
        monkeypatch.setattr(answers, "SECONDS", 0.7)
    before = time.monotonic()
    with pytest.raises(StoreError, match="did not answer in time"):
        open_object(url) if what == "an object" else next(objects_under(url.parent))
    assert time.monotonic() - before < 30


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize("kind", SERVERS)
def test_redirects_end(lying: Lying, kind: str) -> None:
    url, lies = lying(kind)
    lies.answer = lambda number, method, path, wanted: (302, {"Location": path}, [])
    with pytest.raises(StoreError):
        open_object(url)
    assert lies.requests < 200


def test_an_upload_that_is_never_taken_ends(lying: Lying) -> None:
    url, lies = lying("gcs")

    def answer(number: int, method: str, path: str, wanted: str) -> Answer:
        if method == "POST" and "resumable" in path:
            return 200, {"Location": str(url_of_upload)}, []
        return (308, {}, []) if method == "PUT" else (404, {}, [])

    url_of_upload = f"{os.environ['STORAGE_EMULATOR_HOST']}/upload"
    lies.answer = answer
    with pytest.raises(StoreError, match="does not take all of it"):
        write_object(url, [bytes(17 * MEGABYTE)], force=True)
