"""Location of ``dialect_specs/``, in a checkout and in an installation, and the cache of its parsed files."""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from functools import cache
from importlib import import_module
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from vhlo_tools.errors import InvalidSpecificationError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

# Cache of the parsed files of ``dialect_specs/``: parsing them all takes as long as the rest of a command
#
# A snapshot is the source of a Python module, with the tables and a digest of the files that they were parsed from. The
# build of a wheel makes one (``scripts/build_hook.py``), which is installed as any module is. A checkout, whose files
# people edit, keeps one in ``__pycache__``, compiled, where and when Python keeps what it compiles. A snapshot counts
# only while its digest is that of the files.

#: The contents of files, by their paths inside the folder, with ``/``.
Tables: TypeAlias = Mapping[str, Mapping[str, Any]]

#: The module of this package that a wheel has, and a checkout has not.
SHIPPED: Final = "specs_snapshot"

#: The bytes of a digest.
_DIGEST: Final = 8


def read_tables(folder: Path) -> Tables:
    """Return the tables of our own ``folder`` from a current snapshot, or nothing.

    A checkout without a snapshot makes it, unless Python is told to keep nothing (``PYTHONDONTWRITEBYTECODE``).
    """
    files = files_below(folder)
    digest = digest_of(files)
    with suppress(ModuleNotFoundError):
        shipped = vars(import_module(f"{__package__}.{SHIPPED}"))
        if shipped["DIGEST"] == digest:
            return shipped["TABLES"]  # type: ignore[no-any-return]
    place = kept_place()
    if place is None:
        return {}
    head = MAGIC_NUMBER + digest
    with suppress(OSError):
        kept = place.read_bytes()
        code = kept[len(head) + _DIGEST :]
        # What was damaged could make Python crash.
        if kept.startswith(head) and kept[len(head) : len(head) + _DIGEST] == source_hash(code):
            return _tables(marshal.loads(code))
    if sys.dont_write_bytecode:
        return {}
    try:
        made = compile(snapshot_source(files), SHIPPED, "exec")
    except ValueError:
        # Whoever asks for that file is told what is wrong with it.
        return {}
    code = marshal.dumps(made)
    _keep(place, head + source_hash(code) + code)
    return _tables(made)


def files_below(folder: Path) -> dict[str, bytes]:
    """Paths are inside ``folder``, and sorted."""
    return dict(sorted(_files_below(folder, "")))


def _files_below(folder: Path, within: str) -> Iterator[tuple[str, bytes]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".toml"):
                yield within + entry.name, Path(entry.path).read_bytes()
            elif entry.is_dir():
                yield from _files_below(Path(entry.path), f"{within}{entry.name}/")


def digest_of(files: Mapping[str, bytes]) -> bytes:
    """The same digest by which Python knows the sources of compiled modules."""
    return source_hash(b"".join(b"%s\0%d\0%s" % (path.encode(), len(data), data) for path, data in files.items()))


def snapshot_source(files: Mapping[str, bytes]) -> str:
    # Imported here because a snapshot is made once.
    from vhlo_tools.documents import read_toml

    tables = {path: read_toml(data) for path, data in files.items()}
    said = '"""The files of ``dialect_specs/``, parsed by the build of this package."""'
    return f"{said}\n\nimport datetime\n\nDIGEST = {digest_of(files)!r}\nTABLES = {tables!r}\n"


def kept_place() -> Path | None:
    """Return the file of a checkout's snapshot; ``None`` where Python keeps nothing that it compiles."""
    with suppress(NotImplementedError):
        # Not with the suffix by which Python would take it for the module.
        return Path(cache_from_source(str(Path(__file__).with_name(f"{SHIPPED}.py")))).with_suffix(".kept")
    return None


def _tables(code: Any) -> Tables:
    scope: dict[str, Any] = {}
    exec(code, scope)
    return scope["TABLES"]  # type: ignore[no-any-return]


def _keep(place: Path, data: bytes) -> None:
    """A failure to write is no error: work without a snapshot is only slower."""
    written = place.with_name(f"{place.name}.{os.getpid()}")
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            written.write_bytes(data)
            written.replace(place)
        except OSError:
            written.unlink()


# Location of ``dialect_specs/``, in a checkout and in an installed wheel, and the reader of its files

_T = TypeVar("_T")

#: The permitted values of a key: a type, a range of numbers, a set of strings, a list of a kind, or a table of a kind.
Kind: TypeAlias = "type | range | frozenset[str] | list[Kind] | dict[str, Kind]"

#: Numbers from 0, and numbers from 1.
COUNTED, NUMBERED = range(1 << 31), range(1, 1 << 31)

_WORDS: Mapping[type, str] = {str: "a string", int: "a number", bool: "true or false", dict: "a table", date: "a date"}


def dialect_specs() -> Traversable:
    """The data is inside the package in a wheel, and beside it in a checkout."""
    folder = _folder()
    if folder is not None:
        return folder
    # Imported here because few have the package in a ZIP file.
    from importlib import resources

    packed = resources.files("vhlo_tools").joinpath("dialect_specs")
    if packed.is_dir():
        return packed
    raise FileNotFoundError("vhlo_tools is installed without its dialect_specs folder; reinstall it")


@cache
def _folder() -> Path | None:
    """Return ``None`` if the data is not in files, as where the package is a ZIP file."""
    package = Path(__file__).parents[1]
    return next((each for each in (package / "dialect_specs", package.parent / "dialect_specs") if each.is_dir()), None)


@cache
def _known_tables() -> Tables:
    folder = _folder()
    return read_tables(folder) if folder is not None else {}


def files_in(folder: str, specs: Traversable | None = None) -> list[str]:
    """Return the sorted TOML files of ``folder`` as paths inside ``dialect_specs/``."""
    if specs is None and (known := [file for file in _known_tables() if file.rpartition("/")[0] == folder]):
        return known
    found = (specs or dialect_specs()).joinpath(*folder.split("/"))
    if specs is not None and not found.is_dir():
        return []
    return sorted(f"{folder}/{file.name}" for file in found.iterdir() if file.name.endswith(".toml"))


def read_entries(file: str, table: str, specs: Traversable | None = None) -> list[dict[str, Any]]:
    """Read the array of tables ``table``; a file that is missing in ``specs``, the folder of a fork, has no entries."""
    known = _known_tables().get(file) if specs is None else None
    if known is not None:
        return _entries(known, table, f"{_folder()}/{file}")
    # Imported here because a snapshot does without.
    from vhlo_tools.documents import read_toml

    found = (specs or dialect_specs()).joinpath(*file.split("/"))
    if specs is not None and not found.is_file():
        return []
    try:
        tables = read_toml(found.read_bytes())
    except ValueError as error:
        raise InvalidSpecificationError(f"{found}: {error}") from None
    return _entries(tables, table, found)


def _entries(tables: Mapping[str, Any], table: str, found: object) -> list[dict[str, Any]]:
    if others := sorted(tables.keys() - {table}):
        raise InvalidSpecificationError(f"{found}: unknown key {others[0]}: expected only [[{table}]]")
    entries = tables.get(table)
    if not entries:
        raise InvalidSpecificationError(f"{found} has no [[{table}]]: expected at least one")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidSpecificationError(f"{found}: expected {table} to be an array of tables, [[{table}]]")
    return entries


def load_entries(
    file: str, table: str, convert: Callable[[dict[str, Any]], _T], specs: Traversable | None = None
) -> tuple[_T, ...]:
    return tuple(convert_entry(file, table, entry, convert) for entry in read_entries(file, table, specs))


def convert_entry(file: str, table: str, entry: dict[str, Any], convert: Callable[[dict[str, Any]], _T]) -> _T:
    """Convert an entry; a missing or unknown key, or a value of another kind, is an ``InvalidSpecificationError``."""
    try:
        return convert(entry)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        name = entry.get("name") or entry.get("id") or entry.get("version") or "without a name"
        why = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise InvalidSpecificationError(f"{file}: [[{table}]] {name}: {why}") from error


def check_entry(entry: dict[str, Any], **kinds: Kind) -> None:
    """Reject unknown keys and values of another kind: ``[str]`` is a list, ``{"": str}`` a table of strings."""
    for key, value in entry.items():
        kind = kinds.get(key)
        if kind is None:
            raise ValueError(f"unknown key {key}: expected {', '.join(kinds)}")
        # Nearly all are plain texts, of which each start of a command reads hundreds.
        if not (kind is str and type(value) is str and value.strip()) and not _fits(value, kind):
            raise ValueError(f"{key} is {value!r}: expected {_expected(kind)}")


def _fits(value: object, kind: Kind) -> bool:
    match kind:
        case list():
            return isinstance(value, list) and all(_fits(each, kind[0]) for each in value)
        case dict():
            return isinstance(value, dict) and all(_fits(each, kind[""]) for each in value.values())
        case range():
            return _fits(value, int) and value in kind
        case frozenset():
            return isinstance(value, str) and value in kind
    if kind is str:
        return isinstance(value, str) and bool(value.strip())
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _expected(kind: Kind) -> str:
    match kind:
        case list():
            return f"a list, each element {_expected(kind[0])}"
        case dict():
            return f"a table, each value {_expected(kind[''])}"
        case range():
            return f"a number, at least {kind.start}"
        case frozenset():
            return f"one of {', '.join(sorted(kind))}"
    return _WORDS[kind]
