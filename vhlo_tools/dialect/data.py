"""Location of ``dialect_specs/``, in a checkout and in an installed wheel, and the reader of its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from vhlo_tools.dialect.snapshot import read_tables
from vhlo_tools.errors import InvalidSpecificationError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from vhlo_tools.dialect.snapshot import Tables

_T = TypeVar("_T")

#: The permitted values of a key: a type, a range of numbers, a set of strings, a list of a kind, or a table of a kind.
Kind: TypeAlias = "type | range | frozenset[str] | list[Kind] | dict[str, Kind]"

#: Numbers from 0, and numbers from 1.
COUNTED, NUMBERED = range(1 << 31), range(1, 1 << 31)

_WORDS: Mapping[type, str] = {
    str: "a string",
    int: "a number",
    bool: "true or false",
    dict: "a table",
    date: "a date",
}


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
        if key not in kinds:
            raise ValueError(f"unknown key {key}: expected {', '.join(kinds)}")
        if not _fits(value, kinds[key]):
            raise ValueError(f"{key} is {value!r}: expected {_expected(kinds[key])}")


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
