"""Differential testing of two programs on several engines, and of the engines on each program.

Engines that share no code rarely make the same mistake. So where two of three agree, the third is the one to doubt, and
the report names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations
from typing import Any

from vhlo_tools.errors import EngineError
from vhlo_tools.execution import Executable
from vhlo_tools.records import dataclass
from vhlo_tools.verification.comparison import Comparison, Tolerance
from vhlo_tools.verification.rounds import (
    Outputs,
    Round,
    VerificationReport,
    alias_warnings,
    check_parameters,
    compare_outputs,
    listed,
    run_round,
)

#: The executables of the first and of the second program on an engine, or the reason why it cannot run one of them.
Loaded = tuple[Executable, Executable] | str


@dataclass(frozen=True, slots=True)
class EngineRun:
    """What an engine says of the two programs.

    Attributes:
        engine: The engine.
        rounds: The results for each set of inputs, as far as it ran.
        refusal: The reason why it cannot run one of the programs, or could not go on; ``None`` if it ran.
    """

    engine: str
    rounds: tuple[Round, ...] = ()
    refusal: str | None = None

    @property
    def passed(self) -> bool:
        """Whether the results of the second program matched those of the first in all rounds that it ran."""
        return all(each.passed for each in self.rounds)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An output of one program that engines compute differently from the same inputs.

    Attributes:
        program: The name of the program.
        inputs: The origin of the inputs.
        place: The number of the output, in tuples ``0.1``.
        engines: The engines that computed it.
        alone: The engine that all others, which agree, disagree with; ``None`` if there is no such engine, or there
            are but two.
        differing: The comparison of each two engines that disagree: the output of the first, which is the one that
            stands alone if there is one, with that of the second, which is called the expected one.
    """

    program: str
    inputs: str
    place: str
    engines: tuple[str, ...]
    alone: str | None
    differing: Mapping[tuple[str, str], Comparison]

    def __str__(self) -> str:
        others = [each for each in self.engines if each != self.alone]
        agree = " and ".join(f"{one} disagrees with {other}" for one, other in self.differing)
        if self.alone:
            agree = f"{listed(others)} agree, {self.alone} stands alone"
        (one, other), worst = next(iter(self.differing.items()))
        said = str(worst).removeprefix(f"output {self.place}: ")
        return f"{self.program}, output {self.place}, {self.inputs}: {agree}; {one} with {other}: {said}"


@dataclass(frozen=True, slots=True)
class EnginesComparison:
    """Two programs on several engines.

    Attributes:
        runs: What each engine says of the programs, in the order of the request.
        disagreements: For each program and output, the first inputs for which engines disagree on it.
    """

    runs: tuple[EngineRun, ...]
    disagreements: tuple[Disagreement, ...]

    @property
    def passed(self) -> bool:
        """Whether the programs compute the same on every engine that ran them."""
        return not self.differing

    @property
    def differing(self) -> tuple[str, ...]:
        """The engines on which the programs differ."""
        return tuple(each.engine for each in self.runs if not each.passed)

    @property
    def ran(self) -> tuple[str, ...]:
        """The engines that ran both programs."""
        return tuple(each.engine for each in self.runs if each.rounds)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for run in self.runs:
            if run.rounds:
                failed = sum(not each.passed for each in run.rounds)
                most = max((each.max_ulp or 0 for round_ in run.rounds for each in round_.outputs), default=0)
                count = f"{len(run.rounds)} {'round' if len(run.rounds) == 1 else 'rounds'}"
                said = f"{failed} of {count} failed" if failed else f"{count} passed"
                yield f"on {run.engine}: {said}, at most {most} ulp apart"
            if run.refusal is not None:
                yield f"on {run.engine}: not run: {run.refusal}"
        for found in self.disagreements:
            yield f"engines disagree: {found}"
        if not self.disagreements and len(self.ran) > 1:
            yield f"engines agree on both programs: {listed(self.ran)}"


@dataclass(slots=True)
class _Course:
    """An engine, while programs run on it."""

    engine: str
    executables: tuple[Executable, Executable] | None
    refusal: str | None = None
    rounds: list[Round] = field(default_factory=list)

    def run(self, name: str, inputs: tuple[Any, ...], tolerance: Tolerance) -> tuple[Outputs, Outputs] | None:
        """``None`` if the engine cannot run them, now or before."""
        if self.executables is None:
            return None
        try:
            found, expected, outputs = run_round(*self.executables, name, inputs, tolerance)
        except EngineError as error:
            self.executables, self.refusal = None, f"{name}: {error}"
            return None
        self.rounds.append(found)
        return expected, outputs


def verify_on_engines(
    loaded: Mapping[str, Loaded],
    rounds: Iterable[tuple[str, Sequence[Any]]],
    tolerance: Tolerance,
    *,
    until_failure: bool = False,
) -> VerificationReport:
    """``loaded`` has the executables of both programs on each engine, or the reason why it cannot run them."""
    courses = [
        _Course(engine, None, each) if isinstance(each, str) else _Course(engine, each)
        for engine, each in loaded.items()
    ]
    first = next((each.executables for each in courses if each.executables is not None), None)
    if first is None:
        raise EngineError(_reasons(courses))
    check_parameters(*first)
    found: dict[tuple[str, str], Disagreement] = {}
    for name, inputs in rounds:
        taken = first[0].converted(inputs)
        results = {each.engine: ran for each in courses if (ran := each.run(name, taken, tolerance)) is not None}
        if not results:
            break
        for program, executable in enumerate(first):
            outputs = {engine: pair[program] for engine, pair in results.items()}
            for each in _disagreements(executable.name, name, outputs, tolerance):
                found.setdefault((executable.name, each.place), each)
        if until_failure and not all(each.rounds[-1].passed for each in courses if each.engine in results):
            break
    if not any(each.rounds for each in courses):
        raise EngineError(_reasons(courses))
    runs = tuple(EngineRun(each.engine, tuple(each.rounds), each.refusal) for each in courses)
    compared = EnginesComparison(runs, tuple(found.values()))
    before, after = first
    shown = next(each.rounds for each in runs if each.engine in (compared.differing or compared.ran))
    warnings = tuple(alias_warnings(before, after))
    return VerificationReport(before.name, after.name, compared.ran, tolerance, shown, warnings, on_engines=compared)


def engine_alone(engines: Sequence[str], differing: Iterable[tuple[str, str]]) -> str | None:
    """The engine that disagrees with all others, if there are two others or more, and these agree."""
    pairs = {frozenset(each) for each in differing}
    alone = [
        each
        for each in engines
        if len(engines) > 2 and pairs == {frozenset((each, other)) for other in engines if other != each}
    ]
    return alone[0] if alone else None


def _disagreements(
    program: str, inputs: str, outputs: Mapping[str, Outputs], tolerance: Tolerance
) -> Iterator[Disagreement]:
    engines = tuple(outputs)
    apart: dict[str, dict[tuple[str, str], Comparison]] = {}
    for one, other in combinations(engines, 2):
        for place, each in _by_place(outputs[other], outputs[one], tolerance).items():
            if not each.passed:
                apart.setdefault(place, {})[other, one] = each
    for place, differing in apart.items():
        alone = engine_alone(engines, differing)
        if alone is not None:
            others = [each for each in engines if each != alone]
            differing = {(alone, each): _by_place(outputs[alone], outputs[each], tolerance)[place] for each in others}
        yield Disagreement(program, inputs, place, engines, alone, differing)


def _by_place(outputs: Outputs, expected: Outputs, tolerance: Tolerance) -> dict[str, Comparison]:
    return {each.place: each for each in compare_outputs(outputs, expected, tolerance)}


def _reasons(courses: Sequence[_Course]) -> str:
    return "no engine can run the programs: " + "; ".join(f"{each.engine}: {each.refusal}" for each in courses)
