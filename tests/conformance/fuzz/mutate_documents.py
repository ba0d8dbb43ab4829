"""Mutation of JSON: types, depth, numbers and keys; also what JSON text has and documents have not."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from fuzz.drawing import damage, hostile_string, near, number
from fuzz.mutate_text import mutate_text

_VALUES: tuple[Any, ...] = (None, True, False, 0, -1, 1.5, 1e300, 1 << 64, -(1 << 63), "", "x", [], {}, [[]], {"": {}})
#: Put in as text, where a document of Python cannot say it.
_TEXTS = ("1e999", "-1e999", "NaN", "Infinity", "1" * 5000, "[" * 3000, '{"a":' * 3000, '"\\ud800"', "01", "'a'")
_MARK = "put text here"


def _places(document: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    pending = [document]
    while pending:
        each = pending.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ()
        for key in keys:
            found.append((each, key))
            pending.append(each[key])
    return found


def _string(chance: random.Random, old: str = "") -> str:
    return hostile_string(chance, old.encode(errors="replace")).decode(errors="surrogateescape")


def edit_document(chance: random.Random, document: Any) -> None:
    """Change something in a document, in place."""
    places = _places(document)
    if not places:
        return
    within, key = chance.choice(places)
    value = within[key]
    match chance.randrange(9):
        case 0:
            del within[key]
        case 1:
            within[key] = chance.choice(_VALUES)
        case 2:
            other, theirs = chance.choice(places)
            # A copy: a document in itself cannot be written.
            within[key] = json.loads(json.dumps(other[theirs])) if theirs in other or isinstance(other, list) else None
        case 3 if isinstance(within, dict):
            within[_string(chance, str(key))] = within.pop(key)
        case 4:
            within[key] = [value] * chance.choice((1, 2, 1000))
        case 5:
            within[key] = {str(key): value}
        case 6:
            within[key] = _MARK
        case _:
            if isinstance(value, bool) or value is None:
                within[key] = chance.choice(_VALUES)
            elif isinstance(value, int):
                within[key] = near(chance, abs(value), 1 << 70) * chance.choice((1, 1, -1))
            elif isinstance(value, str):
                within[key] = _string(chance, value)
            elif isinstance(value, list):
                within[key] = chance.choice((value * 2, value[:-1], value[::-1], [*value, number(chance)]))
            else:
                within[key] = list(value) if isinstance(value, dict) else str(value)


def mutate_json(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Return JSON changed, mostly JSON still."""
    if chance.random() < 0.15:
        return damage(chance, data) if chance.random() < 0.5 else mutate_text(chance, data, other)
    document = json.loads(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        try:
            edit_document(chance, document)
        except LookupError:
            continue
    text = json.dumps(document)
    text = re.sub(f'"{_MARK}"', lambda _: chance.choice(_TEXTS), text)
    if chance.random() < 0.1:
        # A key twice.
        text = text.replace(
            '{"', f'{{"{chance.choice(list(document) or ["x"]) if isinstance(document, dict) else ""}":0,"', 1
        )
    return text.encode(errors="surrogateescape")
