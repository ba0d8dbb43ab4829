"""Contents of the page for a store: readers of its files, ends of their windows, and features that hold them back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Final

from vhlo_tools.files import said_of_others
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass
from vhlo_tools.spec import known_features, known_jax_releases, known_releases, known_versions
from vhlo_tools.viewing.columns import version_number

if TYPE_CHECKING:
    from vhlo_tools.stores import StoreFile

#: The number of files that a page lists, those first that leave their windows first; the others are counted.
MOST_FILES: Final = 2000
#: What a table of results is about.
_TABLES: Final = {
    "migration": "a migration",
    "store-status": "a look at windows",
    "store-verification": "a comparison of stores",
}


@dataclass(frozen=True, slots=True)
class ReaderRow:
    """A release, and the number of files of the store that it reads."""

    package: str
    release: str
    date: str
    reads: int


@dataclass(frozen=True, slots=True)
class BlockerRow:
    """A feature that keeps files from older consumers."""

    id: str
    title: str
    introduced: int  # the position of the version; -1 if unknown
    files: int  # their number
    remedy: str


@dataclass(frozen=True, slots=True)
class TallyRow:
    """Files that have something in common."""

    what: str  # the common property
    files: int  # their number
    bytes: int = 0  # 0 if unknown


@dataclass(frozen=True, slots=True)
class StoreFileRow:
    path: str
    kind: str
    size: int  # in bytes
    version: str  # the version that it was written for
    readable_since: str  # the oldest version that reads it
    leaves: str  # the last day of the window that it leaves first
    error: str  # why it could not be read


@dataclass(frozen=True, slots=True)
class StoreContents:
    """Contents of the page for a store, or for the results of work on one."""

    name: str
    today: str  # the day for which the page was made
    lines: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str, str], ...]  # number, day, and description of every version
    number: int  # files that have windows and readers
    tallies: tuple[tuple[str, tuple[TallyRow, ...]], ...]  # by the title of the table
    readers: tuple[ReaderRow, ...]
    ends: tuple[tuple[str, int], ...]  # days on which files leave their first window, with how many; in order
    blockers: tuple[BlockerRow, ...]  # most frequent first
    files: tuple[StoreFileRow, ...]
    files_number: int  # of all files
    others: int  # files beside them that are no programs


def store_contents(
    files: Iterable[StoreFile], features: Mapping[str, int], *, name: str, today: date, others: int
) -> StoreContents:
    """``files`` are in the order in which they leave their windows; ``features`` counts files by blocker.

    ``others`` is the number of files that the store holds beside them.
    """
    all_files = [*files]
    dated = [each for each in all_files if each.version is not None]
    ends = Counter(str(left[1]) for each in dated if (left := each.leaves(("backward", "jax-export"))))
    past = sum(count for day, count in ends.items() if day < str(today))
    unreadable = sum(1 for each in all_files if each.error is not None)
    versions: dict[str, list[int]] = {}
    kinds: dict[str, list[int]] = {}
    for each in all_files:
        kinds.setdefault(each.kind or "unreadable", []).append(each.size)
        if each.version is not None:
            versions.setdefault(str(each.version.minor_release), []).append(each.size)
    order = {str(each.version): number for number, each in enumerate(known_versions())}
    blockers = _blockers(features)
    readers = _readers(dated, today)
    # The last of each package counts.
    newest = {each.package: each for each in readers}.values()
    coming = min((day for day in ends if day >= str(today)), default=None)
    following = f"; the next leave on {coming} ({ends[coming]:,})" if coming else ""
    held = f"{len(all_files):,}, of which {len(dated):,} are artifacts or jax.export files"
    lines = (
        ("Files", held + said_of_others(others)),
        ("Read by", ", ".join(f"{each.package} {each.release}: {each.reads:,}" for each in newest)),
        ("Windows", f"{past:,} have left theirs{following}"),
        ("Held back by", _shortly(blockers) or "nothing"),
        ("Unreadable", f"{unreadable:,}"),
    )
    return StoreContents(
        name=printable(name),
        today=str(today),
        lines=lines,
        versions=_versions(),
        number=len(dated),
        tallies=(
            ("By version", _tally(sorted(versions.items(), key=lambda item: order.get(item[0], len(order))))),
            ("By kind", _tally(sorted(kinds.items(), key=lambda item: -len(item[1])))),
        ),
        readers=readers,
        ends=tuple(sorted(ends.items())),
        blockers=blockers,
        files=tuple(_file(each) for each in all_files[:MOST_FILES]),
        files_number=len(all_files),
        others=others,
    )


def results_contents(summary: Mapping[str, object], *, name: str, today: date) -> StoreContents:
    """Show the results of a migration, a check of windows, or a comparison of stores.

    ``summary`` is the output of ``vhlo report --output-format json``.
    """
    files, sizes, versions = (_object(summary, key) for key in ("files", "sizes", "versions"))
    features, reasons = _object(summary, "features"), _object(_object(summary, "reasons"), "counts")
    counts = {feature: _number(_object(features, feature), "files") for feature in features}
    total = sum(_number(files, status) for status in files)
    said = _object(summary, "metadata")
    blockers = _blockers(counts)
    table = str(summary.get("table"))
    statuses = [TallyRow(printable(each), _number(files, each), _number(sizes, each)) for each in files]
    shown = ", ".join(f"{row.files:,} {row.what}" for row in statuses)
    return StoreContents(
        name=printable(name),
        today=str(today),
        lines=(
            ("Results of", _TABLES.get(table, table)),
            ("Asked for", printable(", ".join(f"{key} {value}" for key, value in said.items())) or "nothing more"),
            ("Files", f"{total:,}: {shown}"),
            ("Held back by", _shortly(blockers) or "nothing"),
        ),
        versions=_versions(),
        number=0,
        tallies=(
            ("By status", tuple(statuses)),
            ("By version", tuple(TallyRow(printable(each), _number(versions, each)) for each in versions)),
            ("By reason", tuple(TallyRow(printable(each), _number(reasons, each)) for each in reasons)),
        ),
        readers=(),
        ends=(),
        blockers=blockers,
        files=(),
        files_number=total,
        others=0,
    )


def _shortly(blockers: Iterable[BlockerRow]) -> str:
    return ", ".join(f"{each.id} ({each.files:,})" for each in [*blockers][:4])


def _versions() -> tuple[tuple[str, str, str], ...]:
    return tuple((str(each.version), str(each.date), each.brought) for each in known_versions())


def _object(holder: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = holder.get(key)
    return found if isinstance(found, Mapping) else {}


def _number(holder: Mapping[str, object], key: str) -> int:
    found = holder.get(key)
    return found if isinstance(found, int) else 0


def _tally(groups: Iterable[tuple[str, list[int]]]) -> tuple[TallyRow, ...]:
    return tuple(TallyRow(printable(what), len(sizes), sum(sizes)) for what, sizes in groups)


def _blockers(features: Mapping[str, int]) -> tuple[BlockerRow, ...]:
    known = {each.id: each for each in known_features()}
    rows = []
    for feature, number in sorted(features.items(), key=lambda item: (-item[1], item[0])):
        held, shown = known.get(feature), printable(feature)
        if held is None:
            rows.append(BlockerRow(shown, shown, -1, number, ""))
        else:
            rows.append(BlockerRow(shown, held.title, version_number(held.introduced), number, held.remedy))
    return tuple(rows)


def _readers(files: Sequence[StoreFile], today: date) -> tuple[ReaderRow, ...]:
    """Count files by release: a file says from which to which release it is read."""
    packages = [*dict.fromkeys(each.package for each in known_releases())]
    # Not by date: a release of an older series may come after one of a newer.
    in_order = sorted(known_releases(), key=lambda each: (packages.index(each.package), each.stablehlo))
    all_releases = [(each.package, each.release, each.date) for each in in_order]
    # jax reads the files of jax.export, and no artifacts.
    if any(each.package == "jax" for file in files for each in file.readers):
        all_releases += [("jax", each.release, each.date) for each in known_jax_releases()]
    releases = [each for each in all_releases if each[2] <= today]
    places = {(package, release): number for number, (package, release, _) in enumerate(releases)}
    counts = Counter[int]()
    for (package, oldest, newest), number in Counter(
        (each.package, each.oldest, each.newest) for file in files for each in file.readers
    ).items():
        if (package, oldest) in places and (package, newest) in places:
            for at in range(places[package, oldest], places[package, newest] + 1):
                counts[at] += number
    return tuple(
        ReaderRow(package, release, str(day), counts[number]) for number, (package, release, day) in enumerate(releases)
    )


def _file(each: StoreFile) -> StoreFileRow:
    left = each.leaves(("backward", "jax-export"))
    return StoreFileRow(
        path=printable(each.path),
        kind=each.kind or "",
        size=each.size,
        version=str(each.version or ""),
        readable_since=str(each.readable_since or ""),
        leaves=str(left[1]) if left else "",
        error=printable(each.error or ""),
    )
