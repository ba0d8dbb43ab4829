"""Reading of JSON and TOML from files that may be hostile: every defect is a ``ValueError``.

Python's readers accept more than the formats have, such as ``NaN`` and two values for one key, and raise a
``RecursionError`` for deeply nested text.
"""

from __future__ import annotations

import json
import tomllib
from typing import Any, NoReturn


def read_json(text: str | bytes, *, not_finite: bool = False) -> Any:
    """Refuse duplicate keys, deep nesting, numbers that are not finite, and numbers of thousands of digits.

    ``not_finite`` accepts ``NaN`` and ``Infinity``, as Python writes them. Of halves of surrogate pairs, only those are
    accepted that stand for bytes in names of files that are not UTF-8.
    """
    plain = text if isinstance(text, str) else text.decode("utf-8")
    try:
        found = json.loads(
            plain,
            object_pairs_hook=_object,
            parse_constant=float if not_finite else _refuse_constant,
            parse_float=_finite,
        )
        if "\\ud" in plain.lower():
            json.dumps(found, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except RecursionError as error:
        raise ValueError("it nests too deeply") from error
    except UnicodeEncodeError as error:
        raise ValueError(f"{error.object[error.start]!r} is half of a surrogate pair, and no character") from error
    return found


def read_toml(text: str | bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(text if isinstance(text, str) else text.decode("utf-8"))
    except RecursionError as error:
        raise ValueError("it nests too deeply") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r} occurs twice in one object")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:20]} is larger than any float")
    return number
