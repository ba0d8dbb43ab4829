"""What the page for a store shows: who reads its files, when they leave their windows, and what holds them back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Final

from vhlo_tools.dialect import known_features, known_releases, known_versions
from vhlo_tools.pages.graph_columns import version_number
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass

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
    """A release, and how many files of the store it reads.

    Attributes:
        package: The package.
        release: Its version.
        date: The day of its release.
        reads: The number of files that it reads.
    """

    package: str
    release: str
    date: str
    reads: int


@dataclass(frozen=True, slots=True)
class BlockerRow:
    """A feature that keeps files from older consumers.

    Attributes:
        id: The feature.
        title: What it is, in words.
        introduced: The version that brought it, by its position; -1 if it is unknown.
        files: The number of files with it.
        remedy: What to do.
    """

    id: str
    title: str
    introduced: int
    files: int
    remedy: str


@dataclass(frozen=True, slots=True)
class TallyRow:
    """Files that have something in common.

    Attributes:
        what: What they have in common.
        files: Their number.
        bytes: Their size; 0 if it is not known.
    """

    what: str
    files: int
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class StoreFileRow:
    """A file of a store.

    Attributes:
        path: Its path.
        kind: Its kind.
        size: Its size in bytes.
        version: The version that it was written for.
        readable_since: The oldest version that reads it.
        leaves: The last day of the window that it leaves first.
        error: Why it could not be read.
    """

    path: str
    kind: str
    size: int
    version: str
    readable_since: str
    leaves: str
    error: str


@dataclass(frozen=True, slots=True)
class StoreContents:
    """All that a page says of a store, or of the results of work on one.

    Attributes:
        name: The name of the store.
        today: The day for which the page was made.
        lines: The lines that matter.
        versions: Every version: its number, its day, what it brought.
        number: The number of files that have windows and readers.
        tallies: Files by what they have in common, by the title of the table.
        readers: Releases with the number of files that they read.
        ends: Days on which files leave their first window, with how many; in order.
        blockers: Features that keep files from older consumers, most frequent first.
        files: The files.
        files_number: The number of all files.
    """

    name: str
    today: str
    lines: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str, str], ...]
    number: int
    tallies: tuple[tuple[str, tuple[TallyRow, ...]], ...]
    readers: tuple[ReaderRow, ...]
    ends: tuple[tuple[str, int], ...]
    blockers: tuple[BlockerRow, ...]
    files: tuple[StoreFileRow, ...]
    files_number: int


def store_contents(files: Iterable[StoreFile], features: Mapping[str, int], *, name: str, today: date) -> StoreContents:
    """Return what a page says of a store.

    Args:
        files: Its files, in the order in which they leave their windows.
        features: The number of files by the feature that keeps them from older consumers.
        name: The name of the store.
        today: The day for which the page is made.
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
    lines = (
        ("Files", f"{len(all_files):,}, of which {len(dated):,} are artifacts or jax.export files"),
        ("Read by", ", ".join(f"{each.package} {each.release}: {each.reads:,}" for each in newest)),
        ("Windows", f"{past:,} have left theirs; the next leave on {_next(ends, today)}"),
        ("Held back by", _shortly(blockers) or "nothing: all can be for any version"),
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
    )


def results_contents(summary: Mapping[str, object], *, name: str, today: date) -> StoreContents:
    """Return what a page says of the results of a migration, a check of windows, or a comparison of stores.

    Args:
        summary: What ``vhlo store report --output-format json`` prints.
        name: The name of the results.
        today: The day for which the page is made.
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


def _next(ends: Mapping[str, int], today: date) -> str:
    coming = min((day for day in ends if day >= str(today)), default=None)
    return f"{coming} ({ends[coming]:,})" if coming else "no known day"


def _tally(groups: Iterable[tuple[str, list[int]]]) -> tuple[TallyRow, ...]:
    return tuple(TallyRow(printable(what), len(sizes), sum(sizes)) for what, sizes in groups)


def _blockers(features: Mapping[str, int]) -> tuple[BlockerRow, ...]:
    known = {each.id: each for each in known_features()}
    rows = []
    for feature, number in sorted(features.items(), key=lambda item: (-item[1], item[0])):
        held = known.get(feature)
        rows.append(
            BlockerRow(
                printable(feature),
                held.title if held else printable(feature),
                version_number(held.introduced) if held else -1,
                number,
                held.remedy if held else "",
            )
        )
    return tuple(rows)


def _readers(files: Iterable[StoreFile], today: date) -> tuple[ReaderRow, ...]:
    """Return the releases with the number of files that they read: a file says from which to which release."""
    releases = [each for each in known_releases() if each.date <= today]
    places = {(each.package, each.release): number for number, each in enumerate(releases)}
    counts = Counter[int]()
    for (package, oldest, newest), number in Counter(
        (each.package, each.oldest, each.newest) for file in files for each in file.readers
    ).items():
        if (package, oldest) in places and (package, newest) in places:
            for at in range(places[package, oldest], places[package, newest] + 1):
                counts[at] += number
    return tuple(
        ReaderRow(each.package, each.release, str(each.date), counts[number]) for number, each in enumerate(releases)
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
