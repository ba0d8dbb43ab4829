"""Search for the divergence of two programs: the first op with equal operands in both and different results."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from vhlo_tools.bindings import CALLEES
from vhlo_tools.execution import ARGUMENT, CONTROL_FLOW, Executable, Probe, ProbedValue, ProbeSite
from vhlo_tools.records import dataclass
from vhlo_tools.verification.comparison import Comparison, Key, Tolerance, compare, copied, key_of, matching_sites

#: Ops that return results of nested or called ops: those are to be reported instead.
_ENTERED: Final = CONTROL_FLOW | CALLEES.keys()


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first op of two programs that has, as far as is known, equal operands in both and different results.

    Attributes:
        before: The result of the op in the first program.
        after: The same result in the second program.
        iteration: The iterations, counted from zero, of the enclosing loops, from the outermost.
        comparison: The comparison of the two results.
        inputs_agree: Whether the operands agree. If there is no such op, this is the first with different results: its
            operands differ, or are results of ops that only one of the programs has.
    """

    before: ProbeSite
    after: ProbeSite
    iteration: tuple[int, ...]
    comparison: Comparison
    inputs_agree: bool = True

    def __str__(self) -> str:
        turn = f" in iteration {list(self.iteration)} of the loops around it" if self.iteration else ""
        given = "agree" if self.inputs_agree else "differ, or are results of ops that only one program has"
        return (
            f"the programs diverge at {self.before.op}{turn}: its operands {given}, its results do not agree\n"
            f"  first: {_described(self.before)}\n  second: {_described(self.after)}\n  {self.comparison}"
        )


def find_divergence(
    before: Executable, after: Executable, inputs: Sequence[Any], tolerance: Tolerance
) -> Divergence | None:
    """Both programs run on the engine ``reference``; ``None`` if all values that both compute agree."""
    with TemporaryDirectory() as folder:
        # In files, because there may be many values.
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
    """All values of a run; ``sites`` has the first value of each result of an op."""

    def __init__(self, executable: Executable, inputs: Sequence[Any], folder: Path) -> None:
        probe = Probe(folder=folder, arguments=True)
        executable.run(copied(tuple(inputs)), probe=probe)
        self.values = probe.values
        self._numbers: defaultdict[Key, list[int]] = defaultdict(list)
        for number, value in enumerate(self.values):
            self._numbers[key_of(value.site)].append(number)
        first = (self.values[numbers[0]] for numbers in self._numbers.values())
        self.sites = [value for value in first if value.site.op != ARGUMENT]

    def number(self, key: Key, turn: int) -> int | None:
        """``None`` if the site produced fewer values."""
        numbers = self._numbers[key]
        return numbers[turn] if turn < len(numbers) else None

    def operands(self, number: int) -> list[ProbedValue]:
        """Only operands that are tensors."""
        found = []
        for operand in self.values[number].site.operands:
            numbers = self._numbers.get(operand, [])
            if last := bisect_left(numbers, number):
                found.append(self.values[numbers[last - 1]])
        return found


def _agree(one: Sequence[ProbedValue], other: Sequence[ProbedValue], tolerance: Tolerance) -> bool:
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(compare(b.read(), a.read(), tolerance, "").passed for a, b in pairs)


def _described(site: ProbeSite) -> str:
    place = f", {site.location}" if site.location else ""
    return f"result {site.result} of {site.path}{place}"
