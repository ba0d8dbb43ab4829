"""Regular expressions take time that is linear in what they read: each is tried on what its own characters make."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

import vhlo_tools
from vhlo_tools.lazy import LazyPattern

parser: Any = import_module("re._parser")
PACKAGE = Path(vhlo_tools.__file__).parent
#: Long enough for a square to show beside the noise of a machine that is shared.
LENGTH = 5000
SHOWS = 0.01
SEARCHES = ("search", "sub", "subn", "findall", "finditer", "split", "match", "fullmatch")


def patterns() -> Iterator[tuple[str, re.Pattern[Any], str]]:
    """Yield each pattern that a module keeps, by name, and a method that it is used by."""
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text()
        if not re.search(r"re\.compile\(| = pattern\(", source) or "inside" in path.parts:
            continue
        module = import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
        holders = [module, *(each for each in vars(module).values() if isinstance(each, type))]
        for holder in holders:
            for name, value in vars(holder).items():
                if isinstance(value, re.Pattern | LazyPattern) and re.search(
                    rf"^\s*{name}\b.* = ", source, re.MULTILINE
                ):
                    kept = re.compile(value.pattern, value.flags)
                    used = re.findall(rf"\b{name}\.({'|'.join(SEARCHES)})\b", source)
                    # The scanner, which gets patterns, matches where it stands.
                    other = ["match"] if re.search(rf"\.(take|match)\({name}\b", source) else ["search"]
                    yield from ((f"{module.__name__}.{name}", kept, method) for method in sorted({*(used or other)}))


def characters(tree: Any) -> Iterator[str]:
    """Yield the characters that a pattern names, and one of each class."""
    for op, argument in tree:
        if op in (parser.LITERAL, parser.NOT_LITERAL):
            yield chr(argument)
        elif op is parser.RANGE:
            yield chr(argument[0])
        elif op is parser.CATEGORY:
            yield {"DIGIT": "0", "WORD": "a", "SPACE": " "}.get(str(argument).rpartition("_")[2], "-")
        elif isinstance(argument, (list, tuple)):
            for each in argument:
                if op is parser.IN:
                    yield from characters([each])
                elif isinstance(each, parser.SubPattern):
                    yield from characters(each)
                elif isinstance(each, list):
                    for one in each:
                        yield from characters(one)


def seconds(pattern: re.Pattern[Any], method: str, text: Any) -> float:
    began = perf_counter()
    if method in ("sub", "subn"):
        pattern.sub(text[:0], text)
    elif method == "finditer":
        list(pattern.finditer(text))
    else:
        getattr(pattern, method)(text)
    return perf_counter() - began


def slow_on(pattern: re.Pattern[Any], method: str) -> str | None:
    """Return what is repeated in a text on which twice the length takes three times as long."""
    binary = isinstance(pattern.pattern, bytes)
    text = pattern.pattern.decode("latin-1") if binary else pattern.pattern
    named = list(dict.fromkeys(characters(parser.parse(text, pattern.flags & ~re.UNICODE))))
    alphabet = [*named[:6], "a", "\n"]
    literal = re.match(r"[\w\"'<(#!:=, ]*", text)
    beginnings = {"", literal[0] if literal else ""}
    for unit in ("".join(each) for length in (1, 2) for each in product(alphabet, repeat=length)):
        for beginning in beginnings:

            def made(length: int, beginning: str = beginning, unit: str = unit) -> Any:
                whole = beginning + unit * (length // len(unit))
                return whole.encode("latin-1", "replace") if binary else whole

            if seconds(pattern, method, made(LENGTH)) < SHOWS:
                continue
            once = min(seconds(pattern, method, made(LENGTH)) for _ in range(3))
            twice = min(seconds(pattern, method, made(2 * LENGTH)) for _ in range(3))
            if once > SHOWS / 2 and twice > 3 * once:
                return f"{beginning!r} and {unit!r} again and again"
    return None


KNOWN = list(patterns())


def test_there_are_patterns() -> None:
    assert len(KNOWN) > 100


@pytest.mark.parametrize(
    ("pattern", "method"), [(one, by) for _, one, by in KNOWN], ids=[f"{n} {by}" for n, _, by in KNOWN]
)
def test_a_pattern_takes_linear_time(pattern: re.Pattern[Any], method: str) -> None:
    assert slow_on(pattern, method) is None


def test_a_square_is_seen() -> None:
    assert slow_on(re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"'), "sub")
    assert slow_on(re.compile(r"(?m)^(\s*):(?=:)"), "sub")
