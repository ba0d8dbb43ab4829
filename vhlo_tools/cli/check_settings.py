"""Output of ``vhlo check --show-settings``: the settings of the gate."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from vhlo_tools.gate import Gate, Override, key_of

#: Settings that are tables in a settings file.
_TABLES = ("targets", "levels", "overrides")


def lines(gate: Gate, files: Sequence[str]) -> Iterator[str]:
    settings = gate.settings
    yield f"# {settings.file or 'no settings file'}"
    for key, value in settings.values().items():
        if key not in _TABLES:
            yield f"# {key} is not set" if value is None else f"{key} = {_toml(value)}  # {_source(gate, key)}"
    for key, table in (("targets", settings.targets), ("levels", settings.levels)):
        yield ""
        yield f"[{key}]  # {settings.source(key)}"
        yield from (f"{_toml_key(name)} = {_toml(value)}" for name, value in table.items())
    for override in settings.overrides:
        yield ""
        yield f"[[overrides]]  # {override.source}"
        yield from (f"{key} = {_toml(value)}" for key, value in _override(override).items())
    for path in files:
        yield ""
        yield f"# {path}"
        yield from (f"#   question: {each}: {each.target.reason}" for each in gate.questions(path))
        yield from (f"#   {level}: {name}" for name, level in _levels(gate, path).items())


def as_json(gate: Gate, files: Sequence[str]) -> dict[str, Any]:
    settings = gate.settings
    overrides = [{**_override(each), "source": each.source} for each in settings.overrides]
    values = settings.values() | {"overrides": overrides}
    return {
        "file": str(settings.file) if settings.file else None,
        "settings": {key: {"value": _plain(value), "source": _source(gate, key)} for key, value in values.items()},
        "files": [
            {
                "path": path,
                "questions": [
                    {"question": str(each), "version": str(each.target.version)} for each in gate.questions(path)
                ],
                "levels": _levels(gate, path),
            }
            for path in files
        ],
    }


def _source(gate: Gate, key: str) -> str:
    return gate.settings.source(key.replace("-", "_"))


def _levels(gate: Gate, path: str) -> dict[str, str]:
    """Return the levels for a file; the last of several layers with a level for a name wins."""
    _, _, layers = gate.settings.for_file(path)
    return {name: level for levels in layers for name, level in levels.items()}


def _override(override: Override) -> dict[str, Any]:
    values = {name: getattr(override, name) for name in ("paths", "target", "readable_by", "levels")}
    return {key_of(name): _plain(value) for name, value in values.items() if value}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return value.isoformat() if isinstance(value, date) else value


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_toml_key(key)} = {_toml(each)}' for key, each in value.items())} }}"
    if isinstance(value, date):
        return value.isoformat()
    text = json.dumps(_plain(value), ensure_ascii=False)
    # TOML has no \x, and no pairs of surrogates.
    return "".join(char if char.isprintable() and char != "#" else f"\\U{ord(char):08x}" for char in text)


def _toml_key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _toml(key)
