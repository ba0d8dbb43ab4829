"""Differential testing of engines on a program, and of two programs on several engines.

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
from vhlo_tools.verification.comparison import Comparison, Tolerance, copied, flushed_by, has_subnormals
from vhlo_tools.verification.rounds import (
    Outputs,
    Round,
    VerificationReport,
    alias_warnings,
    check_parameters,
    compare_explained,
    faults_of,
    listed,
    run_round,
)

#: The executables of the program, or of the first and of the second, on an engine; or the reason why it cannot run one.
Loaded = tuple[Executable, ...] | str


@dataclass(frozen=True, slots=True)
class EngineRun:
    """What an engine says of the programs.

    Attributes:
        engine: The engine.
        rounds: The results for each set of inputs, as far as it ran; without comparisons if there is one program.
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

    @property
    def explained(self) -> bool:
        """Whether it is no fault of an engine: the result is left open, or of subnormal numbers."""
        return all(each.explained for each in self.differing.values())

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
    """Two programs on several engines, or one.

    Attributes:
        runs: What each engine says of the programs, in the order of the request.
        disagreements: For each program and output, the first inputs for which engines disagree on it.
        is_of_one_program: Whether one program was run.
    """

    runs: tuple[EngineRun, ...]
    disagreements: tuple[Disagreement, ...]
    is_of_one_program: bool = False

    @property
    def passed(self) -> bool:
        """Whether two programs compute the same on every engine that ran them; whether the engines agree on one."""
        if self.is_of_one_program:
            return all(each.explained for each in self.disagreements)
        return not self.differing

    @property
    def differing(self) -> tuple[str, ...]:
        """The engines on which the programs differ."""
        return tuple(each.engine for each in self.runs if not each.passed)

    @property
    def ran(self) -> tuple[str, ...]:
        """The engines that ran all programs."""
        return tuple(each.engine for each in self.runs if each.rounds)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for run in self.runs:
            count = f"{len(run.rounds)} {'round' if len(run.rounds) == 1 else 'rounds'}"
            if run.rounds and not self.is_of_one_program:
                failed = sum(not each.passed for each in run.rounds)
                most = max((each.max_ulp or 0 for round_ in run.rounds for each in round_.outputs), default=0)
                said = f"{failed} of {count} failed" if failed else f"{count} passed"
                yield f"on {run.engine}: {said}, at most {most} ulp apart"
            elif run.rounds:
                yield f"on {run.engine}: {count}"
            if run.refusal is not None:
                yield f"on {run.engine}: not run: {run.refusal}"
        for found in self.disagreements:
            yield f"engines {'may ' if found.explained else ''}disagree: {found}"
        if not self.disagreements and len(self.ran) > 1 and not self.is_of_one_program:
            yield f"engines agree on both programs: {listed(self.ran)}"


@dataclass(slots=True, eq=False)
class _Course:
    """An engine, while programs run on it."""

    engine: str
    executables: tuple[Executable, ...]
    refusal: str | None = None
    rounds: list[Round] = field(default_factory=list)

    def run(self, name: str, inputs: tuple[Any, ...], tolerance: Tolerance) -> tuple[Outputs, ...] | None:
        """``None`` if the engine cannot run them, now or before."""
        if self.refusal is not None:
            return None
        try:
            if len(self.executables) == 1:
                outputs: tuple[Outputs, ...] = (self.executables[0].run(copied(inputs)),)
                found = Round(name, (), subnormals=flushed_by([self.engine]) is not None and has_subnormals(inputs))
            else:
                found, *several = run_round(self.executables[0], self.executables[1], name, inputs, tolerance)
                outputs = tuple(several)
        except EngineError as error:
            self.refusal = f"{name}: {error}"
            return None
        self.rounds.append(found)
        return outputs


def verify_on_engines(
    loaded: Mapping[str, Loaded],
    rounds: Iterable[tuple[str, Sequence[Any]]],
    tolerance: Tolerance,
    *,
    until_failure: bool = False,
) -> VerificationReport:
    """``loaded`` has the executables of one program or two on each engine, or the reason why it cannot run them."""
    courses = [
        _Course(engine, (), each) if isinstance(each, str) else _Course(engine, each) for engine, each in loaded.items()
    ]
    first = next((each.executables for each in courses if each.executables), None)
    if first is None:
        raise EngineError(_reasons(courses))
    before, after = first[0], first[-1]
    is_one = len(first) == 1
    check_parameters(before, after)
    found: dict[tuple[str, str], Disagreement] = {}
    for name, inputs in rounds:
        taken = before.converted(inputs)
        results = {each: ran for each in courses if (ran := each.run(name, taken, tolerance)) is not None}
        if len(results) < 1 + is_one:
            break
        for program in range(len(first)):
            results_of = {each.engine: (each.executables[program], results[each][program]) for each in results}
            for found_now in _disagreements(name, taken, results_of, tolerance):
                found.setdefault((found_now.program, found_now.place), found_now)
        failed = [each for each in results if not each.rounds[-1].passed]
        if until_failure and (failed or (is_one and any(not each.explained for each in found.values()))):
            break
    if sum(bool(each.rounds) for each in courses) < 1 + is_one:
        raise EngineError(_reasons(courses))
    runs = tuple(EngineRun(each.engine, tuple(each.rounds), each.refusal) for each in courses)
    compared = EnginesComparison(runs, tuple(found.values()), is_one)
    shown = next(each.rounds for each in runs if each.engine in (compared.differing or compared.ran))
    if is_one:
        shown = max((each.rounds for each in runs), key=lambda each: sum(round_.subnormals for round_ in each))
    warnings = tuple(alias_warnings(before, after))
    faults = faults_of(*(executable for each in courses if each.rounds for executable in each.executables))
    return VerificationReport(
        *(before.name, after.name, compared.ran, tolerance, shown, warnings), on_engines=compared, known_faults=faults
    )


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
    name: str, inputs: tuple[Any, ...], ran: Mapping[str, tuple[Executable, Outputs]], tolerance: Tolerance
) -> Iterator[Disagreement]:
    """``ran`` has the executable of a program on each engine, and its results."""
    engines = tuple(ran)
    program = next(iter(ran.values()))[0]

    def compared(one: str, other: str) -> dict[str, Comparison]:
        (found, outputs), (wanted, expected) = ran[one], ran[other]

        def again(others: tuple[Any, ...]) -> tuple[Outputs, Outputs]:
            return found.run(copied(others)), wanted.run(copied(others))

        each = compare_explained(outputs, expected, tolerance, program, inputs, (one, other), again)
        return {output.place: output for output in each}

    apart: dict[str, dict[tuple[str, str], Comparison]] = {}
    for one, other in combinations(engines, 2):
        for place, each in compared(other, one).items():
            if not each.passed or each.explained:
                apart.setdefault(place, {})[other, one] = each
    for place, differing in apart.items():
        alone = engine_alone(engines, differing)
        if alone is not None:
            others = [each for each in engines if each != alone]
            differing = {(alone, each): compared(alone, each)[place] for each in others}
        yield Disagreement(program.name, name, place, engines, alone, differing)


def _reasons(courses: Sequence[_Course]) -> str:
    able = [each.engine for each in courses if each.refusal is None]
    who = f"only {able[0]} can run the program" if able else "no engine can run the programs"
    return f"{who}: " + "; ".join(f"{each.engine}: {each.refusal}" for each in courses if each.refusal is not None)
