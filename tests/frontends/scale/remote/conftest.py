"""Stores that tests write to: real servers on this machine, and the memory of this process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from support.faulty_proxy import Faults, proxied
from support.store_buckets import Bucket
from support.store_servers import BUCKET, SERVERS, started

from vhlo_tools.files import Url, forget_connections, place

KINDS = ("s3", "azure", "gcs", "memory")
#: The variables that would lead somewhere else.
_FOREIGN = ("AWS_", "AZURE_", "GOOGLE_", "STORAGE_EMULATOR", "FSSPEC_")


@pytest.fixture(scope="session")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], int]]:
    """Return the port of a server by its kind, started when it is first asked for."""
    found: dict[str, int] = {}
    with ExitStack() as stack:

        def port_of(kind: str) -> int:
            if kind not in found:
                found[kind] = stack.enter_context(started(kind, tmp_path_factory.mktemp(kind)))
            return found[kind]

        yield port_of


@pytest.fixture
def make_bucket(ports: Callable[[str], int], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Bucket]]:
    for name in tuple(os.environ):
        if name.startswith(_FOREIGN):
            monkeypatch.delenv(name)
    with ExitStack() as stack:

        def make(kind: str) -> Bucket:
            if kind == "memory":
                url = place(f"memory://{uuid4().hex}/")
                assert isinstance(url, Url)
                return Bucket(kind, url, Faults(), True)
            server = SERVERS[kind]
            port, faults = stack.enter_context(proxied(ports(kind)))
            for name, value in server.settings(port).items():
                monkeypatch.setenv(name, value)
            url = place(f"{server.scheme}://{BUCKET}/{uuid4().hex}/")
            assert isinstance(url, Url)
            return Bucket(kind, url, faults, server.keeps_conditions, server.is_simple)

        forget_connections()
        yield make
        forget_connections()


@pytest.fixture(params=KINDS)
def bucket(request: pytest.FixtureRequest, make_bucket: Callable[[str], Bucket]) -> Bucket:
    """A place in a store of each kind."""
    return make_bucket(request.param)


@pytest.fixture
def s3(make_bucket: Callable[[str], Bucket]) -> Bucket:
    """A place in moto's S3 server."""
    return make_bucket("s3")


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds between requests and their repetitions: the libraries of all stores wait in this way.

    They are noted, and not waited for: what fails here fails by the number of a request, at whatever time it comes.
    """
    noted: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float, *result: Any) -> Any:
        noted.append(seconds)
        return await sleep(0, *result)

    monkeypatch.setattr(asyncio, "sleep", note)
    return noted


@pytest.fixture(scope="session")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An artifact of 1.9.0 with four constants, 24 MB in all."""
    from support.large_artifacts import write_artifact_of_constants

    path = tmp_path_factory.mktemp("artifact") / "large.mlirbc"
    write_artifact_of_constants(path, 24 << 20, 4, "1.9.0")
    return path
