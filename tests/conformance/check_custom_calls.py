"""Check that no custom call crashes, runs unknown, or gives wrong numbers: `check_custom_calls.py`.

Draws custom calls: right ones of all known targets, right ones with one or two changes, and any at all, of names that
XLA, JAX and TensorFlow have, of any types and attributes, in functions, composites, branches and with tuples. Each runs
on the engines `auto` and `xla` in a process that may die. What runs is compared with numpy. Prints what
should not be, and a table of how the calls ended.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from custom_call_answers import wrong_results
from custom_call_drawing import draw_call
from custom_call_inputs import draw_inputs
from custom_call_programs import Tensor, program_of
from isolated_cases import work_off

import vhlo_tools as vt
from vhlo_tools.api import EngineChoice
from vhlo_tools.execution import RULES
from vhlo_tools.execution.values import parse_tensor_type

SECONDS: Final = 120.0
ENGINES: Final[tuple[EngineChoice, ...]] = ("auto", "xla")
#: Larger arguments are not made.
_LARGE: Final = 1 << 22
#: Errors of XLA, and reasons that have nothing to do with custom calls: elements that an engine lacks, a shard on a
#: single device, and matrices without elements.
_OF_XLA: Final = re.compile(r"INTERNAL|INVALID_ARGUMENT|NOT_FOUND|UNKNOWN: |failed: ")
_UNSUPPORTED: Final = re.compile(
    r"6-bit floats|does not support elements of|does not split|its handler returned|two-bit|Unknown NumPy dtype"
    r"|Invalid XLA PrimitiveType|PRIMITIVE_TYPE_INVALID|for an empty matrix"
)


@dataclass(slots=True)
class Outcome:
    """How calls ended."""

    #: how many calls, by how they were drawn, the engine, and how they ended
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)  # a sentence for each call that ended as none should
    ran: Counter[str] = field(default_factory=Counter)  # the targets of which a right call ran


def run_case(seed: int) -> list[tuple[str, str, str]]:
    """Run the call of a seed on each engine; return the engine, how it ended, and a sentence about that."""
    call = draw_call(seed)
    operands = [each for each in call.operands if isinstance(each, Tensor)]
    sizes = [int(np.prod(each.shape, dtype=np.float64)) for each in operands]
    if max(sizes, default=0) > _LARGE:
        inputs: list[Any] = []  # the arguments are refused too, but not before the call
    else:
        types = [(each.element, each.shape, parse_tensor_type(str(each)).dtype) for each in operands]
        inputs = list(draw_inputs(call.target, types, seed))
    pending = iter(inputs)
    arguments = [next(pending, None) if isinstance(each, Tensor) else None for each in call.operands]
    return [(engine, *_ended(engine, seed, arguments)) for engine in ENGINES]


def _ended(engine: EngineChoice, seed: int, arguments: list[Any]) -> tuple[str, str]:
    call = draw_call(seed)
    try:
        executable = vt.load_executable(program_of(call), engine=engine)
        executable.prepare()
        results = [each for each in executable.run(arguments) if each is not None]
    except vt.EngineCrashError as error:
        return "died", str(error)
    except vt.EngineError as error:
        reason = str(error)
        # A call that is known, and has the right form, must not be refused by XLA or by a routine.
        return "failed" if _OF_XLA.search(reason) and not _UNSUPPORTED.search(reason) else "refused", reason
    except vt.VhloToolsError as error:
        return "not valid", str(error)
    if call.target not in RULES:
        return "ran unknown", call.target
    given = [each for each in arguments if each is not None]
    try:
        reason = wrong_results(call.target, call.attributes, given, [np.asarray(each) for each in results]) or ""
    except Exception as error:
        reason = f"not to be checked: {type(error).__name__}: {error}"
    return "wrong" if reason else "ran", reason


def campaign(seeds: Iterable[int], processes: int = 2) -> Outcome:
    """Run the calls of seeds, and count how they end."""
    outcome = Outcome()
    for each in work_off("check_custom_calls:run_case", list(seeds), processes=processes, timeout=SECONDS):
        call = draw_call(each.case)
        answers = each.result if each.how == "done" else [("either", "died", f"{each.how}: {each.result}")]
        for engine, ended, reason in answers:
            outcome.counts[call.how, engine, ended] += 1
            if ended in ("died", "ran unknown", "wrong", "failed") or (
                ended == "refused" and _should_run(each.case, reason)
            ):
                outcome.wrong.append(f"{each.case} ({call.how}, {engine}) {call.target}: {ended}: {reason}")
            if ended == "ran" and call.how == "right":
                outcome.ran[call.target] += 1
    return outcome


def _should_run(seed: int, reason: str) -> bool:
    call = draw_call(seed)
    if call.how != "right" or call.target.startswith("check."):
        return False  # assertions fail on random values
    return _UNSUPPORTED.search(reason) is None


def main() -> int:
    """Check as many calls as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--number", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    outcome = campaign(range(options.first, options.first + options.number), options.processes)
    for each in sorted(outcome.wrong):
        print(each[:400])
    print("drawn    engine   ended         calls")
    for (how, engine, ended), count in sorted(outcome.counts.items()):
        print(f"{how:8} {engine:8} {ended:13} {count:5}")
    missing = sorted(RULES.keys() - outcome.ran.keys())
    print(f"right calls of {len(outcome.ran)} of {len(RULES)} targets ran; not of {', '.join(missing) or 'none'}")
    print(f"{len(outcome.wrong)} calls ended as none should")
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
