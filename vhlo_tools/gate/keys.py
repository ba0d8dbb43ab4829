"""Keys of a settings file, with a reader and a JSON schema for the value of each."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from vhlo_tools.compat import expansion_policy
from vhlo_tools.errors import SettingsError
from vhlo_tools.gate.rendering import FORMATS
from vhlo_tools.gate.settings import KINDS, LEVELS, WILD, Levels, Override, Settings, fits, problem_with
from vhlo_tools.lazy import pattern
from vhlo_tools.records import dataclass
from vhlo_tools.spec import Effect, known_explanations, known_features

_NAME: Final = pattern(r"[A-Za-z_][\w-]*", re.ASCII)
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


# Readers of values, each with the JSON schema of what it reads, for editors
#
# The schemas are of draft 7, the newest that the editors' extensions for TOML read. Rules that no schema can express,
# such as whether a target exists, are checked by the reader only.

_T = TypeVar("_T")

Schema = dict[str, Any]

_ATTRIBUTE: Final = pattern(r"    (\w+): (.+)")


@dataclass(frozen=True, slots=True)
class ValueKind(Generic[_T]):
    """Reader and schema of the values that a key may have."""

    read: Callable[[Any, KeyPlace], _T]  # raises SettingsError for a value at a place
    #: A function because it may list every feature; the schema may accept more than ``read``.
    schema: Callable[[], Schema]

    def __call__(self, value: Any, place: KeyPlace) -> _T:
        return self.read(value, place)


def value_kind(schema: Schema | Callable[[], Schema]) -> Callable[[Callable[[Any, KeyPlace], _T]], ValueKind[_T]]:
    return lambda read: ValueKind(read, schema if callable(schema) else lambda: schema)


def one_or_list(each: Schema, **rules: Any) -> Schema:
    return {"anyOf": [each, {"type": "array", "items": each, **rules}]}


#: The schema of a string that is not blank, and of one or a list of these.
TEXT: Final[Schema] = {"type": "string", "pattern": r"\S"}
TEXTS: Final = one_or_list(TEXT)


def _table_schema(keys: Mapping[str, ValueKind[Any]], owner: type) -> Schema:
    """Return the schema of a table; the docstring of the dataclass ``owner`` describes its keys."""
    said, defaults = dict(_attributes(owner)), {each.name: each.default for each in fields(owner)}
    properties = {}
    for key, kind in keys.items():
        name = key.replace("-", "_")
        described = {"description": said[name]} if name in said else {}
        default = {"default": defaults[name]} if isinstance(defaults[name], bool | str) else {}
        properties[key] = {**described, **default, **kind.schema()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _attributes(owner: type) -> Iterator[tuple[str, str]]:
    """Yield names and descriptions of the attributes in a docstring; none if Python has dropped docstrings."""
    _, _, section = (inspect.getdoc(owner) or "").partition("Attributes:\n")
    # A description goes on in lines that are indented more.
    for line in re.sub(r"\n {5,}", " ", section).splitlines():
        if found := _ATTRIBUTE.fullmatch(line):
            yield found[1], found[2].replace("``", "`")


def settings_schema(*, project: bool = False) -> Schema:
    """Return the schema of ``vhlo-tools.toml``, or with ``project`` of ``[tool.vhlo-tools]`` in ``pyproject.toml``."""
    table = _table_schema(_SETTINGS, Settings)
    for key in ("vhlo-tools", "tool") if project else ():
        table = {"type": "object", "properties": {key: table}}
    # Complete in itself: editors follow no relative references.
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Settings of vhlo check", **table}


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


@value_kind(TEXT)
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


def _each(schema: Schema | Callable[[], Schema], is_valid: Callable[[str], object], expected: str) -> ValueKind[Any]:
    """Return the kind of texts of which each must be valid."""

    @value_kind(schema)
    def read(value: Any, place: KeyPlace) -> tuple[str, ...]:
        texts = _texts(value, place)
        for index, each in enumerate(texts):
            if not is_valid(each):
                raise place.item(index).must_be(expected, each)
        return texts

    return read


def _is_pattern(text: str) -> bool:
    try:
        fits("", (text,))
    except ValueError:
        return False
    return True


read_patterns: Final[ValueKind[tuple[str, ...]]] = _each(TEXTS, _is_pattern, "a pattern as in .gitignore")


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
    return {"type": "object", "patternProperties": {name: one_or_list(TEXT, minItems=1)}, "additionalProperties": False}


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


@value_kind(lambda: {"type": "array", "items": {**_table_schema(_OF_OVERRIDES, Override), "required": ["paths"]}})
def _overrides(value: Any, place: KeyPlace) -> tuple[Override, ...]:
    if not isinstance(value, list):
        raise place.must_be("a list of tables", value)
    overrides = []
    for index, each in enumerate(value):
        item = place.item(index)
        found = _read(each, item, _OF_OVERRIDES)
        if "paths" not in found:
            raise item.key("paths").must_be("at least one pattern", None)
        overrides.append(Override(**found, source=place.file))
    return tuple(overrides)


@value_kind(one_or_list(TEXT, minItems=1))
def _some_patterns(value: Any, place: KeyPlace) -> tuple[str, ...]:
    if not (patterns := read_patterns(value, place)):
        raise place.must_be("at least one pattern", value)
    return patterns


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
        return {"anyOf": [*flag, *one_or_list(ids)["anyOf"]]}

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


_features: Final = _each(
    lambda: one_or_list({"enum": [each.id for each in known_features()]}),
    lambda name: any(each.id == name for each in known_features()),
    "the id of a feature (`vhlo spec list` shows all)",
)

_RELEASE: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*==[0-9A-Za-z.+!-]+(@[0-9A-Za-z:x]+)?$"


@value_kind({"type": "string", "pattern": _RELEASE})
def _release(value: Any, place: KeyPlace) -> str:
    if not isinstance(value, str) or not re.match(_RELEASE, value, re.ASCII):
        raise place.must_be("a release such as jaxlib==0.4.31", value)
    return value


_releases: Final = _each(
    one_or_list({"type": "string", "pattern": _RELEASE}),
    lambda name: re.match(_RELEASE, name, re.ASCII),
    "a release such as jaxlib==0.4.31",
)


_MEMORY: Final = r"^(\d{1,12})(\.\d{1,3})? ?([KMGT]i?)?B$"
_UNITS: Final = "KMGT"


def bytes_of(memory: str) -> int:
    """Return the bytes in ``16GiB`` or ``1.5 GB``, in units of 1024 or of 1000.

    Raises:
        SettingsError: If it is no size.
    """
    found = re.match(_MEMORY, memory, re.ASCII)
    if found is None:
        raise SettingsError(f"expected a size such as 16GiB, found {memory!r}")
    unit = found[3] or ""
    factor = (1024 if unit.endswith("i") else 1000) ** (_UNITS.index(unit[0]) + 1 if unit else 0)
    digits = (found[2] or ".")[1:]
    size: int = int(found[1] + digits) * factor // 10 ** len(digits)
    return size


@value_kind({"type": "string", "pattern": _MEMORY})
def _memory(value: Any, place: KeyPlace) -> str:
    if not isinstance(value, str) or not re.match(_MEMORY, value, re.ASCII):
        raise place.must_be("a size such as 16GiB", value)
    return value


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
    "max-device-memory": _memory,
    "read-with": _release,
    "require-manifest": _flag,
    "as-of": _day,
    "baseline": _path,
    "against": _text,
    "output-format": _choice(*FORMATS),
}
