"""Where tests write objects."""

from __future__ import annotations

from dataclasses import dataclass

from support.faulty_proxy import Faults
from vhlo_tools.files import Url


@dataclass(frozen=True)
class Bucket:
    """A place in a store that is this test's own.

    Attributes:
        kind: The kind of the store.
        url: The URL of the place, which ends with a slash.
        faults: What goes wrong between the store and this process; of no effect on memory.
        keeps_conditions: Whether the store honours the conditions of writes.
        is_simple: Whether the server is an emulator that leaves things out, see ``store_servers``.
    """

    kind: str
    url: Url
    faults: Faults
    keeps_conditions: bool
    is_simple: bool = False

    def __truediv__(self, key: str) -> Url:
        return self.url.with_key(self.url.key + key)
