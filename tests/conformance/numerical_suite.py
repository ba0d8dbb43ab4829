"""Compare what JAX's primitives compute: with JAX itself, and on the engines `reference`, `xla` and `iree`.

The programs are the harnesses that JAX tests its primitives with: some of each primitive and each type of elements.
Each is lowered to StableHLO, run on the engines, and compared with what JAX gives. `numerical_suite.toml` says how far
results may be apart, and lists what ends otherwise than in agreement. Anything else makes the exit code 1, and so does
what is listed and agrees. JAX must be installed, with what its tests need (`absl-py`); for the engine `iree`, IREE.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
from isolated_cases import Ended, work_off
from jax_harnesses import dtype_of, load_case, primitive_of, quick_selection, selection
from numerical_rules import FILE, Allowance, Rules, read_rules

import vhlo_tools as vt
from vhlo_tools.api import ENGINE_CHOICES, EngineChoice
from vhlo_tools.verification import compare

#: The engines of an environment without IREE.
ENGINES: Final[tuple[EngineChoice, ...]] = ("reference", "xla")
#: The package that has each engine.
PACKAGES: Final = {"reference": "jaxlib", "xla": "jaxlib", "iree": "iree-base-compiler"}
#: How many harnesses of each primitive and type there are in the whole suite.
PER_KIND: Final = 3
SECONDS: Final = 60.0
#: How long one engine may take over a program, which is less than all may.
SECONDS_OF_ENGINE: Final = 40.0
#: A program, what is allowed for its results, and the engines.
Case = tuple[str, Allowance, tuple[EngineChoice, ...]]


@dataclass(frozen=True)
class Outcome:
    """How a program ended on an engine."""

    name: str  # the harness
    primitive: str  # the primitive that it is for
    dtype: str  # the type of elements that it is for
    engine: str  # the engine
    outcome: str  # ``agrees``, ``refused``, ``differs``, ``raised``, ``died`` or ``too-long``
    reason: str  # why, if it does not agree
    known: str  # why that is known, if it is listed
    unexpected: bool  # whether it is neither agreement nor listed so, or is agreement and listed otherwise


def judge(program: Case) -> dict[str, tuple[str, str]]:
    """Run a harness on each engine, and return how it ended there and why, under an allowance."""
    name, allowance, engines = program
    case = load_case(name)
    judged: dict[str, tuple[str, str]] = {}
    for engine in engines:
        try:
            executable = vt.load_executable(case.module, engine=engine, name=name, timeout=SECONDS_OF_ENGINE)
            results = executable.run(case.inputs)
        except vt.EngineCrashError as error:
            judged[engine] = "died", str(error)
            continue
        except vt.EngineTimeoutError as error:
            judged[engine] = "too-long", str(error)
            continue
        except vt.VhloToolsError as error:
            judged[engine] = "refused", str(error)
            continue
        compared = [
            compare(np.asarray(found), expected, allowance.tolerance(expected), str(number))
            for number, (found, expected) in enumerate(zip(results, case.expected, strict=True))
        ]
        apart = "; ".join(str(each) for each in compared if not each.passed)
        judged[engine] = ("differs", apart) if apart else ("agrees", "")
    return judged


def outcomes(ended: Ended[Case], rules: Rules) -> Iterator[Outcome]:
    name, _, engines = ended.case
    judged = ended.result if ended.how == "done" else dict.fromkeys(engines, (ended.how, ended.result or ""))
    for engine, (outcome, reason) in judged.items():
        known = rules.known_of(name, engine)
        unexpected = outcome != (known.outcome if known else "agrees")
        yield Outcome(
            name, primitive_of(name), dtype_of(name), engine, outcome, reason, known.reason if known else "", unexpected
        )


def stale_entries(names: Sequence[str], engines: Sequence[str], rules: Rules) -> Iterator[str]:
    """Yield the patterns of what is listed, for engines that ran, that no harness fits."""
    for each in rules.known:
        if each.engine not in engines:
            continue
        yield from (pattern for pattern in each.names if not fnmatch.filter(names, pattern))


def report(found: Sequence[Outcome], engines: Sequence[str]) -> None:
    """Print a table of all primitives, and what is not as it should be."""
    words = ("agrees", "refused", "differs", "raised", "died", "too-long")
    counted: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    reasons = defaultdict(set)
    for each in found:
        for row in (each.primitive, "all"):
            counted[row][each.engine, each.outcome] += 1
        if each.known:
            reasons[each.primitive].add(f"{each.engine} {each.outcome}: {each.known}")
    columns = [(engine, word) for engine in engines for word in words]
    columns = [column for column in columns if counted["all"][column]]
    print(f"{'primitive':30}" + "".join(f"{' '.join(column):>18}" for column in columns))
    for primitive in (*sorted(set(counted) - {"all"}), "all"):
        numbers = "".join(f"{counted[primitive][column] or '-':>18}" for column in columns)
        print(f"{primitive:30}{numbers}  {'; '.join(sorted(reasons[primitive]))}".rstrip())
    for each in found:
        if each.unexpected:
            listed = ", but is listed otherwise: " + each.known if each.known else ""
            print(f"unexpected: {each.name} on {each.engine} {each.outcome}{listed}: {each.reason[:600]}")


def record(found: Sequence[Outcome], engines: Sequence[str]) -> dict[str, Any]:
    """Return how many programs ended how on each engine, and for each cause how many, and of which primitives."""
    causes: dict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
    for each in found:
        if each.outcome != "agrees":
            causes[each.engine, each.outcome, each.known or each.reason].append(each)
    return {
        "programs": len({each.name for each in found}),
        "with": {each: f"{PACKAGES[each]} {version(PACKAGES[each])}" for each in engines},
        "engines": {
            engine: dict(sorted(Counter(each.outcome for each in found if each.engine == engine).items()))
            for engine in engines
        },
        "causes": [
            {
                "engine": engine,
                "outcome": outcome,
                "reason": reason,
                "programs": len(of_cause),
                "primitives": sorted({each.primitive for each in of_cause}),
            }
            for (engine, outcome, reason), of_cause in sorted(causes.items(), key=lambda item: (item[0], len(item[1])))
        ],
    }


def main() -> int:
    """Run the suite; 1 if an outcome is unexpected."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one program of each primitive in a few types")
    parser.add_argument(
        "--only", metavar="WORD", action="append", help="only harnesses with WORD in their name; may be repeated"
    )
    parser.add_argument("--rules", type=Path, default=FILE, help="what it lets pass (default: %(default)s)")
    parser.add_argument(
        "--engines", metavar="NAMES", default=",".join(ENGINES), help="of which engines (default: %(default)s)"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--record", type=Path, help="where to write numbers and causes, for scripts/write_engines.py")
    parser.add_argument("--output", type=Path, help="where to write all of it as JSON")
    options = parser.parse_args()
    engines: tuple[EngineChoice, ...] = tuple(options.engines.split(","))
    if unknown := set(engines) - set(ENGINE_CHOICES):
        parser.error(f"no engines: {', '.join(sorted(unknown))}; expected some of {', '.join(ENGINE_CHOICES)}")
    words = options.only or [""]
    all_names = quick_selection() if options.quick else selection(PER_KIND)
    names = [name for name in all_names if any(word in name for word in words)]
    rules = read_rules(options.rules)
    programs = [(name, rules.allowance(primitive_of(name), dtype_of(name)), engines) for name in names]
    ended = work_off("numerical_suite:judge", programs, processes=options.processes, timeout=SECONDS)
    found = [outcome for each in ended for outcome in outcomes(each, rules)]
    report(found, engines)
    stale = [] if options.quick or options.only else list(stale_entries(names, engines, rules))
    for each in stale:
        print(f"unexpected: no program is called {each}, which is listed")
    if options.output:
        options.output.write_text(json.dumps([asdict(each) for each in found], indent=1))
    if options.record:
        options.record.write_text(json.dumps(record(found, engines), indent=1) + "\n")
    unexpected = sum(each.unexpected for each in found) + len(stale)
    print(f"{len(names)} programs; {unexpected} outcomes are unexpected")
    return int(bool(unexpected))


if __name__ == "__main__":
    sys.exit(main())
