"""Where tests write objects."""

from __future__ import annotations

from dataclasses import dataclass

from support.faulty_proxy import Faults
from vhlo_tools.files import Url


@dataclass(frozen=True)
class Bucket:
    """A place in a store that is this test's own."""

    kind: str  # the kind of the store
    url: Url  # the URL of the place, which ends with a slash
    faults: Faults  # what goes wrong between the store and this process; of no effect on memory
    keeps_conditions: bool  # whether the store honours the conditions of writes
    is_simple: bool = False  # whether the server is an emulator that leaves things out, see ``store_servers``

    def __truediv__(self, key: str) -> Url:
        return self.url.with_key(self.url.key + key)
