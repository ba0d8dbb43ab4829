"""Entries of a specification as TOML text, in the layout of ``dialect_specs/``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Final

from vhlo_tools.dialect.scaffold.document import array, quoted

# Which arrays of tables have headers of their own, such as [[op.version]]; others are written in line.
_TABLES: Final = frozenset({"version", "step", "constraint", "encoding", "expansion"})


def document_text(table: str, entries: Sequence[Mapping[str, Any]]) -> str:
    """A blank line separates two entries."""
    return "\n".join(entry_text(table, entry) for entry in entries)


def entry_text(table: str, entry: Mapping[str, Any]) -> str:
    return "".join(_lines(table, entry))


def _lines(header: str, entry: Mapping[str, Any]) -> Iterator[str]:
    yield f"[[{header}]]\n"
    inner = {key for key, value in entry.items() if key in _TABLES and isinstance(value, list)}
    for key, value in entry.items():
        if key not in inner:
            yield f"{key} = {_cases(value) if key == 'cases' else value_text(value)}\n"
    for key in (key for key in entry if key in inner):
        for each in entry[key]:
            # An encoding belongs to its type as closely as a key.
            yield "" if key == "encoding" else "\n"
            yield from _lines(f"{header}.{key}", each)


def _cases(values: Sequence[Any]) -> str:
    return "\n".join(["[", *(f"  {value_text(value)}," for value in values), "]"])


def value_text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return quoted(value)
        case date():
            return value.isoformat()
        case Mapping():
            return f"{{ {', '.join(f'{_key(key)} = {value_text(each)}' for key, each in value.items())} }}"
        case list() if all(isinstance(each, str) for each in value):
            return array(value)
        case list():
            return f"[{', '.join(map(value_text, value))}]"
    return str(value)


def _key(key: str) -> str:
    return key if key.isascii() and key.replace("_", "a").replace("-", "a").isalnum() else quoted(key)
