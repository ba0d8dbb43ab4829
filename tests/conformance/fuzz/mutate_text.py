"""Mutation of text by its tokens: MLIR, HLO and TOML."""

from __future__ import annotations

import random
import re

from fuzz.drawing import damage, hostile_string, number

_TOKENS = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|[%@#!^]?[A-Za-z_][\w.$-]*|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[%@#!^]\d+|->|::|\s+|.', re.DOTALL
)
_OPENING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_PIECES = (
    *("tensor<?xf32>", "tensor<4x?x2xi1>", "tensor<*xf32>", "tensor<0xi8>", "i16777215", "!stablehlo.token", "none"),
    *(
        "tuple<",
        "dense<",
        "dense_resource<",
        "[[",
        "{{",
        "-1",
        "0x7FC00000",
        "1e999",
        "nan",
        "?",
        "<=",
        "loc(",
        "module",
    ),
    *("f8E4M3FN", "s4", "c128", "complex<f32>", "!quant.uniform<i8:f32, 0.0:0>", "#stablehlo.bounds<4>", "x"),
)
_LONGEST = 300_000


def _number(chance: random.Random) -> str:
    return chance.choice(("", "-")) + str(number(chance)) + chance.choice(("", "", ".5", "e308", "0" * 400))


def _edit(chance: random.Random, tokens: list[str], other: list[str]) -> None:
    at = chance.randrange(len(tokens))
    match chance.randrange(14):
        case 0:
            del tokens[at : at + chance.choice((1, 1, 2, 10))]
        case 1:
            tokens.insert(at, tokens[at])
        case 2:
            place = chance.randrange(len(tokens))
            tokens[at], tokens[place] = tokens[place], tokens[at]
        case 3 | 4:
            tokens[at] = chance.choice(other)
        case 5:
            tokens[at] = chance.choice(tokens)
        case 6 | 7:
            numbers = [place for place, token in enumerate(tokens) if token.lstrip("-")[:1].isdigit()]
            tokens[chance.choice(numbers) if numbers else at] = _number(chance)
        case 8:
            # Nested deeply: what opens here opens many times, and is closed or not.
            places = [place for place, token in enumerate(tokens) if token in _OPENING] or [at]
            at, times = chance.choice(places), chance.choice((2, 50, 500, 20_000))
            closing = _OPENING.get(tokens[at])
            if closing and chance.random() < 0.5 and closing in tokens[at:]:
                end = at + tokens[at:].index(closing)
                tokens[end] *= times
            tokens[at] *= times
        case 9:
            place, size = chance.randrange(len(other)), chance.randrange(2, 40)
            tokens[at:at] = other[place : place + size]
        case 10:
            start, size = chance.randrange(len(tokens)), chance.randrange(2, 40)
            tokens[at:at] = tokens[start : start + size] * chance.choice((1, 1, 30))
        case 11:
            tokens[at] = hostile_string(chance, tokens[at].encode(errors="replace")).decode(errors="replace")
        case 12:
            names = [place for place, token in enumerate(tokens) if token[:1].isalpha()] or [at]
            theirs = [token for token in other if token[:1].isalpha()] or other
            tokens[chance.choice(names)] = chance.choice(theirs)
        case _:
            tokens[at] = chance.choice(_PIECES)


def mutate_text(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Return a text changed; tokens and pieces of ``other`` may be put in."""
    if chance.random() < 0.1:
        return damage(chance, data)
    tokens, theirs = (_TOKENS.findall(each.decode(errors="replace")) or [""] for each in (data, other))
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        if tokens:
            _edit(chance, tokens, theirs)
    return "".join(tokens).encode(errors="replace")[:_LONGEST]
