"""Lease of a migration on a store behind a URL: an object beside the programs, which every client finds.

It holds the settings of the migration and the key by which objects name it, so that another client can resume, and the
time at which its client was last at work, so that no two work at the same time. A thread renews that time, because a
batch may take longer than a client may be silent. The outcome for each object is in that object: see
:mod:`vhlo_tools.stores.migration_records`.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import socket
import time
from contextlib import suppress
from threading import Event, Thread
from typing import Any, Final

import msgspec

from vhlo_tools.errors import MigrationError, ObjectChangedError
from vhlo_tools.files import Stamp, Url, delete_object, read_object, write_object
from vhlo_tools.stores.journal import NAME
from vhlo_tools.stores.migration_settings import MigrationSettings

_FORMAT: Final = 1
#: A client renews its claim after so many seconds, and is gone if it has not for so many. Tests set them.
_RENEWED = 20.0
_GONE = 120.0
_MOST: Final = 1 << 20


class _Claimed(msgspec.Struct, frozen=True):
    """The contents of the claim's object."""

    format: int  # version of this form
    key: str
    run: int
    settings: dict[str, Any]
    client: str  # machine, process and a random mark, because a process may run several migrations
    seen: float  # time of last work, in seconds since 1970


class StoreLease:
    """Lease of one run of a migration, kept by a thread until it ends.

    ``folder`` is the prefix of the store, or the URL of the object itself. ``restart`` begins another migration, but
    not while a client is at work.
    """

    def __init__(self, folder: Url, settings: MigrationSettings, *, restart: bool = False) -> None:
        self.url: Url = folder / NAME if folder.is_prefix else folder
        self._process = os.getpid()
        self._client = f"{socket.gethostname()}:{self._process}:{secrets.token_hex(4)}"
        self._settings = settings.pinned()
        found, self._stamp = self._found(restart=restart)
        self.key: str = found.key if found else secrets.token_hex(4)
        self.run: int = found.run + 1 if found else 1
        self._lost: MigrationError | None = None
        self._failure: OSError | None = None
        self._renewed = time.monotonic()
        self._write(time.time())
        self._ended = Event()
        self._keeper = Thread(target=self._keep, name="vhlo-claim", daemon=True)
        self._keeper.start()
        # An iterator that nobody ended is closed when there are neither threads nor connections any more.
        atexit.register(self.leave)

    def check(self) -> None:
        """Find out, without a request, whether this client may go on; raise ``MigrationError`` if not."""
        if self._lost is not None:
            raise self._lost
        # Before another client may begin: by its clock, from the last renewal that the store has.
        silent = time.monotonic() - self._renewed
        if silent > _GONE - _RENEWED:
            raise MigrationError(
                f"{self.url}, the claim of this migration, could not be renewed for {silent:.0f} s "
                f"({self._failure or 'the store does not answer'}): another client may begin, so this one ends; every "
                f"object is whole, and the same call resumes"
            )

    def release(self) -> None:
        """End the claim of a complete migration."""
        self._end()
        if self._stamp is not None:
            with suppress(ObjectChangedError):
                delete_object(self.url, replaces=self._stamp)
        self._stamp = None

    def leave(self) -> None:
        """Let another client resume at once; do nothing if the claim has ended, or is that of a parent process."""
        if os.getpid() != self._process:
            return
        self._end()
        if self._stamp is not None and self._lost is None:
            with suppress(MigrationError, OSError):
                self._write(0.0)
        self._stamp = None

    def _end(self) -> None:
        self._ended.set()
        # What it has begun to write, it writes: its stamp is the one to replace.
        self._keeper.join()
        atexit.unregister(self.leave)

    def _keep(self) -> None:
        """Renew the claim until it ends or is lost; a failure is retried at the next turn."""
        while not self._ended.wait(_RENEWED):
            began = time.monotonic()
            try:
                self._write(time.time())
            except MigrationError as error:
                self._lost = error
                return
            except OSError as error:
                self._failure = error
            else:
                self._renewed = began

    def _write(self, seen: float) -> None:
        """Replace the version of the claim that this client knows."""
        claimed = _Claimed(_FORMAT, self.key, self.run, self._settings, self._client, seen)
        data = json.dumps(msgspec.to_builtins(claimed), indent=1).encode()
        try:
            self._stamp = write_object(self.url, [data], replaces=self._stamp)
        except (ObjectChangedError, FileExistsError) as error:
            there = self._own()
            if there is None:
                raise MigrationError(
                    f"another client has taken over the migration that {self.url} claims: this one ends; every object "
                    f"is whole"
                ) from error
            # The answer to an earlier request was lost, and the request was done.
            self._stamp = write_object(self.url, [data], replaces=there)

    def _own(self) -> Stamp | None:
        """Return the version of the stored claim if this client has written it."""
        with suppress(FileNotFoundError, msgspec.DecodeError):
            data, stamp = read_object(self.url, head=_MOST)
            if msgspec.json.decode(bytes(data), type=_Claimed).client == self._client:
                return stamp
        return None

    def _found(self, *, restart: bool) -> tuple[_Claimed | None, Stamp | None]:
        """Return the stored claim, if this client may resume it, and its version."""
        try:
            data, stamp = read_object(self.url, head=_MOST)
        except FileNotFoundError:
            return None, None
        try:
            found = msgspec.json.decode(bytes(data) if stamp.size <= _MOST else b"", type=_Claimed)
        except msgspec.DecodeError as error:
            if restart:
                return None, stamp
            raise MigrationError(
                f"{self.url} is not the claim of a migration ({error}): --restart (restart=True) replaces it"
            ) from error
        age = time.time() - found.seen
        if age < _GONE:
            raise MigrationError(
                f"{self.url} is in use by another migration, of the client {found.client}, which was at work "
                f"{max(age, 0):.0f} s ago: wait until it has ended, or {_GONE:.0f} s after it was stopped"
            )
        if restart:
            return None, stamp
        if found.format != _FORMAT or found.settings != self._settings:
            raise MigrationError(
                f"{self.url} claims an unfinished migration with other settings: resume it with the same options, or "
                f"begin anew with --restart (restart=True)"
            )
        return found, stamp
