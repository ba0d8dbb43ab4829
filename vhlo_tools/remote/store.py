"""What a store must be able to do, whatever its kind, and what it says of objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Protocol

from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.remote.places import Url


@dataclass(frozen=True, slots=True)
class Stamp:
    """One version of an object.

    Attributes:
        size: The number of its bytes.
        token: What the store compares in conditional requests: an ETag, or a generation.
        version_id: The name under which the store keeps this version after it is replaced, if it keeps versions.
        modified: When it was written, in seconds since 1970, if the store says so.
        kept: The properties that a write keeps, as the library of the store takes them: media type, metadata.
    """

    size: int
    token: str
    version_id: str | None = None
    modified: float | None = None
    kept: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Listed:
    """An object in a listing.

    Attributes:
        url: Its URL.
        stamp: Its version; a listing does not name the properties that are kept.
    """

    url: Url
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold at the moment in which an object appears.

    Attributes:
        token: The token of the version that is replaced; ``None`` if there must be no object.
        always: Whether nothing need hold.
    """

    token: str | None = None
    always: bool = False


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
        """Remove what was written; the store keeps nothing."""


class Store(Protocol):
    """The objects of one account, or of one process for ``memory``; threads may share one.

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
        """Close its connections; it is not used afterwards."""

    @property
    def is_conditional(self) -> bool | None:
        """Whether the store is known to honour the conditions of writes; ``None`` if it has to be tried."""
