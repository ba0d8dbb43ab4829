"""Where two programs part: the first op that is given the same in both and gives something else."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from vhlo_tools.interpreter import ARGUMENT, Executable, Probe, ProbedValue, ProbeSite
from vhlo_tools.verification.comparison import Comparison, Tolerance, compare
from vhlo_tools.verification.matching import Key, key_of, matching_sites

__all__ = ["Divergence", "find_divergence"]

#: Ops that give what ops within them gave, or in functions that they call: these are to be named.
_ENTERED: Final = frozenset({
    "func.call", "stablehlo.case", "stablehlo.composite", "stablehlo.if", "stablehlo.while"
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first op of two programs that is given the same in both, as far as that is known, and gives something else.

    Attributes:
        before: The result of the op in the first program.
        after: The same in the second.
        iteration: The iterations, counted from zero, of the loops around it, from the outermost.
        comparison: How far apart the two are.
        inputs_agree: Whether what it is given agrees. If there is no such op, it is the first that gives something
            else: it takes other values, or values of ops that only one of the programs has.
    """

    before: ProbeSite
    after: ProbeSite
    iteration: tuple[int, ...]
    comparison: Comparison
    inputs_agree: bool = True

    def __str__(self) -> str:
        turn = f" in iteration {list(self.iteration)} of the loops around it" if self.iteration else ""
        given = "the same" if self.inputs_agree else "something else, though all before it agrees that both have"
        return "\n".join(
            [
                f"the programs part at {self.before.op}{turn}: it is given {given}, and its results do not agree",
                *(f"  {which}: {_described(site)}" for which, site in (("first", self.before), ("second", self.after))),
                f"  {self.comparison}",
            ]
        )


def find_divergence(
    before: Executable, after: Executable, inputs: Sequence[Any], tolerance: Tolerance
) -> Divergence | None:
    """Return where two programs part; ``None`` if all that both compute agrees.

    Args:
        before: The program whose values are expected, on the engine ``reference``.
        after: The program whose values are compared with these, on the same.
        inputs: What both are given.
        tolerance: How far apart floats may be.

    Raises:
        EngineError: If one of them cannot be run.
    """
    with TemporaryDirectory() as folder:
        # In files, for there may be many.
        one, other = (
            _Trace(executable, inputs, Path(folder) / name)
            for name, executable in (("before", before), ("after", after))
        )
        pairs = matching_sites(one.sites, other.sites)
        first: Divergence | None = None
        turns: defaultdict[Key, int] = defaultdict(int)
        for number, value in enumerate(one.values):
            key = key_of(value.site)
            turn, turns[key] = turns[key], turns[key] + 1
            at = other.number(pairs[key], turn) if key in pairs else None
            if at is None:
                continue
            found = other.values[at]
            comparison = compare(found.read(), value.read(), tolerance, str(value.site.result))
            if comparison.passed:
                continue
            agree = value.site.op not in _ENTERED and _agree(one.operands(number), other.operands(at), tolerance)
            divergence = Divergence(value.site, found.site, value.iteration, comparison, agree)
            if agree:
                return divergence
            first = first or divergence
    return first


class _Trace:
    """All values of a run.

    Attributes:
        values: The values, in the order in which they came.
        sites: The first value of each result of an op.
    """

    def __init__(self, executable: Executable, inputs: Sequence[Any], folder: Path) -> None:
        probe = Probe(folder=folder, arguments=True)
        executable.run([_copied(each) for each in inputs], probe=probe)
        self.values = probe.values
        self._numbers: defaultdict[Key, list[int]] = defaultdict(list)
        for number, value in enumerate(self.values):
            self._numbers[key_of(value.site)].append(number)
        first = (self.values[numbers[0]] for numbers in self._numbers.values())
        self.sites = [value for value in first if value.site.op != ARGUMENT]

    def number(self, key: Key, turn: int) -> int | None:
        """Return the number of the value that a site gave at its turn ``turn``, if it came to that."""
        numbers = self._numbers[key]
        return numbers[turn] if turn < len(numbers) else None

    def operands(self, number: int) -> list[ProbedValue]:
        """Return what the op of a value was given, but for what is no tensor."""
        found = []
        for operand in self.values[number].site.operands:
            numbers = self._numbers.get(operand, [])
            if last := bisect_left(numbers, number):
                found.append(self.values[numbers[last - 1]])
        return found


def _agree(one: Sequence[ProbedValue], other: Sequence[ProbedValue], tolerance: Tolerance) -> bool:
    """Tell whether ops are given the same."""
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(compare(b.read(), a.read(), tolerance, "").passed for a, b in pairs)


def _copied(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(map(_copied, value))
    return None if value is None else np.array(value)


def _described(site: ProbeSite) -> str:
    place = f", {site.location}" if site.location else ""
    return f"result {site.result} of {site.path}{place}"
