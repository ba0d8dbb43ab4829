"""Programs that several devices run at once: replicas, and partitions of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from vhlo_tools.errors import EngineError, InvalidInputError
from vhlo_tools.interpreter.engines import ParallelReferenceEngine
from vhlo_tools.interpreter.entry import valid_module
from vhlo_tools.interpreter.executable import Executable
from vhlo_tools.interpreter.grid import Grid
from vhlo_tools.interpreter.handlers import Handler
from vhlo_tools.interpreter.probing import Probe
from vhlo_tools.interpreter.protocols import EngineName, ParallelEngine
from vhlo_tools.interpreter.xla.parallel import XlaParallelEngine, cutter_of
from vhlo_tools.program import Program

__all__ = ["PARALLEL_ENGINES", "ParallelExecutable"]

#: What makes an engine of a program, a grid of devices, and what computes its custom calls.
PARALLEL_ENGINES: Final[dict[EngineName, Callable[[Program, Grid, Mapping[str, Handler]], ParallelEngine]]] = {
    "reference": ParallelReferenceEngine,
    "xla": XlaParallelEngine,
}
_MOST_DEVICES: Final = 64


class ParallelExecutable:
    """A program, loaded for several devices of an engine: ``main`` may be run as often as one likes.

    Args:
        program: The program.
        engine: What runs it; ``auto`` takes ``xla`` for what that can run.
        replicas: How many replicas there are, by default as many as the program says, or one.
        partitions: How many partitions each has, by default as many as the program says, or one.
        handlers: What computes its custom calls, by their targets.

    Attributes:
        name: What the program is called in messages.
        engine: What it runs on.
        why: Why on that one.
        replicas: How many replicas there are.
        partitions: How many partitions each has.
        inputs: How many sequences of inputs a run takes: one for each device, or one of whole values.

    Raises:
        InvalidInputError: If there are too many devices, or none.
        EngineError: If the engine cannot run it.
        VhloToolsError: As :class:`Executable` does.
    """

    def __init__(
        self,
        program: Program,
        engine: EngineName | Literal["auto"],
        *,
        replicas: int | None = None,
        partitions: int | None = None,
        handlers: Mapping[str, Handler] | None = None,
    ) -> None:
        self.name = program.name
        grid, self.inputs, self._reason = _laid_out(program, replicas, partitions)
        self.replicas, self.partitions = grid.replicas, grid.partitions
        self._executable = Executable(program, "xla", "on several devices", handlers)

        def made(engine: EngineName) -> ParallelEngine:
            return PARALLEL_ENGINES[engine](self._executable.flat, grid, dict(handlers or {}))

        if engine != "auto":
            self.engine, self.why, self._runner = engine, "as asked for", made(engine)
            return
        self.engine, self.why, self._runner = "xla", "it runs all devices at once", made("xla")
        try:
            self.prepare()
        except EngineError as failure:
            if self.inputs != grid.size:
                raise  # only XLA cuts values into parts
            self.engine, self.why, self._runner = "reference", f"XLA cannot run it: {failure}", made("reference")

    def prepare(self) -> None:
        """Do now what the first run would have to wait for, if it does not depend on inputs.

        Raises:
            EngineError: If the engine cannot run the program.
        """
        if (shapes := self._executable.static_shapes) is not None:
            self._runner.prepare(shapes)

    def run(
        self, inputs: Sequence[Sequence[Any]], *, timeout: float | None = None, probe: Probe | None = None
    ) -> tuple[tuple[Any, ...], ...]:
        """Evaluate ``main`` on all devices at once.

        Args:
            inputs: The inputs of each device, or those of all if the program says how these share them.
            timeout: How many seconds each segment of the program may take on ``reference``, by default ten minutes;
                nothing ends ``xla``.
            probe: What keeps intermediate values, on the engine ``reference``.

        Returns:
            For each sequence of inputs the results as arrays, of a tuple a tuple.

        Raises:
            InvalidInputError: If there are inputs for another number of devices, or they do not fit.
            EngineError: If the engine cannot run it, or fails.
            EngineTimeoutError: If it takes longer than it may.
        """
        if len(inputs) != self.inputs:
            raise InvalidInputError(
                f"{self.name} takes so many sequences of inputs: {self.inputs}, {self._reason}; not {len(inputs)}"
            )
        leaves = [self._executable.leaves_of(given) for given in inputs]
        results = self._runner.execute_parallel(leaves, timeout, probe)
        return tuple(self._executable.nested(each) for each in results)


def _laid_out(program: Program, replicas: int | None, partitions: int | None) -> tuple[Grid, int, str]:
    """Return the grid of devices, and how many sequences of inputs a program takes on it, and why so many."""
    module = valid_module(program)
    grid = Grid(
        _count(module, "mhlo.num_replicas", replicas, "replicas"),
        _count(module, "mhlo.num_partitions", partitions, "partitions"),
    )
    if grid.size > _MOST_DEVICES:
        raise InvalidInputError(f"{grid.size} devices are too many: at most {_MOST_DEVICES} are run on one machine")
    if grid.partitions == 1 or cutter_of(program, module) is None:
        return grid, grid.size, f"one for each of {grid.replicas} x {grid.partitions} devices"
    if grid.replicas > 1:
        raise EngineError(
            f"{program.name} says how partitions share values, and XLA runs such programs as one replica, not as "
            f"{grid.replicas}: run it for each"
        )
    return grid, 1, f"one of whole values, for it says how {grid.partitions} partitions share them"


def _count(module: Any, name: str, asked: int | None, what: str) -> int:
    attributes = module.operation.attributes
    number = asked if asked is not None else int(attributes[name].value) if name in attributes else 1
    if number < 1:
        raise InvalidInputError(f"{number} {what} run nothing: expected one or more")
    return number
