"""See that the lint of aliases errs exactly where XLA refuses, and for the same reason: `check_aliases.py`.

Random signatures get random aliases and donors, right and wrong, in attributes of arguments and of the module. Each is
written as an artifact, and its bytes are linted; XLA converts and compiles the program that was written. Prints where
the two differ, and what was seen.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import Final

from xla_answers import Answer, ask_xla

import vhlo_tools as vt

BATCH: Final = 50

#: Element types, those that XLA packs and those of few bits among them; common ones more often.
ELEMENTS: Final = (
    *("f32", "f32", "i32", "i32", "ui8", "i8", "f64", "bf16"),
    *("i2", "i4", "ui4", "i1", "complex<f32>", "f8E4M3FN", "f4E2M1FN", "i64"),
)
DONORS: Final = ("true", "true", "false", "1 : i32", '"x"')
SIZES: Final = (4, 8, 4, 8, 4, 8, 1, 2, 3, 0)

#: What XLA says, and the feature of the finding that says the same. Source: ``hlo_input_output_alias_config.cc``,
#: ``hlo_verifier.cc`` and ``mlir_hlo_to_hlo.cc`` in openxla/xla.
REASONS: Final = {
    "Trying to set up alias at": "alias_output_index",
    "Aliasing output must be 0 if only one output exists": "alias_output_index",
    "output_subshape.IsArray()": "alias_output_index",
    "param_number >= 0": "alias_parameter_number",
    "num_parameters() > alias.parameter_number": "alias_parameter_number",
    "IndexIsValid(param_shape": "alias_parameter_index",
    "param_subshape.IsArray()": "alias_parameter_index",
    "is already aliased with param": "alias_output_twice",
    "param_has_seen": "alias_parameter_twice",
    "to have the same size": "alias_size",
    "Shape and memory space of the result": "alias_shape",
    "is already aliased with one output": "alias_and_donor",
    "is registered as a buffer donor": "alias_and_donor",
}


#: Of a must-alias XLA compares shapes before it looks whether there is such a parameter: it reads past the end, and
#: may find anything there.
PAST_THE_END: Final = {"alias_parameter_number", "alias_parameter_index"}


@dataclass(frozen=True, slots=True)
class Program:
    """A program of random arrays."""

    text: str  # it as MLIR
    errors: frozenset[str]  # the features of errors that the lint finds in its artifact


def programs(seeds: Sequence[int]) -> list[Program]:
    found = []
    for seed in seeds:
        text = program_text(Random(seed))
        artifact = vt.serialize(text, alias_lint=False)
        errors = frozenset(each.feature for each in artifact.alias_findings() if each.level == "error")
        found.append(Program(text, errors))
    return found


def program_text(random: Random) -> str:
    """Return a program whose results are zeros, with aliases and donors in all places."""
    parameters = [_array(random) for _ in range(random.randint(1, 4))]
    results = [
        random.choice(parameters) if random.random() < 0.7 else _array(random) for _ in range(random.randint(1, 3))
    ]
    attributes: list[list[str]] = [[] for _ in parameters]
    form = random.choice(("argument", "module", "module", "both"))
    if form != "module":
        for number, each in zip(
            _numbered(random, len(results)), random.sample(attributes, len(attributes)), strict=False
        ):
            each.append(f"tf.aliasing_output = {_output(random, number, len(results))}")
    entries = [
        _entry(random, number, output, (len(parameters), len(results)))
        for number, output in zip(_numbered(random, len(parameters)), _numbered(random, len(results)), strict=False)
    ]
    for each in attributes:
        if random.random() < 0.12:
            each.append(f"jax.buffer_donor = {random.choice(DONORS)}")
    arguments = ", ".join(
        f"%a{number}: {_type(*array)}" + (f" {{{', '.join(said)}}}" if said else "")
        for number, (array, said) in enumerate(zip(parameters, attributes, strict=True))
    )
    types = ", ".join(_type(*array) for array in results)
    values = ", ".join(f"%r{number}" for number in range(len(results)))
    zeros = "\n    ".join(
        f"%r{number} = stablehlo.constant dense<{_zero(*array)}> : {_type(*array)}"
        for number, array in enumerate(results)
    )
    module = f" attributes {{mhlo.input_output_alias = [{', '.join(entries)}]}}" if form != "argument" else ""
    return f"""module{module} {{
  func.func public @main({arguments}) -> ({types}) {{
    {zeros}
    return {values} : {types}
  }}
}}"""


def _array(random: Random) -> tuple[str, tuple[int, ...]]:
    return random.choice(ELEMENTS), tuple(random.choice(SIZES) for _ in range(random.choice((0, 1, 1, 2))))


def _type(element: str, sizes: tuple[int, ...]) -> str:
    return f"tensor<{''.join(f'{size}x' for size in sizes)}{element}>"


def _zero(element: str, sizes: tuple[int, ...]) -> str:
    if 0 in sizes:
        return ""
    special = {"i1": "false", "complex<f32>": "(0.0, 0.0)"}
    return special.get(element, "0.0" if "f" in element else "0")


def _output(random: Random, number: int, results: int) -> str:
    kinds = ("i32", "i32", "i32", "i64", "i8", "ui16", "index")
    if random.random() < 0.08:
        number = random.choice((-1, results, 200))
    if random.random() < 0.1:
        return random.choice(('"x"', "1.0 : f32", "false", "true", "array<i64: 0>"))
    kind = random.choice(kinds)
    return f"{number} : {'i32' if number < 0 or number > 127 else kind}"


def _numbered(random: Random, count: int) -> list[int]:
    """Return some of the first numbers, now and then one of them again."""
    numbers = random.sample(range(count), random.randint(1, count))
    return [*numbers, random.choice(numbers)] if random.random() < 0.2 else numbers


def _entry(random: Random, number: int, result: int, counts: tuple[int, int]) -> str:
    parameters, results = counts
    if random.random() < 0.05:
        number = random.choice((-1, parameters + 1))
    output = "" if results == 1 else str(result)
    if random.random() < 0.06:
        output = random.choice(("", "0", "-1", "9", "0, 0"))
    index = "" if random.random() < 0.92 else random.choice(("0", "-1"))
    kind = random.choice(('"may_alias"', '"may_alias"', '"may_alias"', '"must_alias"', "0 : i32"))
    return (
        f"{{alias = {{kind = {kind}, parameter_index = {_numbers(index)}, parameter_number = {number} : i64}}, "
        f"output_index = {_numbers(output)}}}"
    )


def _numbers(text: str) -> str:
    return f"array<i64: {text}>" if text else "array<i64>"


def difference(program: Program, answer: Answer) -> str | None:
    """Return how the lint and XLA differ about a program; nothing if they agree."""
    if answer.stage == "died":
        return None if program.errors else f"XLA dies of it ({answer.message}), and the lint says nothing"
    if not answer.refused:
        return f"XLA takes it, and the lint says {', '.join(sorted(program.errors))}" if program.errors else None
    reason = next((feature for said, feature in REASONS.items() if said in answer.message), None)
    if reason in program.errors or (reason == "alias_shape" and program.errors & PAST_THE_END):
        return None
    return f"XLA refuses it ({reason or answer.message}), and the lint says {', '.join(sorted(program.errors)) or 'ok'}"


def differences(seeds: Sequence[int], seen: Counter[str]) -> Iterator[str]:
    """Yield where the lint and XLA differ for programs of ``seeds``, and count what was ``seen``."""
    batch = programs(seeds)
    for seed, program, answer in zip(seeds, batch, ask_xla([each.text for each in batch]), strict=True):
        reason = next((feature for said, feature in REASONS.items() if said in answer.message), "")
        seen[" ".join((answer.stage, reason)).strip()] += 1
        found = difference(program, answer)
        if found is not None:
            yield f"seed {seed}: {found}\n{re.sub('^', '    ', program.text, flags=re.MULTILINE)}"


def main() -> int:
    """Compare as many as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.number)
    batches = [seeds[at : at + BATCH] for at in range(0, len(seeds), BATCH)]
    seen: Counter[str] = Counter()
    wrong = 0
    with ThreadPoolExecutor(arguments.processes) as pool:
        for found in pool.map(lambda batch: list(differences(batch, seen)), batches):
            wrong += len(found)
            for each in found:
                print(each, flush=True)
    print(f"{len(seeds)} programs: {', '.join(f'{number} {what}' for what, number in seen.most_common())}")
    print(f"{wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
