"""Count how many small changes of programs `vhlo verify` finds by default: `check_verify.py`.

Draws programs of many ops, most of them squashing their operands, and changes one number or op in each. Whether any
input shows the change is found out with many more inputs, of other seeds and scales, on XLA. Prints the changes that
were shown by an input and not found.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, Final

import numpy as np

import vhlo_tools as vt

SHAPE: Final = "tensor<8x8xf32>"
#: The maximum of a value with itself is also its minimum.
_OF_ITSELF: Final = re.compile(r"maximum (%\w+), \1 ")
#: Inputs of the search: scales and seeds that the default does not draw.
SCALES: Final = (0.02, 0.1, 0.3, 0.7, 1.0, 2.0, 8.0)
TRIED: Final = 12


def draw_program(seed: int, ops: int) -> str:
    random = Random(seed)
    values, lines = ["%a", "%b"], list[str]()

    def add(text: str) -> str:
        name = f"%v{len(lines)}"
        lines.append(f"  {name} = {text}")
        return name

    def number(value: float) -> str:
        scalar = add(f"stablehlo.constant dense<{value}> : tensor<f32>")
        return add(f"stablehlo.broadcast_in_dim {scalar}, dims = [] : (tensor<f32>) -> {SHAPE}")

    for _ in range(ops):
        # Recent values more often, so that most of the program is used.
        one, other = (random.choice(values[-6:]) for _ in range(2))
        kind = random.choice(
            ("add", "subtract", "multiply", "maximum", "tanh", "sine", "logistic", "dot", "scale", "sum")
        )
        if kind in ("add", "subtract", "multiply", "maximum"):
            values.append(add(f"stablehlo.{kind} {one}, {other} : {SHAPE}"))
        elif kind == "dot":
            made = add(
                f"stablehlo.dot_general {one}, {other}, contracting_dims = [1] x [0] : ({SHAPE}, {SHAPE}) -> {SHAPE}"
            )
            values.append(add(f"stablehlo.tanh {made} : {SHAPE}"))
        elif kind == "scale":
            values.append(add(f"stablehlo.multiply {one}, {number(round(random.uniform(0.5, 2.0), 3))} : {SHAPE}"))
        elif kind == "sum":
            start = add("stablehlo.constant dense<0.0> : tensor<f32>")
            made = add(
                f"stablehlo.reduce({one} init: {start}) applies stablehlo.add across dimensions = [0] : "
                f"({SHAPE}, tensor<f32>) -> tensor<8xf32>"
            )
            made = add(f"stablehlo.broadcast_in_dim {made}, dims = [1] : (tensor<8xf32>) -> {SHAPE}")
            values.append(add(f"stablehlo.tanh {made} : {SHAPE}"))
        else:
            values.append(add(f"stablehlo.{kind} {one} : {SHAPE}"))
    body = "\n".join(lines)
    return f"func.func @main(%a: {SHAPE}, %b: {SHAPE}) -> {SHAPE} {{\n{body}\n  return {values[-1]} : {SHAPE}\n}}\n"


def used(lines: list[str]) -> list[int]:
    """Return the numbers of the lines on which the result depends."""
    needed, found = set(re.findall(r"%\w+", lines[-2])), list[int]()
    for at in range(len(lines) - 3, 0, -1):
        name, _, rest = lines[at].strip().partition(" = ")
        if name in needed:
            needed |= set(re.findall(r"%\w+", rest))
            found.append(at)
    return found[::-1]


def mutants(text: str, random: Random, number: int) -> Iterator[tuple[str, str]]:
    """Yield changed programs, each with what was changed; nothing is changed on which the result does not depend."""
    lines = text.splitlines()
    changeable = re.compile(r"dense<|subtract|maximum|dims = \[1\] x|dims = \[1\] :")
    places = [at for at in used(lines) if changeable.search(lines[at]) and not _OF_ITSELF.search(lines[at])]
    for at in random.sample(places, min(number, len(places))):
        line = lines[at]
        if found := re.search(r"dense<([^>]*)>", line):
            value = float(found[1])
            changed = line.replace(found[0], f"dense<{value * 1.01 if value else 0.1}>")
        elif "contracting_dims" in line:
            changed = line.replace("[1] x [0]", "[0] x [1]")
        elif "dims = [1]" in line:
            changed = line.replace("dims = [1]", "dims = [0]")
        else:
            changed = line.replace("subtract", "add").replace("maximum", "minimum")
        yield "\n".join([*lines[:at], changed, *lines[at + 1 :]]), f"{line.strip()} -> {changed.strip()}"


def is_shown(one: Any, other: Any) -> bool:
    """Return whether any input of the search shows a difference."""
    for scale in SCALES:
        for seed in range(TRIED):
            random = np.random.default_rng((seed, int(scale * 1000)))
            inputs = [(random.standard_normal((8, 8)) * scale).astype(np.float32) for _ in range(2)]
            if not np.allclose(one.run(inputs)[0], other.run(inputs)[0], rtol=1e-4, atol=1e-5):
                return True
    return False


def campaign(programs: int, changes: int, ops: int = 60, first: int = 0) -> tuple[Counter[str], list[str]]:
    """Return counts, and the changes that an input shows and verification did not find."""
    seen: Counter[str] = Counter()
    missed = []
    for seed in range(first, first + programs):
        text = draw_program(seed, ops)
        base = vt.load_executable(text, engine="xla")
        for changed, what in mutants(text, Random(seed), changes):
            found = not vt.verify(text, changed, seed=seed, engine="xla").passed
            shown = found or is_shown(base, vt.load_executable(changed, engine="xla"))
            seen["mutants"] += 1
            seen["found"] += found
            seen["without any difference"] += not shown
            if shown and not found:
                missed.append(f"program {seed}: {what}")
    return seen, missed


def main() -> int:
    """Check as many as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--changes", type=int, default=10, help="of each program")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    seen, missed = campaign(arguments.programs, arguments.changes, first=arguments.first)
    print("\n".join(missed))
    print(", ".join(f"{number} {what}" for what, number in seen.items()) + f", {len(missed)} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
