"""Keys of a settings file, with a reader and a JSON schema for the value of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.compat import expansion_policy
from vhlo_tools.errors import SettingsError
from vhlo_tools.gate.rendering import FORMATS
from vhlo_tools.gate.settings import (
    KINDS,
    LEVELS,
    TEXT,
    TEXTS,
    WILD,
    Override,
    Settings,
    document_schema,
    fits,
    one_or_more,
    problem_with,
    table_schema,
    value_kind,
    within,
)
from vhlo_tools.records import dataclass
from vhlo_tools.spec import known_explanations, known_features

if TYPE_CHECKING:
    from vhlo_tools.gate.settings import Levels, Schema, ValueKind
    from vhlo_tools.spec import Effect

_NAME: Final = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
#: Keywords of the target grammar, which are not allowed as names.
_TAKEN: Final = ("current", "minimum", "NONE", "WEEK_4", "WEEK_12", "MAX")


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """A position in a settings file, for messages."""

    file: str
    path: str = ""  # keys, separated by dots

    def __str__(self) -> str:
        return f"{self.file}: {self.path}" if self.path else self.file

    def key(self, name: str) -> KeyPlace:
        shown = name if _NAME.fullmatch(name) else f'"{name}"'
        return KeyPlace(self.file, f"{self.path}.{shown}" if self.path else shown)

    def item(self, index: int) -> KeyPlace:
        return KeyPlace(self.file, f"{self.path}[{index}]")

    def must_be(self, expected: str, found: object) -> SettingsError:
        return SettingsError(f"{self}: expected {expected}, found {_shown(found)}")


def settings_schema(*, project: bool = False) -> Schema:
    """Return the schema of ``vhlo-tools.toml``, or with ``project`` of ``[tool.vhlo-tools]`` in ``pyproject.toml``."""
    table = table_schema(_SETTINGS, Settings)
    return document_schema(within(table, "tool", "vhlo-tools") if project else table, "Settings of vhlo check")


def read_table(table: Any, place: KeyPlace) -> dict[str, Any]:
    """Return the settings in a table, by the names of the fields of :class:`Settings`."""
    return _read(table, place, _SETTINGS)


def _levels_schema() -> Schema:
    # The features by name, so that an editor offers them.
    level: Schema = {"enum": list(LEVELS)}
    titles = {feature.id: feature.title for feature in known_features()}
    titles |= {each.id: each.text for each in known_explanations()}
    titles |= {kind: f"every finding of the kind {kind}" for kind in KINDS}
    # An id that ends in * stands for all with its beginning.
    beginnings = [f"^{re.escape(each.removesuffix('*'))}" for each in titles if each.endswith("*")]
    return {
        "type": "object",
        "properties": {
            each: {"description": title, **level} for each, title in titles.items() if not each.endswith("*")
        },
        "patternProperties": dict.fromkeys([f"[{re.escape(WILD)}]", *beginnings], level),
        "additionalProperties": False,
    }


@value_kind(_levels_schema)
def read_levels(table: Any, place: KeyPlace) -> Levels:
    levels = {}
    for name, value in _table(table, place).items():
        if problem := problem_with(name):
            raise SettingsError(f"{place.key(name)}: {problem}")
        levels[name] = _choice(*LEVELS)(value, place.key(name))
    return levels


@value_kind(TEXTS)
def read_patterns(value: Any, place: KeyPlace) -> tuple[str, ...]:
    patterns = _texts(value, place)
    for index, pattern in enumerate(patterns):
        try:
            fits("", (pattern,))
        except ValueError:
            raise place.item(index).must_be("a pattern as in .gitignore", pattern) from None
    return patterns


def _read(table: Any, place: KeyPlace, readers: Mapping[str, ValueKind[Any]]) -> dict[str, Any]:
    values = {}
    for key, value in _table(table, place).items():
        if key not in readers:
            # Imported here because few names are misspelt.
            from difflib import get_close_matches

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


@value_kind(TEXTS)
def _texts(value: Any, place: KeyPlace) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        raise place.must_be("a list of strings", value)
    return tuple(_text(each, place.item(index)) for index, each in enumerate(value))


@value_kind({"type": "boolean"})
def _flag(value: Any, place: KeyPlace) -> bool:
    if not isinstance(value, bool):
        raise place.must_be("true or false", value)
    return value


# As Python reads a day. Where a schema is applied, a date of TOML is such a string too.
@value_kind({"type": "string", "pattern": r"^\d{4}(-\d\d-\d\d|\d{4}|-?W\d\d(-?[1-7])?)$"})
def _day(value: Any, place: KeyPlace) -> date:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    if not isinstance(value, date) or isinstance(value, datetime):
        raise place.must_be("a day such as 2026-01-31", value)
    return value


def _choice(*choices: str) -> ValueKind[Any]:
    @value_kind({"enum": list(choices)})
    def read(value: Any, place: KeyPlace) -> Any:
        if value not in choices:
            # Imported here because few names are misspelt.
            from difflib import get_close_matches

            near = get_close_matches(value, choices, n=1) if isinstance(value, str) else []
            hint = f": did you mean {near[0]}?" if near else ""
            raise SettingsError(f"{place}: expected one of {', '.join(choices)}, found {_shown(value)}{hint}")
        return value

    return read


def _targets_schema() -> Schema:
    name = f"^(?!({'|'.join(_TAKEN)})$){_NAME.pattern.replace(chr(92) + 'w', 'A-Za-z0-9_')}$"
    return {"type": "object", "patternProperties": {name: one_or_more(TEXT)}, "additionalProperties": False}


@value_kind(_targets_schema)
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


@value_kind(lambda: {"type": "array", "items": table_schema(_OF_OVERRIDES, Override, ["paths"])})
def _overrides(value: Any, place: KeyPlace) -> tuple[Override, ...]:
    if not isinstance(value, list):
        raise place.must_be("a list of tables", value)
    return tuple(_override(each, place.item(index)) for index, each in enumerate(value))


@value_kind(one_or_more(TEXT))
def _some_patterns(value: Any, place: KeyPlace) -> tuple[str, ...]:
    if not (patterns := read_patterns(value, place)):
        raise place.must_be("at least one pattern", value)
    return patterns


def _override(value: Any, place: KeyPlace) -> Override:
    found = _read(value, place, _OF_OVERRIDES)
    if "paths" not in found:
        raise place.key("paths").must_be("at least one pattern", None)
    return Override(**found, source=place.file)


def _shown(found: object) -> str:
    if found is None:
        return "nothing"
    if isinstance(found, dict | list):
        return "a table" if isinstance(found, dict) else f"{found!r:.60}"
    return f"{str(found).lower() if isinstance(found, bool) else repr(found):.60}"


def _expansions(effect: Effect, *, takes_flag: bool = False) -> ValueKind[Any]:
    """Return the kind of ids of features that have expansions of an effect."""

    def schema() -> Schema:
        ids: Schema = {"enum": ["all", *(each.id for each in known_features() if each.expansion(effect))]}
        flag = [{"type": "boolean"}] if takes_flag else []
        return {"anyOf": [*flag, ids, {"type": "array", "items": ids}]}

    @value_kind(schema)
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


def _features_schema() -> Schema:
    ids: Schema = {"enum": [each.id for each in known_features()]}
    return {"anyOf": [ids, {"type": "array", "items": ids}]}


@value_kind(_features_schema)
def _features(value: Any, place: KeyPlace) -> tuple[str, ...]:
    ids = _texts(value, place)
    known = {feature.id for feature in known_features()}
    for index, each in enumerate(ids):
        if each not in known:
            raise place.item(index).must_be("the id of a feature (`vhlo spec list` shows all)", each)
    return ids


_RELEASE: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*==[0-9A-Za-z.+!-]+$"


@value_kind(
    {
        "anyOf": [
            {"type": "string", "pattern": _RELEASE},
            {"type": "array", "items": {"type": "string", "pattern": _RELEASE}},
        ]
    }
)
def _releases(value: Any, place: KeyPlace) -> tuple[str, ...]:
    releases = _texts(value, place)
    for index, each in enumerate(releases):
        if not re.match(_RELEASE, each, re.ASCII):
            raise place.item(index).must_be("a release such as jaxlib==0.4.31", each)
    return releases


@value_kind(TEXT)
def _revision(value: Any, place: KeyPlace) -> str:
    return _text(value, place)


@value_kind(TEXT)
def _path(value: Any, place: KeyPlace) -> str:
    return str(Path(_text(value, place)))


_OF_OVERRIDES: Final[Mapping[str, ValueKind[Any]]] = {
    "paths": _some_patterns,
    "levels": read_levels,
    "target": _texts,
    "readable-by": _texts,
}
_SETTINGS: Final[Mapping[str, ValueKind[Any]]] = {
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
    "confirm-with": _releases,
    "as-of": _day,
    "baseline": _path,
    "against": _revision,
    "output-format": _choice(*FORMATS),
}
