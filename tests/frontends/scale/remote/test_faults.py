"""Networks and stores that fail: what is transient is repeated, the rest an error in one line that says what to do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.store_buckets import Bucket
from support.store_servers import SERVERS, free_port

from vhlo_tools.cli.main import main
from vhlo_tools.errors import StoreError
from vhlo_tools.files import counted, objects_under, open_object, place, read_object, stamp_of, write_object
from vhlo_tools.files.mapping import slices

MEGABYTE = 1 << 20


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize("kind", SERVERS)
def test_one_request_in_ten_fails(make_bucket: Callable[[str], Bucket], kind: str) -> None:
    """Statuses of busy servers, connections that end before and after the server did its work, and in the body."""
    bucket = make_bucket(kind)
    bucket.faults.every = 10
    large = os.urandom(17 * MEGABYTE)
    for number in range(12):
        url = bucket / f"small-{number}"
        first = write_object(url, [b"first"])
        assert open_object(url) == b"first"
        if bucket.keeps_conditions:
            write_object(url, [b"second"], replaces=first)
            assert open_object(url) == b"second"
        with pytest.raises(FileExistsError):
            write_object(url, [b"third"])
    # Google's emulator forgets an upload in parts once it is complete, and then refuses a repeated end of it.
    for number in range(0 if bucket.is_simple else 3):
        write_object(bucket / f"large-{number}", [large])
        assert b"".join(slices(open_object(bucket / f"large-{number}"))) == large
    assert len([each for page in objects_under(bucket.url) for each in page]) == (12 if bucket.is_simple else 15)
    assert bucket.faults.failed >= len(bucket.faults.kinds)


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize("kind", [kind for kind, server in SERVERS.items() if server.keeps_conditions])
def test_an_answer_is_lost_and_the_write_knows_its_own_object(make_bucket: Callable[[str], Bucket], kind: str) -> None:
    bucket = make_bucket(kind)
    write_object(bucket / "before", [b"so that the store has been asked what it honours"])
    for number, data in enumerate((b"small", bytes(17 * MEGABYTE))):
        bucket.faults.requests.clear()
        write_object(bucket / f"probe-{number}", [data])
        requests = len(bucket.faults.requests)
        # The last one writes.
        bucket.faults.requests.clear()
        bucket.faults.every, bucket.faults.kinds = requests, ("lost answer",)
        before = bucket.faults.failed
        assert write_object(bucket / f"object-{number}", [data]).size == len(data)
        bucket.faults.every = 0
        # The look at the object that is there may be lost too, and is repeated.
        assert bucket.faults.failed > before
        assert read_object(bucket / f"object-{number}")[1].size == len(data)


def test_slow_answers(s3: Bucket, artifact: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_object(s3 / "a.mlirbc", [artifact.read_bytes()])
    s3.faults.delay = 0.3
    before = time.monotonic()
    assert main(["inspect", str(s3 / "a.mlirbc")]) == 0
    # Few requests: no read of one byte waits for a request of its own.
    assert time.monotonic() - before < 0.3 * 12 + 3
    assert "portable artifact of StableHLO 1.9.0" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (400, "ExpiredToken", "credentials have expired"),
        (403, "InvalidAccessKeyId", "does not accept the credentials"),
        (403, "SignatureDoesNotMatch", "does not accept the credentials"),
        (403, "AccessDenied", "access is denied"),
        (403, "RequestTimeTooSkewed", "clock"),
        (404, "NoSuchBucket", "there is no bucket or container programs"),
        (301, "PermanentRedirect", "another region"),
        (403, "InvalidObjectState", "restore it first"),
        (501, "NotImplemented", "does not support this request"),
        (418, "ATeapot", "refused the request (ATeapot, 418)"),
    ],
)
def test_refusals_of_s3(s3: Bucket, status: int, code: str, told: str, capfd: pytest.CaptureFixture[str]) -> None:
    text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>secret text</Message></Error>".encode()
    # An answer to HEAD has no body.
    s3.faults.first = lambda method, path: (status, b"" if method == "HEAD" else text)
    url = str(s3 / "a.mlirbc")
    for command in (["inspect", url], ["retarget", url, "--target", "1.4.0", "-o", url]):
        assert main(command) == 2
        out, err = capfd.readouterr()
        assert out == ""
        assert told in err
        assert url in err
        assert len(err.splitlines()) == 1
        assert "secret" not in err
    if told.startswith("credentials"):
        assert "aws sts get-caller-identity" in err


@pytest.mark.parametrize(
    ("kind", "status", "body", "told"),
    [
        ("gcs", 401, b'{"error": {"code": 401, "message": "Anonymous caller"}}', "does not accept the credentials"),
        ("gcs", 403, b'{"error": {"code": 403, "message": "no"}}', "access is denied"),
        (
            "azure",
            403,
            b"<Error><Code>AuthenticationFailed</Code><Message>no</Message></Error>",
            "does not accept the credentials",
        ),
        (
            "azure",
            403,
            b"<Error><Code>AuthorizationPermissionMismatch</Code><Message>no</Message></Error>",
            "access is denied",
        ),
    ],
)
def test_refusals_of_others(
    make_bucket: Callable[[str], Bucket],
    kind: str,
    status: int,
    body: bytes,
    told: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    bucket = make_bucket(kind)
    bucket.faults.first = lambda method, path: (status, body)
    assert main(["inspect", str(bucket / "a.mlirbc")]) == 2
    err = capfd.readouterr().err
    assert told in err
    assert len(err.splitlines()) == 1


def test_no_credentials(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StoreError, match="no credentials were found"):
        open_object(s3 / "a.mlirbc")


def test_no_account(make_bucket: Callable[[str], Bucket], monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = make_bucket("azure")
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING")
    monkeypatch.setenv("AZURE_STORAGE_ANON", "true")
    with pytest.raises(StoreError, match="AZURE_STORAGE_CONNECTION_STRING"):
        open_object(bucket / "a.mlirbc")


@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}", "http://no-such-host.invalid:{port}"])
def test_a_store_that_cannot_be_reached(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch, address: str, pauses: list[float]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", address.format(port=free_port()))
    before = time.monotonic()
    with pytest.raises(StoreError, match="cannot be reached: check the network"):
        open_object(s3 / "a.mlirbc")
    assert 0 < sum(pauses) + time.monotonic() - before < 60


def test_a_store_that_is_always_busy(s3: Bucket, pauses: list[float]) -> None:
    s3.faults.first = lambda method, path: (503, b"<Error><Code>SlowDown</Code></Error>")
    with pytest.raises(StoreError, match="takes no more requests for now"):
        open_object(s3 / "a.mlirbc")
    # Repeated with pauses, and not for ever.
    assert 3 <= len(s3.faults.requests) <= 10
    assert 1 < sum(pauses) < 60


def test_a_listing_that_cannot_be_parsed(s3: Bucket, pauses: list[float]) -> None:
    """As busy stores send it, and proxies before them."""
    write_object(s3 / "a.mlirbc", [b"bytes"])
    broken = iter([True, True, False])
    s3.faults.first = lambda method, path: (200, b"<busy") if next(broken) else None
    assert [each.url for page in objects_under(s3.url) for each in page] == [s3 / "a.mlirbc"]
    assert len(pauses) == 2
    s3.faults.first = lambda method, path: (200, b"<busy")
    s3.faults.requests.clear()
    with pytest.raises(StoreError, match="the store failed, in spite of repeating"):
        next(objects_under(s3.url))
    assert 3 <= len(s3.faults.requests) <= 10


def test_what_is_counted_is_what_the_server_sent(s3: Bucket, artifact: Path) -> None:
    write_object(s3 / "a.mlirbc", [artifact.read_bytes()])
    s3.faults.requests.clear()
    s3.faults.sent = 0
    with counted() as traffic:
        assert main(["inspect", str(s3 / "a.mlirbc")]) == 0
    assert traffic.requests == len(s3.faults.requests)
    assert traffic.bytes_read == s3.faults.sent < 2 * MEGABYTE


def test_a_store_is_asked_only_for_urls(s3: Bucket) -> None:
    assert stamp_of(s3 / "none") is None
    before = len(s3.faults.requests)
    place("s3://elsewhere/key")
    assert len(s3.faults.requests) == before
