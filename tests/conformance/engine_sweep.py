"""Compare XLA and StableHLO's interpreter with numpy, on random programs of one to four ops, past every threshold.

`python tests/conformance/engine_sweep.py --count 1000 --seed 0` prints how the programs of each kind ended, and what
differed or crashed; `--only N ...` runs the programs of these numbers alone, `--reduce` drops ops of what fails while
it does, and `--keep DIR` writes its text. `--as-it-comes` runs XLA without its options for judges, and both engines
without the package's workarounds: it must then find the known faults again. `--record` keeps the counts, by release of
jaxlib, in engine_sweep.json, of which `scripts/write_engines.py` makes a table.

All sums and products are exact in their types in any order, or wrap, and nothing is drawn that the specification leaves
open. What takes the interpreter too long is compared with numpy alone.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final
from unittest import mock

import numpy as np
from numpy.random import default_rng

sys.path.insert(0, str(Path(__file__).parents[1]))

from sweep_ops import OPS, Step
from sweep_programs import STEPS, Drawn, Program, Value, pick, return_text

import vhlo_tools as vt
from vhlo_tools.api import EngineChoice

#: Ops that compilers take together, or replace, one after the other: each takes what the one before it made, if it can.
SEQUENCES: Final[tuple[tuple[str, ...], ...]] = (
    ("multiply", "reduce"),
    ("dot_general", "multiply", "reduce"),
    ("reduce_window",),
    ("scatter",),
    ("add", "dynamic_update_slice", "dynamic_update_slice", "reshape"),
    ("sort",),
    ("convolution", "any"),
    ("gather", "any"),
    ("dot_general", "multiply", "reduce"),
    ("dot_general", "multiply", "reduce"),
    ("multiply", "reduce"),
    ("multiply", "reduce"),
    ("sort",),
    ("reduce_window",),
    ("subtract", "multiply", "reduce"),
    ("add", "while", "reshape"),
    ("select_and_scatter",),
    ("reduce", "any"),
    ("pad", "reduce_window"),
    ("concatenate", "slice", "any"),
)
#: Every other program is of any ops.
ANY: Final = (("any",) * 2, ("any",) * 4, ("any",) * 3, ("any",) * 2, ("any",))
WORDS: Final = ("equal", "refused", "different", "crashed")
RECORD: Final = Path(__file__).with_suffix(".json")
#: The seconds after which a program counts as crashed.
SECONDS: Final = 120


def names_of(number: int) -> tuple[str, ...]:
    """Return the ops of a program of some number."""
    turn = number // 2
    return ANY[turn % len(ANY)] if number % 2 else SEQUENCES[turn % len(SEQUENCES)]


def draw_program(seed: int, number: int) -> Drawn:
    """Return the program of a number."""
    rng, names = default_rng([seed, number]), names_of(number)
    while True:
        p = Program(rng, is_sequence="any" not in names)
        with np.errstate(all="ignore"):
            for name in names:
                for _ in range(8):
                    step: Step = OPS[name] if name != "any" else pick(rng, list(OPS.values()))
                    if p.attempt(step, 2):
                        break
            drawn = p.returning()
        if drawn.results:
            return drawn


def same(expected: Value, seen: Any) -> bool:
    """Return whether an engine computed what numpy did."""
    if seen.dtype != expected.array.dtype or seen.shape != expected.shape:
        return False
    wanted, found = expected.wide, Value("", expected.element, expected.shape, seen).wide
    with np.errstate(invalid="ignore"):
        equal = (wanted == found) | ((wanted != wanted) & (found != found))
        if expected.error:
            equal |= np.abs(wanted - found) <= expected.error
    if expected.signs and not expected.error and wanted.dtype.kind == "f":
        equal &= (wanted != 0) | (np.signbit(wanted) == np.signbit(found))
    return bool(np.all(equal))


def ended(drawn: Drawn, *, in_process: bool = False) -> tuple[str, str]:
    """Run a program; return `equal`, `refused`, `different` or `crashed`, and why."""
    engines: list[EngineChoice] = ["xla", "reference"] if drawn.cost <= STEPS * 2 else ["xla"]
    wrong, refused = [], ""
    for engine in engines:
        try:
            executable = vt.load_executable(drawn.text, engine=engine, in_process=in_process, timeout=SECONDS)
            seen = executable.run(drawn.inputs)
        except (vt.EngineCrashError, vt.EngineTimeoutError) as error:
            return "crashed", f"{engine}: {error}"
        except vt.VhloToolsError as error:
            # What XLA refuses since a check of its own fails is a fault of it.
            if "RET_CHECK" in str(error) or "INTERNAL" in str(error):
                return "crashed", f"{engine}: {error}"
            refused = refused or f"{engine}: {error}"
            continue
        wrong += [engine] if not all(map(same, drawn.results, seen)) else []
    if wrong:
        return "different", f"numpy and {', '.join(wrong)}"
    return ("refused", refused) if refused else ("equal", "")


def load_as_specified(load: Any, text: str, *, engine: EngineChoice, **options: Any) -> Any:
    """Return what runs a program, and updates by the parts inside of windows of scatters in the interpreter."""
    if engine != "reference":
        return load(text, engine=engine, **options)
    from vhlo_tools.execution.stepping.stepper import Stepper
    from vhlo_tools.program import load_program

    return Stepper(load_program(text), as_specified=True)


@contextmanager
def as_it_comes() -> Iterator[None]:
    """Run XLA without its options for judges, and both engines without what the package does about their faults."""
    import vhlo_tools.bindings.xla_client as client
    import vhlo_tools.execution.xla.preparation as preparation

    with (
        mock.patch.object(client, "JUDGE_OPTIONS", {}),
        mock.patch.object(preparation, "WORKAROUNDS", ()),
        mock.patch.object(vt, "load_executable", partial(load_as_specified, vt.load_executable)),
    ):
        yield


# Many programs, in processes that may crash


def work(pipe: Connection, seed: int, is_plain: bool) -> None:
    """Run the programs whose numbers come, in a process that XLA may end."""
    with as_it_comes() if is_plain else mock.patch.object(sys, "argv", sys.argv):
        while True:
            given = pipe.recv()
            pipe.send(ended(given if isinstance(given, Drawn) else draw_program(seed, given), in_process=True))


class Worker:
    """A process that runs programs, and is made anew after a crash."""

    def __init__(self, seed: int, is_plain: bool) -> None:
        self.context = multiprocessing.get_context("spawn")
        self.arguments = seed, is_plain
        self.given: Any = None
        self.until = 0.0
        self.start()

    def start(self) -> None:
        self.pipe, theirs = self.context.Pipe()
        self.process = self.context.Process(target=work, args=(theirs, *self.arguments), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, given: int | Drawn) -> None:
        """Have it run a program, or that of a number."""
        self.given, self.until = given, time.monotonic() + 2 * SECONDS
        self.pipe.send(given)

    def take(self) -> tuple[str, str]:
        try:
            how, why = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            how, why = "crashed", f"the process ended with {self.process.exitcode}"
            self.start()
        return how, why

    def is_late(self) -> bool:
        return time.monotonic() > self.until


def swept(numbers: Iterable[int], seed: int, jobs: int, is_plain: bool) -> Iterator[tuple[int, str, str]]:
    """Yield the number of each program, how it ended and why."""
    waiting, busy = iter(numbers), dict[Any, Worker]()
    workers = [Worker(seed, is_plain) for _ in range(jobs)]
    idle = list(workers)
    try:
        while True:
            while idle and (number := next(waiting, None)) is not None:
                worker = idle.pop()
                worker.give(number)
                busy[worker.pipe] = worker
            if not busy:
                return
            for worker in [each for each in busy.values() if each.is_late()]:
                worker.process.kill()
            for pipe in wait(list(busy), timeout=SECONDS):
                worker = busy.pop(pipe)
                yield worker.given, *worker.take()
                idle.append(worker)
    finally:
        for worker in workers:
            worker.process.kill()


def reduced(drawn: Drawn, seed: int, is_plain: bool) -> Drawn:
    """Return a smaller program that fails as well: of one result, and with inputs in place of ops."""
    worker = Worker(seed, is_plain)

    def fails(smaller: Drawn) -> bool:
        worker.give(smaller)
        return worker.take()[0] in ("different", "crashed")

    single = (return_text(drawn.nodes, [each], "main") for each in drawn.results)
    drawn = next(filter(fails, single), drawn)
    for node in drawn.nodes:
        rest = [each for each in drawn.nodes if each is not node]
        if not any(each in drawn.results for each in node.results):
            smaller = return_text(rest, drawn.results, "main")
            drawn = smaller if fails(smaller) else drawn
    worker.process.kill()
    return drawn


def main() -> int:
    """Run as many programs as are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="the processes that run programs")
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="the numbers of the only programs to run")
    parser.add_argument("--kind", help="only programs of this kind, such as 'sort slice'")
    parser.add_argument("--as-it-comes", action="store_true", help="without options for judges and workarounds")
    parser.add_argument("--reduce", action="store_true", help="drop ops of what fails while it does")
    parser.add_argument("--record", action="store_true", help="keep the counts")
    parser.add_argument("--keep", type=Path, help="a folder for the texts of what differs or crashes")
    options = parser.parse_args()
    counts, reasons, started = Counter[tuple[str, str]](), dict[str, list[int]](), time.monotonic()
    numbers = options.only or range(options.first, options.first + options.count)
    numbers = [each for each in numbers if options.kind in (None, " ".join(names_of(each)))]
    found = swept(numbers, options.seed, options.jobs, options.as_it_comes)
    for done, (number, how, why) in enumerate(found, 1):
        kind = " ".join(names_of(number))
        counts[kind, how] += 1
        plain = " --as-it-comes" * options.as_it_comes
        line = f"{kind}, --seed {options.seed} --only {number}{plain}: {how}: {why}".splitlines()[0]
        if how == "refused":
            reasons.setdefault(re.sub(r"[0-9]+", "N", why.splitlines()[0])[:200], []).append(number)
        elif how != "equal":
            print(line, flush=True)
            drawn = draw_program(options.seed, number)
            if options.reduce:
                drawn = reduced(drawn, options.seed, options.as_it_comes)
                print(drawn.text, flush=True)
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                name = kind.replace(" ", "_")
                (options.keep / f"{name}_{options.seed}_{number}.mlir").write_text(f"// {line}\n{drawn.text}\n")
        if done % 500 == 0:
            print(f"{done} programs, {(time.monotonic() - started) / done * 1000:.0f} ms each", flush=True)
    totals = {word: sum(count for (_, how), count in counts.items() if how == word) for word in WORDS}
    print(f"{'':56}{''.join(f'{word:>11}' for word in WORDS)}")
    for kind in dict.fromkeys(kind for kind, _ in counts):
        print(f"{kind:56}{''.join(f'{counts[kind, word]:11}' for word in WORDS)}")
    print(f"{'all':56}{''.join(f'{count:11}' for count in totals.values())}")
    for reason, refused in sorted(reasons.items(), key=lambda each: -len(each[1])):
        print(f"{len(refused)} refused, --only {refused[0]} first: {reason}")
    if options.record:
        record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        record[f"{version('jaxlib')}{', as it comes' * options.as_it_comes}"] = {"programs": len(numbers), **totals}
        RECORD.write_text(json.dumps(dict(sorted(record.items())), indent=1) + "\n")
    return int(any(how in ("different", "crashed") for _, how in counts))


if __name__ == "__main__":
    raise SystemExit(main())
