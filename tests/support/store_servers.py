"""Servers of other people that speak the protocols of stores, each as a process of its own on a free port."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

BUCKET = "programs"
#: The account that Azurite and its documentation give to everybody.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_AZURITE = "azurite@3.35.0"
#: The command of Google's own server for tests (googleapis/storage-testbench), which is on no package index.
_TESTBENCH = os.environ.get("VHLO_TOOLS_GCS_TESTBENCH")


@dataclass(frozen=True)
class Server:
    """A kind of server."""

    scheme: str  # the scheme of its objects
    #: returns the command that starts it on a port, with its files in a folder
    command: Callable[[int, Path], list[str]]
    settings: Callable[[int], dict[str, str]]  # returns the environment variables that lead clients to a port
    fill: Callable[[int], None]  # makes the bucket, with those variables set
    keeps_conditions: bool = True  # whether it honours the conditions of writes
    #: whether it says no generation with the bytes of an object, and cuts keys at an escaped semicolon
    is_simple: bool = False


def _azurite(port: int, folder: Path) -> list[str]:
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError("npm, which installs azurite, is not on this machine: Azure cannot be tested")
    caches = Path(os.environ.get("VHLO_TOOLS_CACHE") or Path.home() / ".cache" / "vhlo-tools")
    cache = caches / _AZURITE.replace("@", "-")
    program = cache / "node_modules" / ".bin" / "azurite-blob"
    if not program.exists():
        caches.mkdir(parents=True, exist_ok=True)
        with (caches / f"{cache.name}.lock").open("w") as lock:
            # Otherwise, all processes of the tests would fetch it at the same time.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.exists():
                made = folder / "npm"
                command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(made), _AZURITE]
                subprocess.run(command, check=True, timeout=600)
                made.rename(cache)
    return [str(program), "--location", str(folder), "--skipApiVersionCheck", "--silent", "--blobPort", str(port)]


def _connection(port: int) -> str:
    return (
        f"DefaultEndpointsProtocol=http;AccountName={_ACCOUNT};AccountKey={_KEY};"
        f"BlobEndpoint=http://127.0.0.1:{port}/{_ACCOUNT};"
    )


def _fill_s3(port: int) -> None:
    import boto3

    address = f"http://127.0.0.1:{port}"
    client = boto3.client(
        "s3", endpoint_url=address, region_name="us-east-1", aws_access_key_id="it", aws_secret_access_key="tests"
    )
    client.create_bucket(Bucket=BUCKET)
    client.close()


def _fill_azure(port: int) -> None:
    from azure.storage.blob import BlobServiceClient

    with BlobServiceClient.from_connection_string(_connection(port)) as client:
        client.create_container(BUCKET)


def _gcs(port: int, folder: Path) -> list[str]:
    if _TESTBENCH is not None:
        return [*shlex.split(_TESTBENCH), "localhost", str(port), "10"]
    return [sys.executable, "-m", "gcp_storage_emulator", "start", "--port", str(port), "--in-memory"]


def _fill_gcs(port: int) -> None:
    address = f"http://127.0.0.1:{port}/storage/v1/b?project=tests"
    with urlopen(
        Request(address, b'{"name": "%s"}' % BUCKET.encode(), {"Content-Type": "application/json"}), timeout=10
    ):
        pass


SERVERS = {
    "s3": Server(
        "s3",
        lambda port, folder: [sys.executable, "-m", "moto.server", "-p", str(port)],
        lambda port: {
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "it",
            "AWS_SECRET_ACCESS_KEY": "tests",
            "AWS_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        },
        _fill_s3,
    ),
    "azure": Server(
        "az", _azurite, lambda port: {"AZURE_STORAGE_CONNECTION_STRING": _connection(port)}, _fill_azure
    ),
    "gcs": Server(
        "gs",
        _gcs,
        lambda port: {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}"},
        _fill_gcs,
        keeps_conditions=_TESTBENCH is not None,
        is_simple=_TESTBENCH is None,
    ),
}  # fmt: skip


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def started(kind: str, folder: Path) -> Iterator[int]:
    """Yield the port of a server with an empty bucket, which ends with the block."""
    server, port = SERVERS[kind], free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(server.command(port, folder), stdout=log, stderr=log, cwd=folder)
        try:
            _await(port, process, folder / "log")
            server.fill(port)
            yield port
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
        except HTTPError as error:
            error.close()
            return
        except (URLError, OSError):
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"{process.args!r} does not answer:\n{log.read_text(errors='replace')[-2000:]}")
