"""Two programs run on the same inputs, and their outputs compared; aliases and donation exercised on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vhlo_tools.aliasing import Array, ProgramAliases, Shape, Tuple, compare_aliases
from vhlo_tools.errors import VerificationError
from vhlo_tools.findings import Finding
from vhlo_tools.interpreter import Executable
from vhlo_tools.verification.bisection import Divergence
from vhlo_tools.verification.comparison import Comparison, Tolerance, compare

__all__ = ["Round", "VerificationReport", "compare_outputs", "verify_executables"]


@dataclass(frozen=True, slots=True)
class Round:
    """What one set of inputs showed.

    Attributes:
        inputs: Where they came from: ``given``, or ``seed 0``.
        outputs: How each output of the second program compares with that of the first.
        donated: How each output compares if every input that has an alias is given away; none if none has.
        problems: What else went wrong: inputs that were changed though nobody gave them away.
    """

    inputs: str
    outputs: tuple[Comparison, ...]
    donated: tuple[Comparison, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether everything is near enough."""
        return all(each.passed for each in (*self.outputs, *self.donated)) and not self.problems


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """Whether two programs compute the same.

    Attributes:
        before: What the first is called.
        after: What the second is called.
        engines: What each ran on.
        tolerance: How far apart floats may be.
        rounds: What each set of inputs showed.
        warnings: Aliases and donors of the first that the second lacks, or has otherwise.
        divergence: Where they part, if that was looked for and found.
        looked_for_divergence: Whether it was looked for.
    """

    before: str
    after: str
    engines: tuple[str, str]
    tolerance: Tolerance
    rounds: tuple[Round, ...]
    warnings: tuple[Finding, ...] = ()
    divergence: Divergence | None = None
    looked_for_divergence: bool = False

    @property
    def passed(self) -> bool:
        """Whether the second gave what the first gave, every time."""
        return all(each.passed for each in self.rounds)

    @property
    def max_ulp(self) -> int:
        """The largest distance in units in the last place."""
        return max((each.max_ulp or 0 for round_ in self.rounds for each in round_.outputs), default=0)

    def require(self) -> None:
        """Raise unless the programs compute the same.

        Raises:
            VerificationError: With the whole report.
        """
        if not self.passed:
            raise VerificationError(str(self))

    def __str__(self) -> str:
        verdict = "computes the same as" if self.passed else "does not compute the same as"
        engines = " and ".join(dict.fromkeys(self.engines))
        lines = [f"{self.after} {verdict} {self.before}, within {self.tolerance}, on {engines}"]
        for each in self.rounds:
            lines.append(f"inputs: {each.inputs}")
            lines += [f"  {output}" for output in each.outputs]
            # What is given away changes nothing, or else it is told.
            lines += [f"  with inputs given away: {output}" for output in each.donated if not output.passed]
            lines += [f"  {problem}" for problem in each.problems]
        if self.looked_for_divergence:
            lines.append(str(self.divergence or "on the reference interpreter, all that both compute agrees"))
        return "\n".join([*lines, *(f"warning: {each.message}" for each in self.warnings)])


def verify_executables(
    before: Executable,
    after: Executable,
    rounds: Sequence[tuple[str, Sequence[Any]]],
    tolerance: Tolerance,
) -> VerificationReport:
    """Run two programs and compare what they give.

    Args:
        before: The program whose outputs are expected.
        after: The program whose outputs are compared with these.
        rounds: What inputs are called, and the inputs.
        tolerance: How far apart floats may be.

    Raises:
        VerificationError: If the programs do not take or give the same, so that there is nothing to compare.
        EngineError: If one of them cannot be run.
    """
    one, other = before.signature.parameters, after.signature.parameters
    if len(one) != len(other) or not all(map(_may_be, one, other)):
        raise VerificationError(
            f"{before.name} takes {_listed(one)}, and {after.name} takes {_listed(other)}: only programs that take the "
            "same can be compared"
        )
    found = tuple(_round(before, after, name, before.converted(inputs), tolerance) for name, inputs in rounds)
    engines = (before.engine, after.engine)
    return VerificationReport(before.name, after.name, engines, tolerance, found, tuple(_alias_warnings(before, after)))


def _alias_warnings(before: Executable, after: Executable) -> list[Finding]:
    if before.signature != after.signature:
        return []  # sizes are open in one, or there are fewer results, which was told
    return compare_aliases(ProgramAliases("main", after.declared), ProgramAliases("main", before.declared))


def _round(before: Executable, after: Executable, name: str, inputs: tuple[Any, ...], tolerance: Tolerance) -> Round:
    expected = before.run(_copied(inputs))
    kept = _copied(inputs)
    outputs = compare_outputs(after.run(kept), expected, tolerance)
    problems = [
        f"input {place} was changed, although it was not given away"
        for (place, is_now), (_, was) in zip(_leaves(kept), _leaves(inputs), strict=True)
        if is_now is not None and np.asarray(is_now).tobytes() != np.asarray(was).tobytes()
    ]
    donated: tuple[Comparison, ...] = ()
    if numbers := {(each.parameter_number, each.parameter_index) for each in after.aliases}:
        execution = after.execute(_copied(inputs), donate=numbers)
        donated = compare_outputs(execution.outputs, expected, tolerance)
    return Round(name, outputs, donated, tuple(problems))


def compare_outputs(
    outputs: tuple[Any, ...], expected: tuple[Any, ...], tolerance: Tolerance
) -> tuple[Comparison, ...]:
    """Compare the results of a run, tuples taken apart.

    Args:
        outputs: The results.
        expected: What they shall be.
        tolerance: How far apart floats may be.
    """
    found, wanted = dict(_leaves(outputs)), dict(_leaves(expected))
    compared = []
    for place in dict.fromkeys((*wanted, *found)):
        if place not in found or place not in wanted:
            which = "first" if place in wanted else "second"
            compared.append(Comparison(place, "", (), mismatch=f"only the {which} program gives it"))
        # A token has no value.
        elif found[place] is not None and wanted[place] is not None:
            compared.append(compare(found[place], wanted[place], tolerance, place))
    return tuple(compared)


def _copied(inputs: Sequence[Any]) -> list[Any]:
    """Return inputs in memory of their own, which may be given away."""
    return [
        None if each is None else _copied(each) if isinstance(each, tuple | list) else np.array(each) for each in inputs
    ]


def _leaves(values: tuple[Any, ...] | list[Any], place: str = "") -> Iterator[tuple[str, Any]]:
    for number, value in enumerate(values):
        if isinstance(value, tuple | list):
            yield from _leaves(value, f"{place}{number}.")
        else:
            yield f"{place}{number}", value


def _may_be(one: Shape, other: Shape) -> bool:
    """Tell whether some value is of both shapes, of which sizes may be open."""
    if isinstance(one, Array) and isinstance(other, Array):
        fit = len(one.sizes) == len(other.sizes) and one.element == other.element
        return fit and all(a == b or None in (a, b) for a, b in zip(one.sizes, other.sizes, strict=True))
    if isinstance(one, Tuple) and isinstance(other, Tuple):
        return len(one.elements) == len(other.elements) and all(map(_may_be, one.elements, other.elements))
    return one == other


def _listed(shapes: Sequence[Shape]) -> str:
    return ", ".join(map(str, shapes)) or "nothing"
