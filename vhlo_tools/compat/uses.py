"""Uses of things that a version introduced, in a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from vhlo_tools.compat.introductions import Name
from vhlo_tools.dialect import known_specification
from vhlo_tools.findings import FindingKind, Level, SourceLocation
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version


@dataclass(frozen=True, slots=True)
class Use:
    """A use of something that a version introduced.

    Attributes:
        feature: The id of the feature, or a name if it is not a feature.
        level: ``error`` if the conversion refuses it, ``warning`` if it overlooks it.
        kind: Its kind.
        what: A short description of what was found.
        since: The version that introduced it.
        floor: The oldest version at which it matters.
        op: The op with it, by its name in programs.
        path: The path of the op in the program.
        function: The function that contains the op.
        location: The location in the user's source.
        by_call: Whether ``location`` is that of a call of the function, because the op has none of its own.
        accepted_until: The last version whose readers accept it nevertheless; ``None`` if none does.
        count: The number of ops with it in one function and source line.
        read_since: The first patch release of an older version whose readers accept it; ``None`` if none does.
        unknown: Whether the specification does not have it; ``since`` is then the newest version that may have
            introduced it.
    """

    feature: str
    level: Level
    kind: FindingKind
    what: str
    since: Version
    floor: Version
    op: str | None = None
    path: str | None = None
    function: str | None = None
    location: SourceLocation | None = None
    by_call: bool = False
    count: int = 1
    accepted_until: Version | None = None
    read_since: Version | None = None
    unknown: bool = False

    def matters_at(self, version: Version) -> bool:
        """Return whether it excludes the program from ``version``."""
        return self.floor <= version.minor_release < self.since

    def is_refused_by(self, reader: Version) -> bool:
        """Return whether a reader of version ``reader`` rejects bytes with it."""
        accepted = self.accepted_until is not None and reader.minor_release <= self.accepted_until
        sooner = self.read_since is not None and reader >= self.read_since
        return reader.minor_release < self.since and not accepted and not sooner


# Names may come from hostile files.
@lru_cache(maxsize=4096)
def use_of(name: Name, level: Level, floor: Version) -> Use:
    """Return the use of something that a version introduced, without its place."""
    if not name.known:
        # Whether the conversion overlooks it is not known either.
        return Use(name.name, "error", name.kind, name.name, name.since, floor, unknown=True)
    specs = known_specification()
    base = name.name.partition(".")[0].partition(" ")[0]
    features = (feature for feature in specs.features_of(base) if feature.introduced == name.since)
    known = specs.feature(base) or next(features, None)
    read_since = known.read_since if known else None
    named = known.id if known else name.name
    return Use(named, level, name.kind, name.name, name.since, floor, read_since=read_since)


def in_order(names: Iterable[Name]) -> Iterator[Name]:
    """Yield names in the order in which their uses are reported."""
    yield from sorted(names)
