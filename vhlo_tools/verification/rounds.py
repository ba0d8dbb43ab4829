"""Rounds of verification: what runs on which engine with which inputs, and what is compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vhlo_tools.aliasing import Array, ProgramAliases, Shape, Tuple, compare_aliases
from vhlo_tools.errors import VerificationError
from vhlo_tools.execution import Executable, KnownFault
from vhlo_tools.findings import Finding
from vhlo_tools.records import dataclass
from vhlo_tools.verification.bisection import Divergence, EngineDivergence
from vhlo_tools.verification.comparison import (
    Comparison,
    Tolerance,
    compare,
    copied,
    flushed_by,
    has_subnormals,
    without_subnormals,
)
from vhlo_tools.verification.drawing import Drawing
from vhlo_tools.verification.left_open import open_outputs

if TYPE_CHECKING:
    from vhlo_tools.verification.engines import EnginesComparison

# The inputs of consecutive rounds of a verification: other seeds, other scales, and edge cases among them
#
# A difference shows only for some inputs: behind a saturated ``tanh`` none does, and small inputs do not saturate it.

#: Without a number of rounds: at most so many, as far as they are expected to fit into so many seconds after the first
#: round, which compiles the programs.
DEFAULT_ROUNDS: Final = 256
DEFAULT_SECONDS: Final = 2.0

#: The scale of floats in consecutive rounds; a negative one stands for edge cases at scale one.
_SCALES: Final = (1.0, 0.25, -1.0, 4.0, 0.0625, -1.0, 16.0, 0.5)


def drawings(
    drawing: Drawing, rounds: int | None = None, seconds: float = DEFAULT_SECONDS
) -> Iterator[tuple[str, Drawing]]:
    """As many rounds as fit into ``seconds``, but 2 to 256, if there is no number of them.

    The first is drawn with ``drawing`` as it is. Time is taken between rounds, from the end of the first.
    """
    begun = 0.0
    for number in range(DEFAULT_ROUNDS if rounds is None else rounds):
        if number == 1:
            begun = time.monotonic()
        elapsed = time.monotonic() - begun
        if rounds is None and number > 1 and elapsed * number / (number - 1) > seconds:
            return
        scale = _SCALES[number % len(_SCALES)]
        edges, scaled = drawing.edges or scale < 0, drawing.scale * abs(scale)
        each = replace(drawing, seed=drawing.seed + number, edges=edges, scale=scaled)
        text = f"drawn from seed {each.seed}"
        if each.scale != 1:
            text += f", scale {each.scale:g}"
        yield text + (", with edge cases" if each.edges else ""), each


# Runs of two programs on the same inputs, and comparison of their outputs, with aliases and donation exercised

#: The results of a run: arrays, ``None`` for a token, a tuple for a tuple.
Outputs = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Round:
    """The results for one set of inputs.

    Attributes:
        inputs: The origin of the inputs: ``given``, or ``seed 0``.
        outputs: The comparison of each output of the second program with that of the first.
        donated: The comparison of each output if every aliased input is donated; empty without aliases.
        problems: Other problems: inputs that were modified without being donated.
        subnormals: Whether XLA took some of the inputs, which are subnormal numbers, as zeros.
    """

    inputs: str
    outputs: tuple[Comparison, ...]
    donated: tuple[Comparison, ...] = ()
    problems: tuple[str, ...] = ()
    subnormals: bool = False

    @property
    def passed(self) -> bool:
        """Whether all outputs are within the tolerance, and there are no problems."""
        return all(each.passed for each in (*self.outputs, *self.donated)) and not self.problems


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """The report of whether two programs compute the same results.

    Attributes:
        before: The name of the first program.
        after: The name of the second program, or of the same if one program was run on several engines.
        engines: The engines that ran them, one for each program; of a comparison of engines, those that could.
        tolerance: The tolerance for floats.
        rounds: The results for each set of inputs; of a comparison of engines, those of the first engine on which the
            programs differ, or of the first that ran them.
        warnings: Aliases and donors of the first program that the second lacks, or has in another form.
        divergence: The divergence of the programs, or of engines on one program, if a search found one.
        looked_for_divergence: Whether there was a search.
        on_engines: What each of several engines says, and where they disagree; ``None`` if one was asked for.
        known_faults: The faults of the engines that the programs would show if they were not avoided.
    """

    before: str
    after: str
    engines: tuple[str, ...]
    tolerance: Tolerance
    rounds: tuple[Round, ...]
    warnings: tuple[Finding, ...] = ()
    divergence: Divergence | EngineDivergence | None = None
    looked_for_divergence: bool = False
    on_engines: EnginesComparison | None = None
    known_faults: tuple[KnownFault, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the results of the second program matched those of the first in all rounds, on every engine."""
        return all(each.passed for each in self.rounds) and (self.on_engines is None or self.on_engines.passed)

    @property
    def max_ulp(self) -> int:
        """The largest distance in units in the last place."""
        return max((each.max_ulp or 0 for round_ in self.rounds for each in round_.outputs), default=0)

    def require(self) -> None:
        """Raise an error unless the programs compute the same results.

        Raises:
            VerificationError: If they do not; the message is the whole report.
        """
        if not self.passed:
            raise VerificationError(str(self))

    def _repr_html_(self) -> str:
        """The verdict, and each output of the rounds that say something."""
        from vhlo_tools.markup import table

        rows = (
            (each.inputs, f"{output.place}{donated}", output.dtype, output.max_ulp, output.max_absolute, output)
            for each in self._shown()
            for outputs, donated in ((each.outputs, ""), (each.donated, ", donated"))
            for output in outputs
        )
        heads = ("inputs", "output", "dtype", "max ulp", "max absolute", "said")
        return table(str(self).splitlines()[0], heads, rows)

    def _shown(self) -> Iterator[Round]:
        """The first round, and each later one with greater differences: others say nothing new."""
        most = -1
        for each in self.rounds:
            distance = max((output.max_ulp or 0 for output in each.outputs), default=0)
            if not each.passed or distance > most:
                yield each
            most = max(most, distance)

    def __str__(self) -> str:
        one_program = self.on_engines is not None and self.on_engines.is_of_one_program
        differing = self.on_engines.differing if self.on_engines is not None else ()
        engines = listed(list(dict.fromkeys(differing or self.engines)))
        if one_program:
            verdict = "agree" if self.passed else "do not agree"
            lines = [f"{engines} {verdict} on {self.before}, within {self.tolerance}"]
        else:
            verdict = "computes the same as" if self.passed else "does not compute the same as"
            lines = [f"{self.after} {verdict} {self.before}, within {self.tolerance}, on {engines}"]
        lines += [] if self.on_engines is None else [str(self.on_engines)]
        on = "" if self.on_engines is None else f", on {(differing or self.engines)[0]}"
        for each in () if one_program else self._shown():
            lines.append(f"inputs: {each.inputs}{on}")
            lines += [f"  {output}" for output in each.outputs]
            # With donation, outputs are listed only if they differ.
            lines += [f"  with inputs donated: {output}" for output in each.donated if not output.passed]
            lines += [f"  {problem}" for problem in each.problems]
        if len(self.rounds) > 1 and not one_program:
            failed = sum(not each.passed for each in self.rounds)
            lines.append(f"rounds: {len(self.rounds)}, {f'{failed} failed' if failed else 'all passed'}")
        if self.looked_for_divergence:
            lines.append(
                str(self.divergence or "on the reference interpreter, all values that both programs compute agree")
            )
        if subnormals := sum(each.subnormals for each in self.rounds):
            why, rounds = flushed_by(self.engines), f"{subnormals} of {len(self.rounds)} rounds"
            lines.append(f"{why}: the results for those among the inputs of {rounds} say nothing")
        return "\n".join(
            [*lines, *map(str, self.known_faults), *(f"warning: {each.message}" for each in self.warnings)]
        )


def verify_executables(
    before: Executable,
    after: Executable,
    rounds: Iterable[tuple[str, Sequence[Any]]],
    tolerance: Tolerance,
    *,
    until_failure: bool = False,
) -> VerificationReport:
    """``rounds`` are consumed one by one."""
    check_parameters(before, after)
    found: list[Round] = []
    for name, inputs in rounds:
        found.append(run_round(before, after, name, before.converted(inputs), tolerance)[0])
        if until_failure and not found[-1].passed:
            break
    engines, warnings = (before.engine, after.engine), tuple(alias_warnings(before, after))
    faults = faults_of(before, after)
    return VerificationReport(
        *(before.name, after.name, engines, tolerance, tuple(found), warnings), known_faults=faults
    )


def faults_of(*executables: Executable) -> tuple[KnownFault, ...]:
    return tuple(dict.fromkeys(fault for each in executables for fault in each.known_faults))


def check_parameters(before: Executable, after: Executable) -> None:
    one, other = before.signature.parameters, after.signature.parameters
    if len(one) != len(other) or not all(map(_may_be, one, other)):
        shown, others = (", ".join(map(str, shapes)) or "nothing" for shapes in (one, other))
        raise VerificationError(
            f"{before.name} has the parameters {shown}, but {after.name} has {others}: only programs with the same "
            f"parameters can be compared"
        )


def listed(words: Sequence[str]) -> str:
    """As in a sentence: ``a, b and c``."""
    return " and ".join((", ".join(words[:-1]), words[-1]) if len(words) > 1 else words)


def alias_warnings(before: Executable, after: Executable) -> list[Finding]:
    """Aliases and donors of the first program that the second lacks, or has in another form."""
    if before.signature != after.signature:
        return []  # sizes are open in one, or there are fewer results, which was reported
    return compare_aliases(ProgramAliases("main", after.declared), ProgramAliases("main", before.declared))


def run_round(
    before: Executable, after: Executable, name: str, inputs: tuple[Any, ...], tolerance: Tolerance
) -> tuple[Round, Outputs, Outputs]:
    """``inputs`` are as :meth:`Executable.converted` returns them; the results of both programs are returned, too."""
    expected = before.run(copied(inputs))
    kept = copied(inputs)
    found = after.run(kept)

    def again(others: tuple[Any, ...]) -> tuple[Outputs, Outputs]:
        return after.run(others), before.run(copied(others))

    engines = {before.engine, after.engine}
    outputs = compare_explained(found, expected, tolerance, before, inputs, engines, again)
    problems = [
        f"input {place} was changed, although it was not donated"
        for (place, is_now), (_, was) in zip(_leaves(kept), _leaves(inputs), strict=True)
        if is_now is not None and np.asarray(is_now).tobytes() != np.asarray(was).tobytes()
    ]
    donated: tuple[Comparison, ...] = ()
    if numbers := {(each.parameter_number, each.parameter_index) for each in after.aliases}:
        execution = after.execute(copied(inputs), donate=numbers)
        reasons = {each.place: each.explained for each in outputs}
        donated = tuple(
            replace(each, explained=reasons.get(each.place, ""))
            for each in compare_outputs(execution.outputs, expected, tolerance)
        )
    subnormals = flushed_by(engines) is not None and has_subnormals(inputs)
    return Round(name, outputs, donated, tuple(problems), subnormals), expected, found


def compare_explained(
    found: Outputs,
    expected: Outputs,
    tolerance: Tolerance,
    program: Executable,
    inputs: tuple[Any, ...],
    engines: Collection[str],
    again: Callable[[tuple[Any, ...]], tuple[Outputs, Outputs]],
) -> tuple[Comparison, ...]:
    """With the reasons for differences that say nothing of the programs.

    ``program`` tells what the specification leaves open, and ``again`` has both results for other inputs.
    """
    outputs = compare_outputs(found, expected, tolerance)
    if all(each.passed for each in outputs):
        return outputs
    reasons: dict[str, str] = {}
    if (reason := flushed_by(engines)) is not None:
        flushed = compare_outputs(without_subnormals(found), without_subnormals(expected), tolerance)
        if not all(each.passed for each in flushed) and has_subnormals(inputs):
            one, other = again(without_subnormals(inputs))
            flushed = compare_outputs(without_subnormals(one), without_subnormals(other), tolerance)
        reasons = {each.place: reason for each in flushed if each.passed}
    if any(not each.passed and each.place not in reasons for each in outputs):
        places = [place for place, _ in _leaves(expected)]
        opened = zip(places, open_outputs(program, inputs), strict=True)
        reasons |= {place: str(reason) for place, reason in opened if reason is not None and place not in reasons}
    return tuple(each if each.passed else replace(each, explained=reasons.get(each.place, "")) for each in outputs)


def compare_outputs(
    outputs: tuple[Any, ...], expected: tuple[Any, ...], tolerance: Tolerance
) -> tuple[Comparison, ...]:
    """Elements of tuples are compared separately."""
    found, wanted = dict(_leaves(outputs)), dict(_leaves(expected))
    compared = []
    for place in dict.fromkeys((*wanted, *found)):
        if place not in found or place not in wanted:
            which = "first" if place in wanted else "second"
            compared.append(Comparison(place, "", (), mismatch=f"only the {which} program returns it"))
        elif found[place] is not None and wanted[place] is not None:
            compared.append(compare(found[place], wanted[place], tolerance, place))
        # A token has no value.
        elif found[place] is not wanted[place]:
            which = "first" if wanted[place] is None else "second"
            compared.append(Comparison(place, "", (), mismatch=f"only the {which} program returns a token"))
    return tuple(compared)


def _leaves(values: tuple[Any, ...] | list[Any], place: str = "") -> Iterator[tuple[str, Any]]:
    for number, value in enumerate(values):
        if isinstance(value, tuple | list):
            yield from _leaves(value, f"{place}{number}.")
        else:
            yield f"{place}{number}", value


def _may_be(one: Shape, other: Shape) -> bool:
    """Whether a value may have both shapes, in which sizes may be open."""
    if isinstance(one, Array) and isinstance(other, Array):
        fit = len(one.sizes) == len(other.sizes) and one.element == other.element
        return fit and all(a == b or None in (a, b) for a, b in zip(one.sizes, other.sizes, strict=True))
    if isinstance(one, Tuple) and isinstance(other, Tuple):
        return len(one.elements) == len(other.elements) and all(map(_may_be, one.elements, other.elements))
    return one == other
