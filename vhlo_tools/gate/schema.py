"""JSON schemas of tables in a settings file, for editors, from the same table of keys that the reader uses.

They are of draft 7, the newest that the editors' extensions for TOML read. Rules that no schema can express, such as
whether a target exists, are checked by the reader only.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.gate.keys import KeyPlace

_T = TypeVar("_T")

Schema = dict[str, Any]

#: The schema of a string that is not blank, and of one or a list of these.
TEXT: Final[Schema] = {"type": "string", "pattern": r"\S"}
TEXTS: Final[Schema] = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_ATTRIBUTE: Final = re.compile(r"    (\w+): (.+)")


@dataclass(frozen=True, slots=True)
class ValueKind(Generic[_T]):
    """Reader and schema of the values that a key may have."""

    read: Callable[[Any, KeyPlace], _T]  # raises SettingsError for a value at a place
    #: A function because it may list every feature; the schema may accept more than ``read``.
    schema: Callable[[], Schema]

    def __call__(self, value: Any, place: KeyPlace) -> _T:
        return self.read(value, place)


def value_kind(
    schema: Schema | Callable[[], Schema],
) -> Callable[[Callable[[Any, KeyPlace], _T]], ValueKind[_T]]:
    return lambda read: ValueKind(read, schema if callable(schema) else lambda: schema)


def one_or_more(each: Schema) -> Schema:
    return {"anyOf": [each, {"type": "array", "items": each, "minItems": 1}]}


def table_schema(keys: Mapping[str, ValueKind[Any]], owner: type, required: Sequence[str] = ()) -> Schema:
    """Return the schema of a table; the docstring of the dataclass ``owner`` describes its keys."""
    said, defaults = dict(_attributes(owner)), {each.name: each.default for each in fields(owner)}
    properties = {}
    for key, kind in keys.items():
        name = key.replace("-", "_")
        described = {"description": said[name]} if name in said else {}
        default = {"default": defaults[name]} if isinstance(defaults[name], bool | str) else {}
        properties[key] = {**described, **default, **kind.schema()}
    table = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**table, "required": list(required)} if required else table


def within(schema: Schema, *path: str) -> Schema:
    """Return the schema of a table that has ``schema`` at a path of keys, and anything else."""
    for key in reversed(path):
        schema = {"type": "object", "properties": {key: schema}}
    return schema


def document_schema(table: Schema, title: str) -> Schema:
    """Return the schema of a whole file, complete in itself: editors follow no relative references."""
    return {"$schema": _DRAFT, "title": title, **table}


def _attributes(owner: type) -> Iterator[tuple[str, str]]:
    """Yield names and descriptions of the attributes in a docstring; none if Python has dropped docstrings."""
    _, _, section = (inspect.getdoc(owner) or "").partition("Attributes:\n")
    # A description goes on in lines that are indented more.
    for line in re.sub(r"\n {5,}", " ", section).splitlines():
        if found := _ATTRIBUTE.fullmatch(line):
            yield found[1], found[2].replace("``", "`")
