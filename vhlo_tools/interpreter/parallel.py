"""Programs that several devices run at once: replicas, and partitions of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from vhlo_tools.errors import EngineError, InvalidInputError
from vhlo_tools.interpreter.engines import ParallelReferenceEngine
from vhlo_tools.interpreter.entry import valid_module
from vhlo_tools.interpreter.executable import Executable
from vhlo_tools.interpreter.grid import Grid
from vhlo_tools.interpreter.handlers import Handler
from vhlo_tools.interpreter.protocols import EngineName, ParallelEngine
from vhlo_tools.interpreter.xla.parallel import XlaParallelEngine, cutter_of
from vhlo_tools.program import Program

__all__ = ["PARALLEL_ENGINES", "count_inputs", "run_parallel"]

#: What makes an engine of a program, a grid of devices, and what computes its custom calls.
PARALLEL_ENGINES: Final[dict[EngineName, Callable[[Program, Grid, Mapping[str, Handler]], ParallelEngine]]] = {
    "reference": ParallelReferenceEngine,
    "xla": XlaParallelEngine,
}
_MOST_DEVICES: Final = 64


def run_parallel(
    program: Program,
    inputs: Sequence[Sequence[Any]],
    engine: EngineName,
    *,
    replicas: int | None = None,
    partitions: int | None = None,
    handlers: Mapping[str, Handler] | None = None,
) -> tuple[tuple[Any, ...], ...]:
    """Evaluate ``main`` of a program on several devices at once.

    Args:
        program: The program.
        inputs: The inputs of each device, or those of all if the program says how these share them.
        engine: What runs it.
        replicas: How many replicas there are, by default as many as the program says, or one.
        partitions: How many partitions each has, by default as many as the program says, or one.
        handlers: What computes its custom calls, by their targets.

    Raises:
        InvalidInputError: If there are inputs for another number of devices, or they do not fit.
        EngineError: If the engine cannot run it.
    """
    if engine not in PARALLEL_ENGINES:
        raise EngineError(f"the engine {engine} runs programs on one device: take {' or '.join(PARALLEL_ENGINES)}")
    grid, wanted, why = _laid_out(program, replicas, partitions)
    if len(inputs) != wanted:
        raise InvalidInputError(f"{program.name} takes so many sequences of inputs: {wanted}, {why}; not {len(inputs)}")
    executable = Executable(program, "xla", "on several devices", handlers)
    leaves = [executable.leaves_of(given) for given in inputs]
    runner = PARALLEL_ENGINES[engine](executable.flat, grid, dict(handlers or {}))
    return tuple(executable.nested(each) for each in runner.execute_parallel(leaves))


def count_inputs(program: Program, *, replicas: int | None = None, partitions: int | None = None) -> int:
    """Return how many sequences of inputs :func:`run_parallel` takes for a program.

    Args:
        program: The program.
        replicas: As for :func:`run_parallel`.
        partitions: As for :func:`run_parallel`.

    Raises:
        EngineError: If so many devices cannot run it.
    """
    return _laid_out(program, replicas, partitions)[1]


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
