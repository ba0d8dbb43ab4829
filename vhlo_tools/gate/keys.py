"""The keys of a settings file, with a reader for the value of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from vhlo_tools.compat import expansion_policy
from vhlo_tools.dialect import Effect, known_features
from vhlo_tools.errors import SettingsError
from vhlo_tools.gate.levels import LEVELS, Levels, problem_with
from vhlo_tools.gate.settings import Override, fits
from vhlo_tools.report import FORMATS

__all__ = ["KeyPlace", "read_levels", "read_patterns", "read_table"]

_NAME: Final = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
#: Keywords of the target grammar, which are not allowed as names.
_TAKEN: Final = ("current", "minimum", "NONE", "WEEK_4", "WEEK_12", "MAX")


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """A position in a settings file.

    Attributes:
        file: The displayed path of the file.
        path: The path of keys, separated by dots.
    """

    file: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.path}" if self.path else self.file

    def key(self, name: str) -> KeyPlace:
        """Return the place of a key in the table at this place."""
        shown = name if _NAME.fullmatch(name) else f'"{name}"'
        return KeyPlace(self.file, f"{self.path}.{shown}" if self.path else shown)

    def item(self, index: int) -> KeyPlace:
        """Return the place of an item in the list at this place."""
        return KeyPlace(self.file, f"{self.path}[{index}]")

    def must_be(self, expected: str, found: object) -> SettingsError:
        """Return the error for an unexpected value at this place."""
        return SettingsError(f"{self}: expected {expected}, found {_shown(found)}")


Reader = Callable[[Any, KeyPlace], Any]


def read_table(table: Any, place: KeyPlace) -> dict[str, Any]:
    """Return the settings in a table, by the names of the fields of :class:`Settings`.

    Raises:
        SettingsError: If a key is unknown, or its value is invalid.
    """
    return _read(table, place, _SETTINGS)


def read_levels(table: Any, place: KeyPlace) -> Levels:
    """Return levels of features.

    Raises:
        SettingsError: If a feature or a level is unknown.
    """
    levels = {}
    for name, value in _table(table, place).items():
        if problem := problem_with(name):
            raise SettingsError(f"{place.key(name)}: {problem}")
        levels[name] = _choice(*LEVELS)(value, place.key(name))
    return levels


def read_patterns(value: Any, place: KeyPlace) -> tuple[str, ...]:
    """Return patterns of files.

    Raises:
        SettingsError: If a pattern is invalid.
    """
    patterns = _texts(value, place)
    for index, pattern in enumerate(patterns):
        try:
            fits("", (pattern,))
        except ValueError:
            raise place.item(index).must_be("a pattern as in .gitignore", pattern) from None
    return patterns


def _read(table: Any, place: KeyPlace, readers: Mapping[str, Reader]) -> dict[str, Any]:
    values = {}
    for key, value in _table(table, place).items():
        if key not in readers:
            near = get_close_matches(key.replace("_", "-"), readers, n=1)
            hint = f"did you mean {near[0]}?" if near else f"expected {', '.join(sorted(readers))}"
            raise SettingsError(f"{place.key(key)} is not a setting: {hint}")
        values[key.replace("-", "_")] = readers[key](value, place.key(key))
    return values


def _table(value: Any, place: KeyPlace) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.must_be("a table", value)
    return value


def _text(value: Any, place: KeyPlace) -> str:
    if not isinstance(value, str) or not value.strip():
        raise place.must_be("a string", value)
    return value


def _texts(value: Any, place: KeyPlace) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        raise place.must_be("a list of strings", value)
    return tuple(_text(each, place.item(index)) for index, each in enumerate(value))


def _flag(value: Any, place: KeyPlace) -> bool:
    if not isinstance(value, bool):
        raise place.must_be("true or false", value)
    return value


def _day(value: Any, place: KeyPlace) -> date:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    if not isinstance(value, date) or isinstance(value, datetime):
        raise place.must_be("a day such as 2026-01-31", value)
    return value


def _choice(*choices: str) -> Reader:
    def read(value: Any, place: KeyPlace) -> Any:
        if value not in choices:
            near = get_close_matches(value, choices, n=1) if isinstance(value, str) else []
            hint = f": did you mean {near[0]}?" if near else ""
            raise SettingsError(f"{place}: expected one of {', '.join(choices)}, found {_shown(value)}{hint}")
        return value

    return read


def _targets(value: Any, place: KeyPlace) -> dict[str, tuple[str, ...]]:
    named = {}
    for name, members in _table(value, place).items():
        if not _NAME.fullmatch(name) or name in _TAKEN:
            raise SettingsError(
                f"{place.key(name)}: expected a name of letters, digits, _ and - that is not itself a target"
            )
        named[name] = _texts(members, place.key(name))
        if not named[name]:
            raise place.key(name).must_be("at least one target", members)
    return named


def _overrides(value: Any, place: KeyPlace) -> tuple[Override, ...]:
    if not isinstance(value, list):
        raise place.must_be("a list of tables", value)
    return tuple(_override(each, place.item(index)) for index, each in enumerate(value))


def _override(value: Any, place: KeyPlace) -> Override:
    found = _read(value, place, _OF_OVERRIDES)
    if not found.get("paths"):
        raise place.key("paths").must_be("at least one pattern", value.get("paths"))
    return Override(**found, source=place.file)


def _shown(found: object) -> str:
    if found is None:
        return "nothing"
    if isinstance(found, dict | list):
        return "a table" if isinstance(found, dict) else f"{found!r:.60}"
    return f"{str(found).lower() if isinstance(found, bool) else repr(found):.60}"


def _expansions(effect: Effect, *, takes_flag: bool = False) -> Reader:
    """Return a reader of ids of features that have expansions of an effect."""

    def read(value: Any, place: KeyPlace) -> Any:
        if takes_flag and isinstance(value, bool):
            return value
        ids = _texts(value, place)
        try:
            expansion_policy(ids) if effect == "exact" else expansion_policy(allow_relaxed=ids)
        except ValueError as error:
            raise SettingsError(f"{place}: {error}") from None
        return ids

    return read


def _features(value: Any, place: KeyPlace) -> tuple[str, ...]:
    ids = _texts(value, place)
    known = {feature.id for feature in known_features()}
    for index, each in enumerate(ids):
        if each not in known:
            raise place.item(index).must_be("the id of a feature (`vhlo spec list` shows all)", each)
    return ids


def _path(value: Any, place: KeyPlace) -> str:
    return str(Path(_text(value, place)))


_OF_OVERRIDES: Final[Mapping[str, Reader]] = {
    "paths": read_patterns,
    "levels": read_levels,
    "target": _texts,
    "readable-by": _texts,
}
_SETTINGS: Final[Mapping[str, Reader]] = {
    "paths": _texts,
    "target": _texts,
    "readable-by": _texts,
    "targets": _targets,
    "exclude": read_patterns,
    "force-exclude": _flag,
    "levels": read_levels,
    "overrides": _overrides,
    "allow-other-dialects": _flag,
    "legalize": _flag,
    "expand": _expansions("exact", takes_flag=True),
    "allow-relaxed": _expansions("relaxed"),
    "allow-signature-change": _flag,
    "forbid-expansions": _features,
    "as-of": _day,
    "baseline": _path,
    "against": _text,
    "output-format": _choice(*FORMATS),
}
