"""The claim of a migration on a store behind a URL: an object beside the programs, which every client finds.

It holds the settings of the migration and the key by which objects name it, so that another client can resume, and the
time at which its client was last at work, so that no two work at the same time. What became of each object, the object
itself says: see :mod:`vhlo_tools.migration.object_results`.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from contextlib import suppress
from typing import Any, Final

import msgspec

from vhlo_tools.errors import MigrationError, ObjectChangedError
from vhlo_tools.migration.journal_file import NAME
from vhlo_tools.migration.request import MigrationSettings
from vhlo_tools.remote import Stamp, Url, delete_object, read_object, write_object

__all__ = ["Claim"]

_FORMAT: Final = 1
#: A client renews its claim after so many seconds, and is gone if it has not for so many.
_RENEWED: Final = 20.0
_GONE: Final = 120.0
_MOST: Final = 1 << 20


class _Claimed(msgspec.Struct, frozen=True):
    """What the object holds.

    Attributes:
        format: The version of this form.
        key: The key of the migration.
        run: The number of its runs.
        settings: Its settings, as they are pinned.
        client: The client: its machine and its process.
        seen: When it was last at work, in seconds since 1970.
    """

    format: int
    key: str
    run: int
    settings: dict[str, Any]
    client: str
    seen: float


class Claim:
    """The claim of one run of a migration.

    Args:
        folder: The prefix of the store, or the URL of the object itself.
        settings: The settings of the migration.
        restart: Whether to begin another migration, whatever is claimed; not while a client is at work.

    Attributes:
        key: The key of the migration.
        run: The number of this run.

    Raises:
        MigrationError: If another client is at work, or an unfinished migration has other settings.
        StoreError: If the store cannot be used.
    """

    def __init__(self, folder: Url, settings: MigrationSettings, *, restart: bool = False) -> None:
        self.url = folder / NAME if folder.is_prefix else folder
        self._client = f"{socket.gethostname()}:{os.getpid()}"
        self._settings = settings.pinned()
        found, stamp = self._found(restart=restart)
        self.key = found.key if found else secrets.token_hex(4)
        self.run = found.run + 1 if found else 1
        self._renewed = 0.0
        self._stamp = stamp
        self.renew()

    def renew(self) -> None:
        """Say that this client is at work, if it has not been said for a while.

        Raises:
            MigrationError: If another client has taken the migration over.
        """
        if time.monotonic() - self._renewed < _RENEWED and self._renewed:
            return
        claimed = _Claimed(_FORMAT, self.key, self.run, self._settings, self._client, time.time())
        data = json.dumps(msgspec.to_builtins(claimed), indent=1).encode()
        try:
            self._stamp = write_object(self.url, [data], replaces=self._stamp)
        except (ObjectChangedError, FileExistsError) as error:
            raise MigrationError(
                f"another client has taken over the migration that {self.url} claims: this one ends; every object is "
                f"whole"
            ) from error
        self._renewed = time.monotonic()

    def release(self) -> None:
        """End the claim: the migration is complete."""
        if self._stamp is not None:
            with suppress(ObjectChangedError):
                delete_object(self.url, replaces=self._stamp)
        self._stamp = None

    def leave(self) -> None:
        """Let another client resume at once; nothing if the claim has ended."""
        if self._stamp is None:
            return
        claimed = _Claimed(_FORMAT, self.key, self.run, self._settings, self._client, 0.0)
        with suppress(ObjectChangedError, OSError):
            write_object(self.url, [msgspec.json.encode(claimed)], replaces=self._stamp)

    def _found(self, *, restart: bool) -> tuple[_Claimed | None, Stamp | None]:
        """Return the claim that is there, if this client may resume it, and its version."""
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
        if age < _GONE and found.client != self._client:
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
