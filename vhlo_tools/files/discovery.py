"""Discovery of programs: the files or objects that a path on a command line names, without backups of migrations."""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vhlo_tools.errors import InvalidProgramError, MalformedArtifactError
from vhlo_tools.files.atomic_writes import MANIFEST_SUFFIX, SIGNATURE_SUFFIX, opened_folder
from vhlo_tools.files.mapping import kind_of_file, map_file, open_regular, view
from vhlo_tools.files.recognition import MAGIC, is_saved_model, recognise
from vhlo_tools.files.urls import Url, is_url, place
from vhlo_tools.lazy import pattern
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass
from vhlo_tools.system import BINARY, NO_BLOCKING, NO_LINKS, read_at

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from vhlo_tools.files.connections import Listed
    from vhlo_tools.files.mapping import View

# Backups of a migration, which discovery skips: old files beside their replacements
#
# A migration lists the backups that it makes in the file :data:`BACKUPS` of their folder, one name per line, and
# appends only. A list may come with a store that nobody trusts. It must not hide a program that somebody loads by its
# own name, so a listed file is a backup only if its original is beside it (:meth:`Backups.__contains__`).

BACKUPS: Final = ".vhlo-backups"
#: Suffixes of names of programs, which are programs whatever they hold: what cannot be read of them is an error.
PROGRAM_SUFFIXES: Final = (".mlir", ".mlirbc", ".jax_export", ".pt2", ".hlo")

#: What a line cannot hold as it is; any other byte of a name stands for itself.
_ESCAPED: Final = pattern(rb"[%\x00-\x1f\x7f]")
#: Ends a line that was cut short: not an escape, so that the line is no name.
_CUT: Final = b"%\n"
#: The largest list that is read, in bytes: millions of names. No list of ours is larger by mistake.
_MOST: Final = 1 << 28
#: No line is longer: names of files have at most 255 bytes, of which each may be escaped.
_LONGEST_LINE: Final = 1 << 12
# A link could lead anywhere, and opening a FIFO would wait.
_SAFELY: Final = NO_LINKS | NO_BLOCKING | BINARY


@dataclass(frozen=True, slots=True)
class Backups:
    folder: str
    listed: frozenset[str]
    is_program: Callable[[str], bool]  # whether a file is a program, by its name or its content

    def __contains__(self, name: str) -> bool:
        """Whether a file is a backup: it is listed, and named as a program beside it with a suffix.

        The name of a program has another beginning, or another ending: ``net.mlirbc`` is no backup of ``net.mlir``.
        """
        if name not in self.listed:
            return False
        ending = _ending(name)
        # As text: a folder may have very many backups.
        path = os.path.join(self.folder, name)  # noqa: PTH118
        return any(
            ending in ("", _ending(original)) and os.path.isfile(original) and self.is_program(original)  # noqa: PTH113
            for original in (path[:-length] for length in range(1, len(name)))
        )


def backups_in(folder: str, is_program: Callable[[str], bool]) -> Backups:
    """Return none if the list cannot be read, so that all files count; of names in it, only those of files."""
    try:
        files = {_line(each): each for each in os.listdir(folder)}  # noqa: PTH208
    except OSError:
        files = {}
    listed = frozenset(files[line] for line in _lines(Path(folder) / BACKUPS) if line in files)
    return Backups(folder, listed, is_program)


def list_backups(folder: str, names: Iterable[str]) -> None:
    """Append names to the list of backups in a folder, and wait until they are on disk.

    Called before the backups are made: a name without a file does no harm. Other processes may append too.
    """
    path = os.path.join(folder, BACKUPS)  # noqa: PTH118
    with opened_folder(folder) as at:
        handle = os.open(at.at(BACKUPS), os.O_RDWR | os.O_APPEND | os.O_CREAT | _SAFELY, 0o666, dir_fd=at.handle)
    try:
        found = os.fstat(handle)
        if (kind := kind_of_file(found.st_mode)) is not None:
            raise OSError(errno.EINVAL, f"it is {kind}", path)
        is_whole = not found.st_size or read_at(handle, 1, found.st_size - 1) == b"\n"
        # One write, which no other process can come between.
        lines = (b"" if is_whole else _CUT) + b"".join(map(_line, names))
        if os.write(handle, lines) < len(lines):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        os.fsync(handle)
    finally:
        os.close(handle)


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the whole lines of a list; none if it cannot be read or is no regular file of a possible size."""
    try:
        handle = os.open(path, os.O_RDONLY | _SAFELY)
    except OSError:
        return
    try:
        found = os.fstat(handle)
        if kind_of_file(found.st_mode) is not None or found.st_size > _MOST:
            return
        with open(handle, "rb", closefd=False) as file:
            begins = True
            for line in iter(partial(file.readline, _LONGEST_LINE), b""):
                if begins:
                    yield line
                begins = line.endswith(b"\n")
    except OSError:
        return
    finally:
        os.close(handle)


def _ending(name: str) -> str:
    return next((suffix for suffix in PROGRAM_SUFFIXES if name.endswith(suffix)), "")


def _line(name: str) -> bytes:
    return _ESCAPED.sub(lambda found: b"%%%02X" % found[0][0], os.fsencode(name)) + b"\n"


# Discovery of programs: the files or objects that a path on a command line selects

#: Names of files and folders that are not looked at. Of what stands beside programs: backups of old files and temporary
#: files of a migration, settings, manifests, and their signatures; backups with other suffixes are left out by their
#: list. And the folders of other tools.
_NO_PROGRAMS: Final = (
    *("*.orig", ".vhlo-*", "vhlo-tools.toml", f"*{MANIFEST_SUFFIX}", f"*{SIGNATURE_SUFFIX}"),
    *(".git", ".hg", ".nox", ".tox", ".venv", "__pycache__", "node_modules"),
)

#: The heads of objects that are read at the same time, and how much of each.
_READING: Final = 16
_HEAD: Final = 1 << 12

#: What is called with the path or URL of each file that a folder holds and that is no program.
Others = Callable[[str], object]


def nobody(_: str) -> None:
    """What wants to know of no other file."""


def said_of_others(number: int) -> str:
    """Return the end of a summary about the files of folders that are no programs."""
    if not number:
        return ""
    return f"; {number} other file{' is no program' if number == 1 else 's are no programs'}"


def programs_at(
    path: str, exclude: tuple[str, ...] = (), *, ordered: bool = True, others: Others = nobody
) -> Iterator[str]:
    """Yield the files or objects that a file, folder, glob or URL selects, as paths or URLs; without listed backups.

    A named file is selected whatever its content; of a folder, the files whose name or content is that of a program,
    and the folders that are a SavedModel. ``exclude`` are globs, by name or by path relative to the start. Unless
    ``ordered``, a folder is not collected in memory; objects never are, and come in the order of their keys.
    """
    where = place(path)
    if isinstance(where, Url):
        yield from (str(each.url) for each in objects_at(where, exclude, others))
        return
    exclude = (*_NO_PROGRAMS, *exclude)
    if is_url(path):
        path = str(where)  # of a file
    if Path(path).is_file() or is_saved_model(path):
        yield path
    elif Path(path).is_dir():
        yield from _programs_in(path, exclude, others, ordered=ordered)
    else:
        # Unlike Path.glob, these functions accept absolute patterns.
        found = sorted(glob.glob(path, recursive=True)) if ordered else glob.iglob(path, recursive=True)  # noqa: PTH207
        backups: Backups | None = None
        for each in found:
            if Path(each).is_file() and not _is_excluded(each, exclude):
                folder, name = os.path.split(each)
                if backups is None or backups.folder != folder:
                    backups = backups_in(folder, _is_program)
                if name not in backups:
                    yield each


def _programs_in(top: str, exclude: tuple[str, ...], others: Others, *, ordered: bool) -> Iterator[str]:
    """Yield programs of a folder before those of its subfolders; links to folders are not followed.

    A folder that cannot be read is yielded itself: opening it says why.
    """
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        below: list[str] = []
        inside, shown = os.path.relpath(folder, top), str(Path(folder))  # of which the second has no leading "./"
        try:
            entries = os.scandir(folder)
        except OSError:
            yield folder
            continue
        with entries:
            backups = backups_in(folder, _is_program)
            for entry in sorted(entries, key=lambda each: each.name) if ordered else entries:
                if exclude and _is_excluded(_joined(inside, entry.name), exclude):
                    continue
                kind = _kind_of(entry)
                if kind == "a folder":
                    if not entry.is_symlink() and is_saved_model(entry.path):
                        yield _joined(shown, entry.name)
                    elif not entry.is_symlink():
                        below.append(entry.path)
                elif kind is not None:
                    # Imported here because few folders have such entries.
                    import logging

                    logging.getLogger("vhlo_tools").warning("vhlo: skipped %s: it is %s", printable(entry.path), kind)
                elif entry.name not in backups:
                    if _is_program(entry.path):
                        yield _joined(shown, entry.name)
                    else:
                        others(_joined(shown, entry.name))
        waiting.extend(reversed(below))


def _joined(folder: str, name: str) -> str:
    return name if folder == os.curdir else os.path.join(folder, name)  # noqa: PTH118 - for each file of a store


def _kind_of(entry: os.DirEntry[str]) -> str | None:
    """Return the kind of an entry, with links followed; ``None`` for a file, and for a link to nothing."""
    try:
        return kind_of_file(entry.stat().st_mode)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "a loop of links"
        # Of a path that is too long, only its folder knows.
        return "a folder" if entry.is_dir(follow_symlinks=False) else None


def _is_excluded(path: str, exclude: tuple[str, ...]) -> bool:
    excludes = _matcher(exclude)
    return bool(excludes(path) or excludes(os.path.basename(path)))  # noqa: PTH119 - for each file of a store


@lru_cache
def _matcher(patterns: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    """No globs match nothing."""
    return re.compile("|".join(map(translate, patterns)) if patterns else r"(?!)").match


def _is_program(path: str) -> bool:
    """Judge by the suffix, or by the content."""
    if path.endswith(PROGRAM_SUFFIXES):
        return True
    try:
        if not Path(path).is_file():
            return False
        with open_regular(Path(path)) as file:
            head = file.read(_HEAD)
        return _holds_program(head, lambda: map_file(Path(path)))
    except OSError as error:
        # Opening it says so; another file that cannot be read may be anything.
        return error.errno == errno.ENAMETOOLONG


def _holds_program(head: bytes, whole: Callable[[], View]) -> bool:
    """Judge by the first bytes of a file, or by all where there are more."""
    try:
        recognise(head if len(head) < _HEAD or head.startswith(MAGIC) else whole())
    except (InvalidProgramError, MalformedArtifactError):
        return False
    return True


def objects_at(url: Url, exclude: tuple[str, ...] = (), others: Others = nobody) -> Iterator[Listed]:
    """Yield the programs that a URL selects, each with its version at that moment."""
    from vhlo_tools.files.connections import Listed
    from vhlo_tools.files.objects import glob_start, is_glob, matcher, objects_under, stamp_of

    exclude = (*_NO_PROGRAMS, *exclude)
    if (stamp := stamp_of(url)) is not None:
        yield Listed(url, stamp)
    elif is_glob(url):
        chosen, start = matcher(url.key), glob_start(url)
        for page in objects_under(start):
            yield from (
                each for each in page if chosen.fullmatch(each.url.key) and not _is_excluded(str(each.url), exclude)
            )
    else:
        yield from _objects_in(url if url.is_prefix else url.with_key(f"{url.key}/"), exclude, others)


def _objects_in(top: Url, exclude: tuple[str, ...], others: Others) -> Iterator[Listed]:
    from concurrent.futures import ThreadPoolExecutor

    from vhlo_tools.files.objects import objects_under

    pool: ThreadPoolExecutor | None = None
    try:
        for page in objects_under(top):
            chosen = [each for each in page if not _is_below_excluded(each.url.key[len(top.key) :], exclude)]
            unknown = [each for each in chosen if not each.url.name.endswith(PROGRAM_SUFFIXES)]
            if unknown and pool is None:
                pool = ThreadPoolExecutor(_READING, thread_name_prefix="vhlo-list")
            found = dict(zip(unknown, pool.map(_object_holds_program, unknown), strict=True)) if pool else {}
            for each in chosen:
                if found.get(each, True):
                    yield each
                else:
                    others(str(each.url))
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _is_below_excluded(path: str, exclude: tuple[str, ...]) -> bool:
    """Whether an object or one of the folders around it is to be omitted."""
    ends = (at for at, sign in enumerate(path) if sign == "/")
    return bool(exclude) and any(_is_excluded(path[:end], exclude) for end in (*ends, len(path)))


def _object_holds_program(found: Listed) -> bool:
    from vhlo_tools.files.objects import open_object

    if not found.stamp.size:
        return False
    try:
        data: View = view(open_object(found.url, head=_HEAD))
    except OSError:
        # As for a file that cannot be read, and for one that is gone.
        return False
    return _holds_program(bytes(data[:_HEAD]), lambda: data)
