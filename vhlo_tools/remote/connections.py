"""Connections to stores, one for each account and process, made on first use."""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import MissingExtraError
from vhlo_tools.system import after_fork

if TYPE_CHECKING:
    from vhlo_tools.remote.places import StoreKind, Url
    from vhlo_tools.remote.store import Store

#: The module of each kind, its class, and the package that it needs.
_STORES: Final[dict[StoreKind, tuple[str, str, str]]] = {
    "s3": ("s3_store", "S3Store", "s3fs"),
    "gcs": ("gcs_store", "GcsStore", "gcsfs"),
    "azure": ("azure_store", "AzureStore", "adlfs"),
    "memory": ("memory_store", "MemoryStore", "fsspec"),
}

_LOCK = Lock()
# A forked process inherits connections that it must not use: they are kept by process.
_OPEN: dict[tuple[int, StoreKind, str], Store] = {}


def store_of(url: Url) -> Store:
    """Credentials and endpoints are those of the environment and of fsspec's configuration at the first use."""
    key = (os.getpid(), url.kind, url.account)
    found = _OPEN.get(key)
    if found is None:
        with _LOCK:
            found = _OPEN.get(key)
            if found is None:
                found = _OPEN[key] = _connect(url)
    return found


def forget_connections() -> None:
    """Connect anew at the next use, with the settings and the credentials of then."""
    with _LOCK:
        mine = [key for key in _OPEN if key[0] == os.getpid()]
        closing = [_OPEN.pop(key) for key in mine]
    for store in closing:
        # Of a connection that does not close in time, the process closes what is left.
        with suppress(Exception):
            store.close()


def _connect(url: Url) -> Store:
    module, name, package = _STORES[url.kind]
    try:
        made: Store = getattr(import_module(f"vhlo_tools.remote.{module}"), name)(url)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{url}: {package} is needed for {url.scheme}:// and cannot be imported ({error}): pip install "
            "'vhlo-tools[remote]'"
        ) from error
    return made


def _after_fork() -> None:
    global _LOCK
    # Another thread of the parent may have held it. Connections of the parent stay as they are: closing them here would
    # wait for a thread that only the parent has.
    _LOCK = Lock()


after_fork(_after_fork)
atexit.register(forget_connections)
