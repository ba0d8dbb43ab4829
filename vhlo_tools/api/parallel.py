"""Programs run by several devices at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vhlo_tools.api.execution import ENGINE_CHOICES, EngineChoice
from vhlo_tools.api.frontends import as_program

if TYPE_CHECKING:
    from vhlo_tools.interpreter import Handler, ParallelExecutable, Probe
    from vhlo_tools.program import ProgramSource

__all__ = ["load_parallel_executable", "run_parallel"]


def load_parallel_executable(
    program: ProgramSource,
    *,
    replicas: int | None = None,
    partitions: int | None = None,
    engine: EngineChoice = "auto",
    handlers: Mapping[str, Handler] | None = None,
    name: str | None = None,
    provider: str | None = None,
    trusted: bool = False,
) -> ParallelExecutable:
    """Load a program for several devices once, to run it often.

    >>> import vhlo_tools as vt
    >>> program = '''func.func @main() -> tensor<ui32> {
    ...   %0 = stablehlo.replica_id : tensor<ui32>
    ...   return %0 : tensor<ui32>
    ... }'''
    >>> executable = vt.load_parallel_executable(program, replicas=2)
    >>> [[int(number) for (number,) in executable.run([[], []])] for _ in range(2)]
    [[0, 1], [0, 1]]

    Args:
        program: Anything that :func:`serialize` takes.
        replicas: As for :func:`run_parallel`.
        partitions: As for :func:`run_parallel`.
        engine: As for :func:`run_parallel`.
        handlers: As for :func:`run_parallel`.
        name: What to call the program in messages, by default its path.
        provider: The bindings to use, by default those of the module, or the installed ones.
        trusted: Whether MLIR may parse an artifact or bytecode in this process at once, as for :func:`serialize`.

    Raises:
        InvalidInputError: If there are too many devices, or none.
        EngineError: If the program holds what the engine cannot run.
        InvalidProgramError: If it is no valid program.
        MalformedArtifactError: If it is a damaged artifact.
    """
    from vhlo_tools.interpreter import ParallelExecutable
    from vhlo_tools.program import load_program

    if engine not in ENGINE_CHOICES:
        raise ValueError(f"{engine!r} is not an engine: expected one of {', '.join(ENGINE_CHOICES)}")
    loaded = load_program(
        as_program(program, name=name, provider=provider), name=name, provider=provider, trusted=trusted
    )
    return ParallelExecutable(loaded, engine, replicas=replicas, partitions=partitions, handlers=handlers)


def run_parallel(
    program: ProgramSource,
    inputs: Sequence[Sequence[Any]],
    *,
    replicas: int | None = None,
    partitions: int | None = None,
    engine: EngineChoice = "auto",
    timeout: float | None = None,
    handlers: Mapping[str, Handler] | None = None,
    probe: Probe | None = None,
    name: str | None = None,
    provider: str | None = None,
    trusted: bool = False,
) -> tuple[tuple[Any, ...], ...]:
    """Evaluate the function ``main`` of a program on several devices at once.

    A program with collectives says what each device does: each takes inputs of its own, and gives results of its own.
    A program with shardings of Shardy or of GSPMD, for more than one partition, says what all partitions do together,
    and how they share values: there is one sequence of inputs, which are whole, and one of results; XLA cuts them, and
    adds the collectives. Nothing is given away, and aliases do not count.

    >>> import vhlo_tools as vt
    >>> program = '''func.func @main(%a: tensor<f32>) -> tensor<f32> {
    ...   %0 = "stablehlo.all_reduce"(%a) ({
    ...     ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    ...       %1 = stablehlo.add %x, %y : tensor<f32>
    ...       stablehlo.return %1 : tensor<f32>
    ...   }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<f32>) -> tensor<f32>
    ...   return %0 : tensor<f32>
    ... }'''
    >>> [float(result) for (result,) in vt.run_parallel(program, [[1], [2]], replicas=2)]
    [3.0, 3.0]

    Args:
        program: Anything that :func:`serialize` takes.
        inputs: For each device a sequence of inputs, as :func:`run` takes them; device ``r * partitions + p`` is
            partition ``p`` of replica ``r``. For a program with shardings one such sequence.
        replicas: How many replicas there are, by default what ``mhlo.num_replicas`` of the module says, or one.
        partitions: How many partitions each has, by default what ``mhlo.num_partitions`` says, or one.
        engine: What runs it; ``auto`` takes ``xla`` for what that can run.
        timeout: How many seconds each segment of the program may take on ``reference``, by default ten minutes; nothing
            ends ``xla``.
        handlers: As for :func:`run`. After one has raised, ``xla`` goes on with zeros until all devices have ended.
        probe: What keeps intermediate values, with the device that each is of, on ``reference``, which ``auto`` takes.
        name: What to call the program in messages, by default its path.
        provider: The bindings to use, by default those of the module, or the installed ones.
        trusted: Whether MLIR may parse an artifact or bytecode in this process at once, as for :func:`serialize`.

    Returns:
        A tuple with the results for each sequence of inputs, in their order.

    Raises:
        InvalidInputError: If there are inputs for another number of devices, or they do not fit.
        EngineError: If the program holds what the engine cannot run, or fails.
        InvalidProgramError: If it is no valid program.
        MalformedArtifactError: If it is a damaged artifact.
    """
    if not isinstance(inputs, Sequence):
        raise TypeError(f"inputs must be a sequence with the inputs of each device, not a {type(inputs).__qualname__}")
    if probe is not None and engine == "auto":
        engine = "reference"
    executable = load_parallel_executable(
        program,
        replicas=replicas,
        partitions=partitions,
        engine=engine,
        handlers=handlers,
        name=name,
        provider=provider,
        trusted=trusted,
    )
    return executable.run(inputs, timeout=timeout, probe=probe)
