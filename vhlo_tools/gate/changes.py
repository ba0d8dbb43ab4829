"""Programs that are new or changed since a revision, and their old contents."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import RevisionError
from vhlo_tools.files import is_saved_model, read_bytes
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.files import Buffer
    from vhlo_tools.gate.revision import Entry, Revision

_STANDARD: Final = "-"
_THREADS: Final = 4


@dataclass(frozen=True, slots=True)
class Change:
    """A program that is new or changed."""

    path: str
    before: str | None = None  # path in the repository at the revision; None if new
    entry: Entry | None = None  # None for a folder, and if the program is new

    def old(self, revision: Revision, scratch: Path) -> Buffer | Path:
        """Return the old bytes of a file, or a copy of an old folder, made in ``scratch``."""
        assert self.before is not None
        if self.entry is not None:
            return revision.read(self.entry, self.before)
        top = Path(mkdtemp(dir=scratch))
        for place, entry in revision.below(self.before).items():
            path = Path(os.path.normpath(top / place))
            if not path.is_relative_to(top):
                raise RevisionError(f"{self.before}/{place} at {revision.spelling} is no path of a file: git fsck")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(revision.read(entry, f"{self.before}/{place}"))
        return top


def changes_since(revision: Revision, files: Sequence[str]) -> list[Change]:
    """Return those of ``files`` that are new or changed in the work tree, committed or known to git or not.

    A file that only moved is unchanged; a copy of one that is still there is new. Git finds the old path of a file that
    moved and changed, if its new path is in the index.
    """
    places = [None if path == _STANDARD else revision.place(path) for path in files]
    with ThreadPoolExecutor(_THREADS) as threads:
        oids = threads.map(_oid, [revision] * len(files), files)
        return [
            change
            for path, place, oid in zip(files, places, oids, strict=True)
            if (change := _change(revision, path, place, oid)) is not None
        ]


def _oid(revision: Revision, path: str) -> str | None:
    """``None`` for a folder, and for a file that cannot be read: its examination says why."""
    if path == _STANDARD or is_saved_model(path):
        return None
    try:
        return revision.oid_of(read_bytes(Path(path)))
    except (OSError, ValueError):
        return None


def _change(revision: Revision, path: str, place: str | None, oid: str | None) -> Change | None:
    if place is None:
        return Change(path)
    if is_saved_model(path):
        return _folder_change(revision, path, place)
    entry = revision.entry(place)
    if entry is None:
        if oid is not None and any(not (revision.top / old).exists() for old in revision.holding(oid)):
            return None
        before = revision.renamed.get(place)
        entry = revision.entry(before) if before is not None else None
        return Change(path) if before is None or entry is None else Change(path, before, entry)
    if oid == entry.oid or (oid is not None and revision.points_to(entry, read_bytes(Path(path)), place)):
        return None
    return Change(path, place, entry)


def _folder_change(revision: Revision, path: str, place: str) -> Change | None:
    before = revision.below(place)
    if not before:
        return Change(path)
    found = {
        os.path.relpath(os.path.join(folder, name), path).replace(os.sep, "/")  # noqa: PTH118
        for folder, _, names in os.walk(path)
        for name in names
    }
    same = found == before.keys() and all(
        _oid(revision, f"{path}/{each}") == entry.oid
        or revision.points_to(entry, read_bytes(Path(path, each)), f"{place}/{each}")
        for each, entry in before.items()
    )
    return None if same else Change(path, place)
