"""Revisions of git: files of a revision, and what changed since."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from glob import has_magic
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from types import TracebackType
from typing import Final, Self

from vhlo_tools.errors import RevisionError
from vhlo_tools.files import (
    PROGRAM_SUFFIXES,
    Buffer,
    digest_of,
    is_saved_model,
    lfs_pointer,
    matcher,
    read_bytes,
    slices,
)
from vhlo_tools.records import dataclass

# A revision of the git repository around the working directory: its files, and their contents
#
# Only commands of git that read objects are called. They take no content from the work tree, so no filter of the
# repository is run, and no hook, no external difference, no textconv and no helper of a remote: a repository may come
# from anywhere.

#: Whatever the configuration of the repository says, nothing of it is run.
_GIT: Final = ("git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
#: A partial clone would otherwise ask its remote for what it lacks, by any program that its configuration names.
_SETTLED: Final = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_UNWANTED: Final = ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_TRACE", "GIT_DIFF_OPTS")
_LINK: Final = "120000"
_SUBMODULE: Final = "160000"
_MOST_LINKS: Final = 40


@dataclass(frozen=True, slots=True)
class Entry:
    mode: str  # as git writes it
    oid: str


class Revision:
    """A revision, as git spells it (``origin/main``, ``HEAD~1``), as a context manager."""

    def __init__(self, spelling: str, folder: Path | None = None) -> None:
        self.spelling = spelling
        self._folder = folder or Path.cwd()
        self._reader: subprocess.Popen[bytes] | None = None
        if not spelling.strip() or spelling.startswith("-") or not spelling.isprintable():
            raise RevisionError(f"{spelling!r} is not a revision of git: expected a branch, a tag or a commit")
        self.top: Path = self._work_tree()
        self._commit = self._resolved()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._reader is not None:
            for pipe in (self._reader.stdin, self._reader.stdout):
                if pipe is not None:
                    pipe.close()
            self._reader.wait()
            self._reader = None

    def place(self, path: str) -> str:
        """Return the path in the repository, with forward slashes; links of folders are followed."""
        folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 - the last link is not followed
        place = os.path.relpath(os.path.join(os.path.realpath(folder), name), self.top).replace(os.sep, "/")  # noqa: PTH118
        if place == ".." or place.startswith("../"):
            raise RevisionError(
                f"{path} is outside of the repository {self.top}: it cannot be compared with a revision"
            )
        around = (str(each) for each in PurePosixPath(place).parents)
        inside = next((each for each in around if each in self._submodules), None)
        if inside is not None:
            raise RevisionError(f"{path} is in the submodule {inside}: check it there, against a revision of its own")
        return place

    def entry(self, place: str) -> Entry | None:
        """Return the file at a path of the repository; a link is followed."""
        for _ in range(_MOST_LINKS):
            found = self._entries.get(place)
            if found is None or found.mode != _LINK:
                return found
            target = os.fsdecode(self._object(found.oid, place))
            place = os.path.normpath(str(PurePosixPath(place).parent / target))
        return None

    def below(self, place: str) -> Mapping[str, Entry]:
        """Return the files in a folder of the repository, by their paths in it."""
        start = f"{place}/"
        return {path.removeprefix(start): each for path, each in self._entries.items() if path.startswith(start)}

    def programs(self) -> Iterator[tuple[str, Entry]]:
        """Yield the files that are programs by their names, by their paths in the repository."""
        return ((path, each) for path, each in self._entries.items() if path.endswith(PROGRAM_SUFFIXES))

    @cached_property
    def renamed(self) -> Mapping[str, str]:
        """Old paths of files renamed between the revision and the index, by their new ones."""
        found = self._run(
            "diff-index", "--cached", "-M", "--diff-filter=R", "--name-status", "-z", "--no-ext-diff", "--no-textconv",
            self._commit, "--",
        )  # fmt: skip
        fields = found.split(b"\0")[:-1]
        return {os.fsdecode(new): os.fsdecode(old) for old, new in zip(fields[1::3], fields[2::3], strict=True)}

    def holding(self, oid: str) -> Sequence[str]:
        return self._places.get(oid, ())

    def oid_of(self, data: Buffer) -> str:
        """Return the id that git gives to the contents of a file."""
        digest = hashlib.new(self._hash, b"blob %d\0" % len(data), usedforsecurity=False)
        for piece in slices(data):
            digest.update(piece)
        return digest.hexdigest()

    def read(self, entry: Entry, place: str) -> bytes:
        """Return the contents of a file; for a Git LFS pointer, the contents that it points to."""
        data = self._object(entry.oid, place)
        digest = lfs_pointer(data)
        if digest is None:
            return data
        kept = self._common / "lfs" / "objects" / digest[:2] / digest[2:4] / digest
        try:
            content = kept.read_bytes()
        except OSError as error:
            raise RevisionError(
                f"{place} is in Git LFS, and its content at {self.spelling} is not here: "
                f"`git lfs fetch origin {self.spelling}` fetches it"
            ) from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise RevisionError(f"{place}: the content that Git LFS keeps is damaged: `git lfs fsck` says more")
        return content

    def points_to(self, entry: Entry, data: Buffer, place: str) -> bool:
        """Whether a file of the revision is a pointer of Git LFS to ``data``."""
        digest = lfs_pointer(self._object(entry.oid, place))
        return digest is not None and digest_of(data).hex() == digest

    @cached_property
    def _entries(self) -> Mapping[str, Entry]:
        entries = {}
        for line in self._run("ls-tree", "-r", "-z", "--full-tree", self._commit).split(b"\0")[:-1]:
            head, _, path = line.partition(b"\t")
            mode, _, oid = head.decode("ascii").split(" ")
            entries[os.fsdecode(path)] = Entry(mode, oid)
        return entries

    @cached_property
    def _places(self) -> Mapping[str, Sequence[str]]:
        places: dict[str, list[str]] = {}
        for path, entry in self._entries.items():
            places.setdefault(entry.oid, []).append(path)
        return places

    @cached_property
    def _submodules(self) -> frozenset[str]:
        return frozenset(path for path, each in self._entries.items() if each.mode == _SUBMODULE)

    @cached_property
    def _hash(self) -> str:
        return self._run("rev-parse", "--show-object-format").decode("ascii").strip()

    @cached_property
    def _common(self) -> Path:
        return self.top / os.fsdecode(self._run("rev-parse", "--git-common-dir").rstrip(b"\n"))

    def _work_tree(self) -> Path:
        try:
            return Path(os.fsdecode(self._run("rev-parse", "--show-toplevel", folder=self._folder).rstrip(b"\n")))
        except RevisionError as error:
            raise RevisionError(
                f"{self._folder} is in no work tree of git, which a revision can be compared with: {error}; a bare "
                f"repository has none until `git worktree add` makes one"
            ) from error

    def _resolved(self) -> str:
        try:
            return self._run("rev-parse", "--verify", "--quiet", f"{self.spelling}^{{commit}}").decode("ascii").strip()
        except RevisionError as error:
            shallow = self._run("rev-parse", "--is-shallow-repository").strip() == b"true"
            cause = "; this clone is shallow and lacks most of the history" if shallow else ""
            depth = " --depth=1" if shallow else ""
            raise RevisionError(
                f"{self.spelling} is not a revision of {self.top}{cause}: expected a branch, a tag or a commit; "
                f"`git fetch{depth} origin {self.spelling.removeprefix('origin/')}` fetches one, as FETCH_HEAD"
            ) from error

    def _run(self, *arguments: str, folder: Path | None = None) -> bytes:
        try:
            done = subprocess.run(
                [*_GIT, *arguments], cwd=folder or self.top, env=_environment(), capture_output=True, check=False
            )
        except FileNotFoundError as error:
            raise RevisionError("the program git is not on the PATH: install it, or check without --against") from error
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().removeprefix("fatal: ")
            raise RevisionError(said or f"git {arguments[0]} failed with the exit code {done.returncode}")
        return done.stdout

    def _object(self, oid: str, place: str) -> bytes:
        if self._reader is None:
            self._reader = subprocess.Popen(
                [*_GIT, "cat-file", "--batch"],
                cwd=self.top,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        asked, answers = self._reader.stdin, self._reader.stdout
        assert asked is not None
        assert answers is not None
        asked.write(f"{oid}\n".encode("ascii"))
        asked.flush()
        head = answers.readline().split()
        if len(head) != 3 or head[1] != b"blob":
            raise RevisionError(
                f"this clone lacks the content of {place} at {self.spelling}: "
                f"`git fetch --refetch origin` in a partial clone, or a full clone, has it"
            )
        data = answers.read(int(head[2]))
        answers.read(1)
        return data


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _UNWANTED} | _SETTLED


# Programs that are new or changed since a revision, and their old contents

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


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed of some programs."""

    changed: tuple[Change, ...]
    deleted: tuple[str, ...]  # paths of programs of the revision that are there no longer


def changes_since(revision: Revision, files: Sequence[str], selected: Sequence[str] = ()) -> Changes:
    """Return those of ``files`` that are new or changed in the work tree, committed or known to git or not.

    A file that only moved is unchanged; a copy of one that is still there is new. Git finds the old path of a file that
    moved and changed, if its new path is in the index. Deleted are programs, by their names, that the paths and globs
    ``selected`` would select.
    """
    places = [None if path == _STANDARD else revision.place(path) for path in files]
    with ThreadPoolExecutor(_THREADS) as threads:
        oids = list(threads.map(_oid, [revision] * len(files), files))
    changed = [
        change
        for path, place, oid in zip(files, places, oids, strict=True)
        if (change := _change(revision, path, place, oid)) is not None
    ]
    # What was moved is there, by its content or by what git says.
    new = {oid for place, oid in zip(places, oids, strict=True) if place is not None and revision.entry(place) is None}
    moved = {each.before for each in changed}
    gone = (place for place, entry in _selected(revision, selected) if entry.oid not in new and place not in moved)
    deleted = [os.path.relpath(revision.top / place) for place in gone if not os.path.lexists(revision.top / place)]
    return Changes(tuple(changed), tuple(deleted))


def _selected(revision: Revision, selected: Sequence[str]) -> Iterator[tuple[str, Entry]]:
    """Yield the programs of a revision that paths and globs select."""
    places = [revision.place(path) for path in selected if path != _STANDARD]
    folders = tuple("" if place == "." else f"{place}/" for place in places)
    globs = [matcher(place) for place in places if has_magic(place)]
    for place, entry in revision.programs():
        chosen = place.startswith(folders) or place in places or any(each.fullmatch(place) for each in globs)
        if chosen:
            yield place, entry


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
