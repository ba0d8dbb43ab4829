"""Protocol of stores, and descriptions of objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Protocol

from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.remote.places import Url


@dataclass(frozen=True, slots=True)
class Stamp:
    """One version of an object."""

    size: int
    token: str  # for conditional requests: an ETag, or a generation
    version_id: str | None = None  # name of this version after it is replaced, if the store keeps versions
    modified: float | None = None  # in seconds since 1970, if the store says so
    #: Properties that a write keeps, as the library of the store takes them: media type, metadata.
    kept: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Listed:
    """An object in a listing, whose stamp lacks the kept properties."""

    url: Url
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition that must hold at the moment in which an object appears."""

    token: str | None = None  # of the version that is replaced; None if there must be no object
    always: bool = False  # whether nothing need hold


#: The seconds that closing connections may take.
CLOSING: Final = 2

#: There must be no object of that key.
NEW = Condition()
#: An object is replaced, if there is one.
ANY = Condition(always=True)


class Upload(Protocol):
    """An object that is being written in parts, and appears with :meth:`finish`."""

    def add(self, part: bytes) -> None:
        """Write the next part; parts may be on their way at the same time."""

    def finish(self) -> Stamp:
        """Let the object appear, if the condition holds."""

    def abort(self) -> None:
        """Remove the written parts; the store keeps nothing."""


class Store(Protocol):
    """Objects of one account, or of one process for ``memory``; threads may share a store.

    Methods raise :class:`FileNotFoundError` for a missing object, :class:`~vhlo_tools.remote.failures.ConditionError`
    if a condition does not hold, and :class:`~vhlo_tools.errors.StoreError` for everything else.
    """

    def stamp(self, url: Url) -> Stamp:
        """Return the present version of an object."""

    def read(self, url: Url, start: int, size: int, token: str | None) -> tuple[bytes, Stamp]:
        """Return up to ``size`` bytes at an offset, of the version with ``token`` if it is given."""

    def pages(self, prefix: Url) -> Iterator[list[Listed]]:
        """Yield the objects whose keys begin with the key of ``prefix``, page by page in the order of the store."""

    def put(self, url: Url, data: bytes, condition: Condition, metadata: Mapping[str, str], old: Stamp | None) -> Stamp:
        """Write an object in one request; it has ``metadata`` and the kept properties of ``old``."""

    def upload(self, url: Url, condition: Condition, metadata: Mapping[str, str], old: Stamp | None) -> Upload:
        """Begin to write an object in parts."""

    def delete(self, url: Url, condition: Condition = ANY) -> None:
        """Delete an object, if it is there."""

    def close(self) -> None:
        """Close the connections; the store is not used afterwards."""

    @property
    def is_conditional(self) -> bool | None:
        """Whether the store is known to honour the conditions of writes; ``None`` if it has to be tried."""
