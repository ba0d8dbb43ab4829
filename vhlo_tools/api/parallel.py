"""Execution of programs on several devices in parallel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from vhlo_tools.api.frontends import as_program
from vhlo_tools.api.platforms import for_platform
from vhlo_tools.api.running import ENGINE_CHOICES
from vhlo_tools.artifact import check_source
from vhlo_tools.files import identify

if TYPE_CHECKING:
    from vhlo_tools.api.running import EngineChoice
    from vhlo_tools.artifact import ManifestChoice
    from vhlo_tools.execution import Handler, ParallelExecutable, Probe
    from vhlo_tools.program import LoadOptions, ProgramSource


def load_parallel_executable(
    program: ProgramSource,
    *,
    replicas: int | None = None,
    partitions: int | None = None,
    engine: EngineChoice = "auto",
    handlers: Mapping[str, Handler] | None = None,
    in_process: bool = False,
    timeout: float | None = None,
    platform: str | None = None,
    manifest: ManifestChoice = None,
    **options: Unpack[LoadOptions],
) -> ParallelExecutable:
    """Load a program for several devices once, to run it repeatedly.

    >>> import vhlo_tools as vt
    >>> program = '''func.func @main() -> tensor<ui32> {
    ...   %0 = stablehlo.replica_id : tensor<ui32>
    ...   return %0 : tensor<ui32>
    ... }'''
    >>> executable = vt.load_parallel_executable(program, replicas=2)
    >>> [[int(number) for (number,) in executable.run([[], []])] for _ in range(2)]
    [[0, 1], [0, 1]]

    Args:
        program: Anything that :func:`serialize` accepts.
        replicas: As for :func:`run_parallel`.
        partitions: As for :func:`run_parallel`.
        engine: As for :func:`run_parallel`.
        handlers: As for :func:`run_parallel`.
        in_process: As for :func:`load_executable`.
        timeout: As for :func:`load_executable`.
        platform: As for :func:`run`.
        manifest: As for :func:`run`.
        options: ``name``, ``provider`` and ``trusted``, as for :func:`serialize`.

    Raises:
        InvalidInputError: If there are too many devices, or none, or it is not exported for the platform.
        EngineError: If the program contains something that the engine cannot run.
        InvalidProgramError: If it is not a valid program.
        MalformedArtifactError: If it is a damaged artifact.
        ManifestError: If it is not what its manifest says, or one is required and not there.
    """
    from vhlo_tools.execution import ParallelExecutable
    from vhlo_tools.program import load_program, names_in_utf8

    if engine not in ENGINE_CHOICES:
        raise ValueError(f"{engine!r} is not an engine: expected one of {', '.join(ENGINE_CHOICES)}")
    source = identify(program, options.get("name"))
    check_source(source, manifest).require()
    program = as_program(source, name=options.get("name"), provider=options.get("provider"))
    loaded = for_platform(load_program(program, **options), source, platform)
    with names_in_utf8(loaded.name):
        return ParallelExecutable(
            loaded,
            engine,
            replicas=replicas,
            partitions=partitions,
            handlers=handlers,
            in_process=in_process,
            timeout=timeout,
        )


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
    platform: str | None = None,
    manifest: ManifestChoice = None,
    **options: Unpack[LoadOptions],
) -> tuple[tuple[Any, ...], ...]:
    """Evaluate the function ``main`` of a program on several devices in parallel.

    A program with collectives defines the behaviour of each device: each has its own inputs and results.
    A program with shardings of Shardy or of GSPMD, for more than one partition, defines the behaviour of all partitions
    together and the sharding of values: there is one sequence of inputs, which are unsharded, and one of results; XLA
    partitions them and adds the collectives. Nothing is donated, and aliases are ignored.

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
        program: Anything that :func:`serialize` accepts.
        inputs: For each device a sequence of inputs, in the form that :func:`run` accepts; device
            ``r * partitions + p`` is partition ``p`` of replica ``r``. For a program with shardings one such sequence.
        replicas: The number of replicas, by default ``mhlo.num_replicas`` of the module, or one.
        partitions: The number of partitions of each replica, by default ``mhlo.num_partitions``, the size of the
            mesh, or one.
        engine: The engine; ``auto`` selects ``xla`` if it can run the program.
        timeout: The time limit in seconds, by default ten minutes, as for :func:`run`.
        handlers: As for :func:`run`. After one has raised, ``xla`` continues with zeros until all devices have ended.
        probe: The recorder of intermediate values, with the device of each, on ``reference``, which ``auto`` selects.
        platform: As for :func:`run`.
        manifest: As for :func:`run`.
        options: ``name``, ``provider`` and ``trusted``, as for :func:`serialize`.

    Returns:
        A tuple with the results for each sequence of inputs, in their order.

    Raises:
        InvalidInputError: If the number of sequences of inputs is wrong, or the inputs or the platform do not match.
        EngineError: If the program contains something that the engine cannot run, or fails.
        InvalidProgramError: If it is not a valid program.
        MalformedArtifactError: If it is a damaged artifact.
        ManifestError: If it is not what its manifest says, or one is required and not there.
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
        timeout=timeout,
        platform=platform,
        manifest=manifest,
        **options,
    )
    return executable.run(inputs, timeout=timeout, probe=probe)
