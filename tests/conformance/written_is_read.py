"""Check that the library reads what is written of valid and nearly valid programs: `written_is_read.py --number 9999`.

Draws from the programs of the tests: types, numbers and names of each change places, ops of one kind become another,
and functions end with the return of StableHLO. What MLIR parses is serialized, for the newest version or an older one,
and what is written is read. Prints how many pieces ended in which way, and each that is written and not read, raises an
error without a type, or ends the process although MLIR alone reads it; of these there must be none.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

from isolated_cases import work_off

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider

_ROOT: Final = Path(__file__).resolve().parents[2]
_BATCH: Final = 250
_LONGEST: Final = 6_000
#: What may change places: types, numbers, names of ops, names of values, words.
_KINDS: Final = (
    re.compile(r"(?:tensor|tuple|complex|vector)<[^<>]*(?:<[^<>]*>)?[^<>]*>"),
    re.compile(r"(?<![\w.%@#])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])"),
    re.compile(r"\b(?:stablehlo|chlo)\.\w+"),
    re.compile(r"%\w+"),
    re.compile(r"(?<=[x<])(?:i1|u?i\d+|f\d+\w*|bf16)(?=>)"),
    re.compile(r"@\w+"),
)
_RETURN: Final = re.compile(r"\b(?:func\.)?return\b")
_WRONG: Final = ("written and not read", "raised", "died", "too-long")


def _texts() -> list[str]:
    files = sorted([*(_ROOT / "tests" / "programs").rglob("*.mlir"), *(_ROOT / "examples").glob("*.mlir")])
    texts = [each.read_text(encoding="utf-8", errors="replace") for each in files]
    return [each for each in texts if len(each) < _LONGEST]


def drawn(chance: random.Random, texts: list[str]) -> str:
    """Return a program, changed in one to three places."""
    text = chance.choice(texts)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if chance.random() < 0.1:
            text = _RETURN.sub("stablehlo.return", text, count=chance.choice((0, 1)))
            continue
        kind = chance.choice(_KINDS)
        here, others = list(kind.finditer(text)), kind.findall(chance.choice((text, chance.choice(texts))))
        if here and others:
            at = chance.choice(here)
            text = text[: at.start()] + chance.choice(others) + text[at.end() :]
    return text


def batch(seed: int) -> tuple[Counter[str], list[tuple[str, str]]]:
    """Return how the pieces of a seed ended, and what must not be."""
    chance, texts, provider = random.Random(seed), _texts(), get_provider()
    counts: Counter[str] = Counter()
    wrong = []
    # One for all: to register the dialects takes half of the time of a piece.
    context = provider.new_context()
    for _ in range(_BATCH):
        text = drawn(chance, texts)
        target = chance.choice(("current", "current", "0.9.0", "1.0.0", "1.9.0"))
        try:
            # MLIR says why to stderr: text that is no UTF-8 ends a process where it becomes an exception.
            context.emit_error_diagnostics = True
            module = provider.ir.Module.parse(text, context)
        except Exception:
            counts["not parsed"] += 1
            continue
        finally:
            context.emit_error_diagnostics = False
        how = _ended(module if chance.random() < 0.9 else text, target, context)
        counts[how.partition(":")[0]] += 1
        if how.startswith(_WRONG):
            wrong.append((how, text))
    return counts, wrong


def _ended(program: object, target: str, context: Any) -> str:
    try:
        artifact = vt.serialize(program, target=target, expand=target != "current", trusted=True)
    except vt.VhloToolsError as error:
        return type(error).__name__
    except Exception as error:
        return f"raised: {type(error).__name__}: {error}"
    try:
        vt.deserialize(artifact, context)
    except vt.VhloToolsError as error:
        return f"written and not read: {error}"
    return "read"


def main() -> int:
    """Return 1 if anything ended as it must not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=10_000, help="pieces [default: 10000]")
    parser.add_argument("--seed", type=int, default=0, help="of the first batch [default: 0]")
    parser.add_argument("--jobs", type=int, default=2, help="processes [default: 2]")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    bad = 0
    seeds = range(arguments.seed, arguments.seed + -(-arguments.number // _BATCH))
    for ended in work_off(f"{Path(__file__).stem}:batch", seeds, processes=arguments.jobs, timeout=300):
        if ended.how != "done":
            print(f"the batch of seed {ended.case} {ended.how}: {str(ended.result)[-600:]}", flush=True)
            bad += 1
            continue
        found, wrong = ended.result
        counts.update(found)
        bad += len(wrong)
        for how, text in wrong:
            print(f"{how}\n{text}\n", flush=True)
    print(", ".join(f"{how} {count}" for how, count in counts.most_common()))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
