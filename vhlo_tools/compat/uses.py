"""Uses of newly introduced features in a program."""

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
    """A use of something that a version introduced."""

    feature: str  # the id of the feature, or another name
    level: Level  # ``error`` if the conversion refuses it, ``warning`` if it overlooks it
    kind: FindingKind
    what: str  # short description
    since: Version  # the version that introduced it
    floor: Version  # the oldest version at which it matters
    op: str | None = None  # name in programs
    path: str | None = None
    function: str | None = None
    location: SourceLocation | None = None
    by_call: bool = False  # ``location`` is that of a call of the function; the op has none
    count: int = 1  # ops with it in one function and source line
    accepted_until: Version | None = None  # the last version whose readers accept it nevertheless
    read_since: Version | None = None  # first patch release of an older version whose readers accept it
    unknown: bool = False  # the specification lacks it; ``since`` is the newest possible introduction

    def matters_at(self, version: Version) -> bool:
        """Whether it excludes the program from ``version``."""
        return self.floor <= version.minor_release < self.since

    def is_refused_by(self, reader: Version) -> bool:
        accepted = self.accepted_until is not None and reader.minor_release <= self.accepted_until
        sooner = self.read_since is not None and reader >= self.read_since
        return reader.minor_release < self.since and not accepted and not sooner


# Names may come from hostile files.
@lru_cache(maxsize=4096)
def use_of(name: Name, level: Level, floor: Version) -> Use:
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
    """In the order in which uses are reported."""
    yield from sorted(names)
