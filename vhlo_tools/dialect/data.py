"""Where ``dialect_specs/`` is, in a checkout and in an installed wheel, and how its files are read."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from vhlo_tools.errors import InvalidSpecificationError

__all__ = ["check_entry", "dialect_specs", "files_in", "load_entries", "read_entries"]

_T = TypeVar("_T")


def dialect_specs() -> Traversable:
    """Return the folder of the data: inside the package in a wheel, beside it in a checkout."""
    package = resources.files("vhlo_tools")
    installed = package.joinpath("dialect_specs")
    if installed.is_dir():
        return installed
    checkout = Path(str(package)).parent / "dialect_specs"
    if checkout.is_dir():
        return checkout
    raise FileNotFoundError("vhlo_tools is installed without its dialect_specs folder; reinstall it")


def files_in(folder: str, specs: Traversable | None = None) -> list[str]:
    """Return the TOML files of ``folder``, a path inside ``dialect_specs/``, as paths inside it, sorted."""
    found = (specs or dialect_specs()).joinpath(*folder.split("/"))
    if specs is not None and not found.is_dir():
        return []
    return sorted(f"{folder}/{file.name}" for file in found.iterdir() if file.name.endswith(".toml"))


def read_entries(file: str, table: str, specs: Traversable | None = None) -> list[dict[str, Any]]:
    """Return the entries of the array of tables ``table`` in ``file``.

    Args:
        file: A path inside ``dialect_specs/``.
        table: The name of the array.
        specs: A folder to read in place of ``dialect_specs/``, such as that of a fork. A file that it lacks has no
            entries.

    Raises:
        InvalidSpecificationError: If the file is not TOML with this array.
    """
    found = (specs or dialect_specs()).joinpath(*file.split("/"))
    if specs is not None and not found.is_file():
        return []
    try:
        entries = tomllib.loads(found.read_text(encoding="utf-8"))[table]
    except ValueError as error:
        raise InvalidSpecificationError(f"{found}: {error}") from None
    except KeyError:
        raise InvalidSpecificationError(f"{found} has no [[{table}]]: expected at least one") from None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidSpecificationError(f"{found}: expected {table} to be an array of tables, [[{table}]]")
    return entries


def load_entries(
    file: str, table: str, convert: Callable[[dict[str, Any]], _T], specs: Traversable | None = None
) -> tuple[_T, ...]:
    """Return what ``convert`` makes of each entry of the array of tables ``table`` in ``file``.

    Raises:
        InvalidSpecificationError: If an entry lacks a key, has one that means nothing, or has a value of another kind.
    """
    return tuple(_convert(file, table, entry, convert) for entry in read_entries(file, table, specs))


def check_entry(entry: dict[str, Any], **kinds: type | Sequence[type] | Mapping[str, type]) -> None:
    """Refuse keys that would mean nothing, and values of another kind.

    Args:
        entry: An entry of a file.
        kinds: From key to the type of its value: ``[str]`` is a list of strings, ``{"": str}`` a table of them.

    Raises:
        ValueError: If something does not fit.
    """
    for key, value in entry.items():
        if key not in kinds:
            raise ValueError(f"{key} is no key of it: expected {', '.join(kinds)}")
        if not _fits(value, kinds[key]):
            raise ValueError(f"{key} is {value!r}, which is of another kind than expected")


def _fits(value: object, kind: type | Sequence[type] | Mapping[str, type]) -> bool:
    if isinstance(kind, Sequence):
        return isinstance(value, list) and all(_fits(each, kind[0]) for each in value)
    if isinstance(kind, Mapping):
        return isinstance(value, dict) and all(_fits(each, kind[""]) for each in value.values())
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _convert(file: str, table: str, entry: dict[str, Any], convert: Callable[[dict[str, Any]], _T]) -> _T:
    try:
        return convert(entry)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        name = entry.get("name") or entry.get("id") or entry.get("version") or "without a name"
        why = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise InvalidSpecificationError(f"{file}: [[{table}]] {name}: {why}") from error
