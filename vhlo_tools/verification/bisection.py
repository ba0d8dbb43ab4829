"""Search for the first op at which two programs, or two engines on one program, come to different results."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from vhlo_tools.aliasing import AliasConfig
from vhlo_tools.bindings import CALLEES, ModuleOp, Operation, inline_calls
from vhlo_tools.execution import (
    ARGUMENT,
    CONTROL_FLOW,
    EngineName,
    Executable,
    Handler,
    Probe,
    ProbedValue,
    ProbeSite,
    location_text,
    main_of,
    retype_main,
)
from vhlo_tools.program import read_module_aliases, write_module_aliases
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


@dataclass(frozen=True, slots=True)
class EngineDivergence:
    """The op of a program at which two engines part: up to it they agree, and on its result they do not.

    Attributes:
        op: The name of the op.
        location: Its source location, as MLIR prints it; empty if unknown.
        engines: The two engines.
        comparison: The comparison of its first result that differs: that of the first engine with that of the second.
    """

    op: str
    location: str
    engines: tuple[EngineName, EngineName]
    comparison: Comparison

    def __str__(self) -> str:
        place = f", {self.location}" if self.location else ""
        one, other = self.engines
        return f"{one} and {other} part at {self.op}{place}\n  {self.comparison}"


def inlined(executable: Executable) -> Executable:
    """The program with its calls replaced by what they call, on the interpreter."""
    flat = executable.flat
    module = flat.provider.clone(executable.module)
    inline_calls(flat.provider, module, lambda _: True)
    return Executable(replace(flat, load=lambda: flat.provider.clone(module)), "reference", "to search in it")


def find_engine_divergence(
    executable: Executable,
    engines: tuple[EngineName, EngineName],
    inputs: Sequence[Any],
    tolerance: Tolerance,
    handlers: Mapping[str, Handler] | None = None,
    timeout: float | None = None,
) -> EngineDivergence | None:
    """The program is run up to one op after the other, by bisection; ``None`` if the engines agree on all results.

    An engine compiles each part anew, so where two ops together are at fault, the second of them is found.
    """
    program = inlined(executable)
    given = copied(tuple(executable.leaves_of(inputs)))
    ops = _ops_of(main_of(program.module, program.name))

    def compared(at: int) -> Comparison | None:
        flat = replace(program.flat, load=lambda: _up_to(program, at))
        one, other = (
            Executable(flat, engine, "to search in it", handlers, timeout=timeout).run(copied(given))
            for engine in engines
        )
        results = zip(one, other, _tensors(ops[at]), strict=True)
        found = (compare(a, b, tolerance, str(number)) for a, b, number in results)
        return next((each for each in found if not each.passed), None)

    numbers = {op: number for number, op in enumerate(ops)}
    made = dict.fromkeys(numbers[value.owner] for value in ops[-1].operands if value.owner in numbers)
    worst = next(((at, found) for at in made if (found := compared(at)) is not None), None)
    if worst is None:
        return None
    # What that result depends on, in the order of the program.
    needed, pending = set(), [worst[0]]
    while pending:
        if (at := pending.pop()) not in needed:
            needed.add(at)
            pending += [numbers[value.owner] for value in _used(ops[at]) if value.owner in numbers]
    candidates = sorted(at for at in needed if _tensors(ops[at]))
    first, last = 0, candidates.index(worst[0])
    while first < last:
        middle = (first + last) // 2
        if (found := compared(candidates[middle])) is None:
            first = middle + 1
        else:
            last, worst = middle, (candidates[middle], found)
    op = ops[worst[0]]
    return EngineDivergence(str(op.name), location_text(op), engines, worst[1])


def _ops_of(main: Operation) -> list[Operation]:
    (block,) = main.regions[0].blocks
    return [each.operation for each in block.operations]


def _tensors(op: Operation) -> list[int]:
    """The numbers of the results that ``main`` may return."""
    return [number for number, each in enumerate(op.results) if str(each.type).startswith("tensor<")]


def _used(op: Operation) -> Iterator[Any]:
    yield from op.operands
    for each in (each for region in op.regions for block in region for each in block.operations):
        yield from _used(each.operation)


def _up_to(program: Executable, at: int) -> ModuleOp:
    """The program with the results of one op as those of ``main``, and without aliases."""
    provider = program.flat.provider
    module = provider.as_module(provider.clone(program.module))
    signature = read_module_aliases(module.operation).signature
    write_module_aliases(module.operation, AliasConfig(signature), provider=provider)
    main = main_of(module, program.name)
    ops: list[Any] = _ops_of(main)
    returned = [ops[at].results[number] for number in _tensors(ops[at])]
    with main.context, main.location:
        with provider.ir.InsertionPoint(ops[-1]):
            provider.ir.Operation.create("func.return", operands=returned)
        ops[-1].erase()
        retype_main(provider.ir, main, main.regions[0].blocks[0].arguments, returned)
    return module


def find_divergence(
    before: Executable, after: Executable, inputs: Sequence[Any], tolerance: Tolerance
) -> Divergence | None:
    """Both programs run on the engine ``reference``; ``None`` if all values that both compute agree."""
    with TemporaryDirectory() as folder:
        # In files, because there may be many values.
        one, other = (
            Trace(executable, inputs, Path(folder) / name)
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


class Trace:
    """All values of a run; ``sites`` has the first value of each result of an op."""

    def __init__(self, executable: Executable, inputs: Sequence[Any], folder: Path) -> None:
        probe = Probe(folder=folder, arguments=True)
        executable.run(copied(tuple(inputs)), probe=probe)
        self.values: list[ProbedValue] = probe.values
        self._numbers: defaultdict[Key, list[int]] = defaultdict(list)
        for number, value in enumerate(self.values):
            self._numbers[key_of(value.site)].append(number)
        first = (self.values[numbers[0]] for numbers in self._numbers.values())
        self.sites: list[ProbedValue] = [value for value in first if value.site.op != ARGUMENT]

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
