"""A program, walked: prepared once for inputs of each shape, and run as often as one likes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import MLIRFailure, Module
from vhlo_tools.errors import EngineError, InvalidInputError
from vhlo_tools.interpreter.driver.evaluation import Evaluate, evaluate_here
from vhlo_tools.interpreter.driver.lockstep import run_in_lockstep
from vhlo_tools.interpreter.driver.manual import keep_shardings
from vhlo_tools.interpreter.driver.planning import plan
from vhlo_tools.interpreter.driver.specials import has_special
from vhlo_tools.interpreter.driver.steps import Block, Device
from vhlo_tools.interpreter.entry import main_of
from vhlo_tools.interpreter.grid import Grid
from vhlo_tools.interpreter.handlers import Handler
from vhlo_tools.interpreter.isolated import bytecode_of, call_isolated
from vhlo_tools.interpreter.lowering import fit, lower
from vhlo_tools.interpreter.lowering.shapes import is_dynamic, may_be_sizes
from vhlo_tools.interpreter.markers import mark
from vhlo_tools.interpreter.probing import Probe, ProbeSite
from vhlo_tools.portable import make_plain
from vhlo_tools.program import Program, explain_failure, load_program

__all__ = ["Driver", "needs_driver"]

_REWRITE: Final = "vhlo_tools.interpreter.driver.driver:rewrite_here"

#: The name of what was ``main``: segments have one of their own.
_MAIN: Final = "vhlo_tools.walked"

#: So many plans are kept, for inputs of so many shapes.
_KEPT: Final = 16

#: What a plan depends on: what is probed, and the inputs as far as shapes follow from them.
_Key = tuple[Any, ...]


def needs_driver(program: Program) -> bool:
    """Tell whether the reference interpreter cannot run a program whole: it has custom calls or collectives."""
    return has_special(program.provider, program.provider.as_module(program.load()))


class Driver:
    """A program that is walked.

    Args:
        program: The program, whose ``main`` takes and gives arrays and tokens.
        handlers: What computes custom calls, by their targets.
        evaluate: What evaluates segments.
        isolated: Whether it is rewritten in a child process, which passes of the library may end.

    Attributes:
        timeout: How many seconds the program may take to be rewritten, by default as many as a run may take.
    """

    def __init__(
        self,
        program: Program,
        handlers: Mapping[str, Handler] | None = None,
        evaluate: Evaluate = evaluate_here,
        *,
        isolated: bool = False,
    ) -> None:
        self._program = program
        self._handlers = dict(handlers or {})
        self._evaluate = evaluate
        self._is_isolated = isolated
        self.timeout: float | None = None
        self._plans: dict[_Key, tuple[dict[str, Block], Module]] = {}
        self._is_dynamic: bool | None = None

    def run(self, inputs: Sequence[Any], probe: Probe | None = None) -> list[Any]:
        """Run it on one device.

        Args:
            inputs: For each argument of ``main`` an array, for a token ``None``.
            probe: What keeps intermediate values.

        Returns:
            The results, in the same form.

        Raises:
            EngineError: If it holds what cannot be run, or fails.
        """
        (results,) = self._run([inputs], Grid(), probe)
        return results

    def run_parallel(
        self, inputs: Sequence[Sequence[Any]], replicas: int, partitions: int, probe: Probe | None = None
    ) -> list[list[Any]]:
        """Run it on several devices: device ``r * partitions + p`` is partition ``p`` of replica ``r``.

        Args:
            inputs: For each device what :meth:`run` takes.
            replicas: How many replicas there are.
            partitions: How many partitions each has.
            probe: What keeps intermediate values.

        Returns:
            The results of each device.

        Raises:
            InvalidInputError: If there are inputs of fewer or more devices, or they are not of the same shapes.
            EngineError: If it holds what cannot be run, or fails.
        """
        grid = Grid(replicas, partitions)
        if replicas < 1 or partitions < 1 or len(inputs) != grid.size:
            raise InvalidInputError(
                f"{self._program.name} was given inputs for {len(inputs)} devices, but is to run on {grid}"
            )
        for number, each in enumerate(inputs):
            if self._key(each) != self._key(inputs[0]):
                raise InvalidInputError(
                    f"the inputs of device {number} are not of the same shapes and sizes as those of device 0: all "
                    "devices run the same program"
                )
        return self._run(inputs, grid, probe)

    def _run(self, inputs: Sequence[Sequence[Any]], grid: Grid, probe: Probe | None) -> list[list[Any]]:
        functions = self._planned(inputs[0], probe)

        def emit(site: ProbeSite, iteration: tuple[int, ...], value: Any, device: int) -> None:
            if probe is not None:
                probe.take(site, iteration, value, device)

        devices = [Device(number, *grid.place(number), functions, self._evaluate, emit) for number in range(grid.size)]
        walks = [functions[_MAIN].walk(device, {}, each) for device, each in zip(devices, inputs, strict=True)]
        return _unshared(run_in_lockstep(grid, devices, walks), inputs)

    def _planned(self, inputs: Sequence[Any], probe: Probe | None) -> dict[str, Block]:
        key = (probe.selection if probe else None, self._key(inputs))
        if key not in self._plans:
            while len(self._plans) >= _KEPT:
                del self._plans[next(iter(self._plans))]
            self._plans[key] = self._plan(inputs, probe)
        return self._plans[key][0]

    def _key(self, inputs: Sequence[Any]) -> _Key:
        """Return the shapes of inputs, and those that may be sizes, if the program depends on them."""
        if self._is_dynamic is None:
            provider = self._program.provider
            self._is_dynamic = is_dynamic(provider.text(self._program.load(), largest_constant=0))
        if not self._is_dynamic:
            return ()
        return tuple(each if each is None else (each.shape, may_be_sizes(each) and each.tobytes()) for each in inputs)

    def _plan(self, inputs: Sequence[Any], probe: Probe | None) -> tuple[dict[str, Block], Module]:
        """Return the functions that are walked, and the module that they are of."""
        program = self._program
        provider, name = program.provider, program.name
        loaded = program.load()
        sites = mark(provider, loaded, probe) if probe else []
        try:
            whole = memoryview(bytecode_of(provider, loaded))
            arguments = whole, provider.prefix, name, [_outline(each) for each in inputs], tuple(self._handlers)
            if self._is_isolated:
                rewritten = call_isolated(_REWRITE, name, *arguments, timeout=self.timeout)
            else:
                rewritten = rewrite_here(*arguments)
            module = provider.parse(provider.new_context(), rewritten)
            return plan(provider, module, [_MAIN], self._handlers, sites, name), module
        except MLIRFailure as failure:
            raise _failed(program, failure, "cannot be rewritten for the reference interpreter") from failure


def rewrite_here(
    bytecode: memoryview, provider: str, name: str, inputs: Sequence[Any], handled: Sequence[str]
) -> bytes:
    """Return a program as it is walked, rewritten in this process.

    Args:
        bytecode: The program.
        provider: The import prefix of the bindings.
        name: What to call it in messages.
        inputs: For each argument of ``main`` an array, or its shape if no size follows from it; for a token ``None``.
        handled: The targets of custom calls that stay, though their meaning is known: something computes them.

    Raises:
        EngineError: If it holds what cannot be rewritten, or does not fit the inputs.
    """
    program = load_program(bytes(bytecode), name=name, provider=provider, trusted=True)
    bindings = program.provider
    shown = [np.broadcast_to(np.float32(0), each) if isinstance(each, tuple) else each for each in inputs]
    try:
        module = bindings.as_module(make_plain(bindings, program.load(), name))
        fit(bindings, module, (), (), shown, name)
    except MLIRFailure as failure:
        raise _failed(program, failure, "does not fit these inputs") from failure
    try:
        keep_shardings(bindings, module)
        lower(bindings, module, name, frozenset(handled))
        main_of(module, name)
        bindings.rename_function(module, "main", _MAIN)
    except MLIRFailure as failure:
        raise _failed(program, failure, "cannot be rewritten for the reference interpreter") from failure
    return bytecode_of(bindings, module)


def _outline(value: Any) -> Any:
    """Return of an input what the shapes of values follow from."""
    return value if value is None or may_be_sizes(value) else value.shape


def _failed(program: Program, failure: MLIRFailure, how: str) -> EngineError:
    said = explain_failure(program.name, program.provider, failure)
    return EngineError(f"{program.name} {how}: {said}", failure.diagnostics)


def _unshared(results: list[list[Any]], inputs: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return results in memory that neither inputs nor other results have: an op may pass on what it is given."""
    known = {id(each) for device in inputs for each in device}

    def own(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple):
            return tuple(map(own, value))
        if id(value) in known or not value.flags.owndata:
            value = value.copy()
        known.add(id(value))
        return value

    return [list(map(own, device)) for device in results]
