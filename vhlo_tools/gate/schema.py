"""JSON schemas of tables in a settings file, for editors: made of the same table of keys that the reader uses.

They are of draft 7, the newest that the editors' extensions for TOML read. What no schema can say, such as whether a
target exists, only the reader says.
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
    """The values that a key may have.

    Attributes:
        read: Returns the value of a setting, from that in the file and its place, or raises a ``SettingsError``.
        schema: Returns the JSON schema of the values that ``read`` accepts, as far as a schema can say. It is called
            only if the schema is asked for, because it may list every feature.
    """

    read: Callable[[Any, KeyPlace], _T]
    schema: Callable[[], Schema]

    def __call__(self, value: Any, place: KeyPlace) -> _T:
        """Return the value of a setting.

        Raises:
            SettingsError: If the value in the file is invalid.
        """
        return self.read(value, place)


def value_kind(
    schema: Schema | Callable[[], Schema],
) -> Callable[[Callable[[Any, KeyPlace], _T]], ValueKind[_T]]:
    """Return a decorator that makes a reader of values a :class:`ValueKind`.

    Args:
        schema: The schema of the values, or a function that returns it.
    """
    return lambda read: ValueKind(read, schema if callable(schema) else lambda: schema)


def one_or_more(each: Schema) -> Schema:
    """Return the schema of a value, or of a list with at least one."""
    return {"anyOf": [each, {"type": "array", "items": each, "minItems": 1}]}


def table_schema(keys: Mapping[str, ValueKind[Any]], owner: type, required: Sequence[str] = ()) -> Schema:
    """Return the schema of a table.

    Args:
        keys: What each key may have.
        owner: The dataclass with a field for each key, whose docstring describes them.
        required: The keys that must be there.
    """
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
    """Return the schema of a table that has one with ``schema`` at a path of keys, and anything else."""
    for key in reversed(path):
        schema = {"type": "object", "properties": {key: schema}}
    return schema


def document_schema(table: Schema, title: str) -> Schema:
    """Return the schema of a whole file, which is complete in itself: editors follow no relative references."""
    return {"$schema": _DRAFT, "title": title, **table}


def _attributes(owner: type) -> Iterator[tuple[str, str]]:
    """Yield the names and the descriptions of the attributes in a docstring; none if Python has dropped docstrings."""
    _, _, section = (inspect.getdoc(owner) or "").partition("Attributes:\n")
    # A description goes on in lines that are indented more.
    for line in re.sub(r"\n {5,}", " ", section).splitlines():
        if found := _ATTRIBUTE.fullmatch(line):
            yield found[1], found[2].replace("``", "`")
