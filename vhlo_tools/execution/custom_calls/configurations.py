"""Configurations of custom calls: rules for their attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, Protocol

from vhlo_tools.execution.custom_calls.call_forms import CallForm
from vhlo_tools.records import dataclass

_BACKEND: Final = "backend_config"
_MHLO_BACKEND: Final = "mhlo.backend_config"
_ORIGINAL, _TYPED = 1, 4
#: The types of entries that are numbers or booleans; all other entries are letters, stored as ``ui8``.
_TYPES: Final = {"bool": "i1", "i32": "i32", "i64": "i64"}
_LETTER_TYPE: Final = "ui8"


class Configuration(Protocol):
    def reason_against(self, form: CallForm) -> str | None:
        """Return what is wrong with the attributes of a call; ``None`` if they are right."""

    def values(self, form: CallForm) -> Mapping[str, Any]:
        """Return the entries that types depend on, of a call whose attributes are right."""


@dataclass(frozen=True, slots=True)
class _Any:
    """Any attributes: they do not affect the result."""

    def reason_against(self, form: CallForm) -> str | None:
        return None

    def values(self, form: CallForm) -> Mapping[str, Any]:
        return {}


@dataclass(frozen=True, slots=True)
class _Empty:
    def reason_against(self, form: CallForm) -> str | None:
        if form.attributes.get("api_version", _ORIGINAL) not in (1, 2, 3, 4):
            return f"its api_version is {form.attributes['api_version']}, expected 1, 2, 3 or 4"
        for name in (_BACKEND, _MHLO_BACKEND):
            if form.attributes.get(name):
                return f"its {name} is {form.attributes[name]!r}, expected none"
        return None

    def values(self, form: CallForm) -> Mapping[str, Any]:
        return {}


ANY: Final = _Any()
EMPTY: Final = _Empty()


@dataclass(frozen=True, slots=True)
class FrontendAttribute:
    """An annotation with its meaning in ``mhlo.frontend_attributes``."""

    name: str

    def reason_against(self, form: CallForm) -> str | None:
        found = form.attributes.get("mhlo.frontend_attributes")
        if isinstance(found, Mapping) and isinstance(found.get(self.name), str):
            return None
        return f"its mhlo.frontend_attributes have no {self.name}"

    def values(self, form: CallForm) -> Mapping[str, Any]:
        return {}


@dataclass(frozen=True, slots=True)
class TextConfiguration:
    pattern: str
    meaning: str  # form of the string, for messages
    is_optional: bool = False

    def reason_against(self, form: CallForm) -> str | None:
        if self.is_optional and not form.attributes.get(_BACKEND):
            return EMPTY.reason_against(form)
        version, text = form.attributes.get("api_version", _ORIGINAL), form.attributes.get(_BACKEND)
        if version not in (1, 2, 3):
            return f"its api_version is {version}, expected 1, 2 or 3"
        if form.attributes.get(_MHLO_BACKEND):
            return f"it has a {_MHLO_BACKEND}, expected none"
        if not isinstance(text, str) or re.fullmatch(self.pattern, text) is None:
            found = "missing" if text is None else repr(text)
            return f"its {_BACKEND} is {found}, expected {self.meaning}"
        return None

    def values(self, form: CallForm) -> Mapping[str, Any]:
        return {}


@dataclass(frozen=True, slots=True)
class TypedConfiguration:
    """For XLA's typed FFI; JAX wrote it to ``mhlo.backend_config`` before it could export ``api_version = 4``."""

    entries: Mapping[str, str] = field(default_factory=dict)  # values are "bool", "i32", or the letters that one may be

    def reason_against(self, form: CallForm) -> str | None:
        version = form.attributes.get("api_version", _ORIGINAL)
        named = _MHLO_BACKEND in form.attributes
        if version != _TYPED and not (version == _ORIGINAL and named):
            return f"its api_version is {version}, expected {_TYPED}"
        if named and form.attributes.get(_BACKEND):
            return f"it has both a {_BACKEND} and a {_MHLO_BACKEND}"
        return _reason_against_entries(form, _MHLO_BACKEND if named else _BACKEND, self.entries, frozenset())

    def values(self, form: CallForm) -> Mapping[str, Any]:
        found = form.attributes.get(_MHLO_BACKEND) or form.attributes.get(_BACKEND) or {}
        return {name: found[name] if kind in _TYPES else chr(found[name]) for name, kind in self.entries.items()}


@dataclass(frozen=True, slots=True)
class MhloOp:
    """An op of MHLO that StableHLO lacks, with its attributes in ``mhlo.attributes``."""

    entries: Mapping[str, str] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()  # optional entries, which must be true

    def reason_against(self, form: CallForm) -> str | None:
        if form.attributes.get("api_version", _ORIGINAL) != _ORIGINAL:
            return f"its api_version is {form.attributes['api_version']}, expected {_ORIGINAL}"
        for name in (_BACKEND, _MHLO_BACKEND, "has_side_effect", "operand_layouts", "result_layouts"):
            # XLA takes even an empty dictionary for that of another kind of call.
            if form.attributes.get(name, "") not in ("", False):
                return f"it has the attribute {name}, which XLA does not accept of an op of MHLO"
        if form.attributes.get("mhlo.version") != 1:
            return f"its mhlo.version is {form.attributes.get('mhlo.version')!r}, expected 1"
        if "mhlo.attributes" not in form.attributes:
            return "it has no mhlo.attributes"
        return _reason_against_entries(form, "mhlo.attributes", self.entries, self.flags)

    def values(self, form: CallForm) -> Mapping[str, Any]:
        found: Mapping[str, Any] = form.attributes["mhlo.attributes"]
        return {name: found[name] for name in self.entries}


def _reason_against_entries(
    form: CallForm, attribute: str, entries: Mapping[str, str], flags: frozenset[str]
) -> str | None:
    found = form.attributes.get(attribute) or {}
    if not isinstance(found, Mapping):
        return f"its {attribute} is {found!r}, expected a dictionary"
    if not entries.keys() <= found.keys() <= entries.keys() | flags:
        names = ", ".join(sorted(map(str, found))) or "no entries"
        return f"its {attribute} has {names}, expected {', '.join(sorted(entries)) or 'none'}"
    for name, value in found.items():
        kind = entries.get(name, "bool")
        type_ = form.entry_types.get((attribute, name))
        wanted_type = _TYPES.get(kind, _LETTER_TYPE)
        is_number = isinstance(value, int) and (kind == "bool") == isinstance(value, bool)
        if not is_number or type_ not in (None, wanted_type):
            return f"{name} in its {attribute} is {value!r}{f' : {type_}' if type_ else ''}, expected {wanted_type}"
        if kind not in _TYPES and value not in map(ord, kind):
            letters = ", ".join(f"{ord(each)} ({each})" for each in kind)
            return f"{name} in its {attribute} is {value}, expected one of {letters}"
        if name in flags and not value:
            return f"{name} in its {attribute} is false, expected true"
    return None
