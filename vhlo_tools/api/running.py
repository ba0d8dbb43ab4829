"""Runs of programs, on one device and on several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from vhlo_tools.api.frontends import as_artifact, as_container, as_program
from vhlo_tools.artifact import ManifestChoice, check_source, externalize, numpy_name
from vhlo_tools.errors import InvalidInputError
from vhlo_tools.files import Source, identify, unwrapped

if TYPE_CHECKING:
    import numpy as np

    from vhlo_tools.artifact import Artifact, StoredTensor
    from vhlo_tools.execution import Donate, Executable, Handler, ParallelExecutable, Probe
    from vhlo_tools.program import LoadOptions, Program, ProgramSource

# Exports of jax for several platforms: ``main`` first takes the number of the platform that it runs on
#
# Source: ``_wrap_main_func`` in ``jax/_src/export/_export.py`` of jax-ml/jax.

#: Leaves the number of the platform an input.
ANY_PLATFORM: Final = "any"


def for_platform(program: Program, source: Source, platform: str | None) -> Program:
    """Return a program without the argument for the number of the platform, if it has one; ``None`` is ``cpu``."""
    container = as_container(source)
    # Of all objects that are programs, only a jax.export.Exported has platforms.
    platforms = container.platforms if container is not None else tuple(getattr(source.given, "platforms", ()))
    if platform == ANY_PLATFORM or (platform is None and len(platforms) < 2):
        return program
    if not platforms:
        raise InvalidInputError(f"{program.name} is no export of jax: it runs on any platform (platform=, --platform)")
    if (chosen := platform or "cpu") not in platforms:
        raise InvalidInputError(
            f"{program.name} is an export for {' and '.join(platforms)}, not for {chosen}: choose one of these "
            f"(platform=, --platform)"
        )
    if len(platforms) == 1:
        return program
    from vhlo_tools.execution import bind_first_argument

    number = platforms.index(chosen)
    return replace(program, load=lambda: bind_first_argument(program, number))


# Execution of programs on numpy arrays, with or without donation

#: ``pjrt:`` and the name or the path of a plugin of PJRT is an engine too.
EngineChoice = Literal["auto", "reference", "xla", "iree"] | str
ENGINE_CHOICES: Final = ("auto", "reference", "xla", "iree")


def is_engine(name: str) -> bool:
    from vhlo_tools.compat import PLUGIN_ENGINE

    return name in ENGINE_CHOICES or (name.startswith(PLUGIN_ENGINE) and name != PLUGIN_ENGINE)


def load_executable(
    program: ProgramSource,
    *,
    engine: EngineChoice = "auto",
    handlers: Mapping[str, Handler] | None = None,
    in_process: bool = False,
    timeout: float | None = None,
    platform: str | None = None,
    manifest: ManifestChoice = None,
    **options: Unpack[LoadOptions],
) -> Executable:
    """Load a program once, to run it repeatedly, with reports of its memory use.

    >>> import vhlo_tools as vt
    >>> program = '''func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2xf32> {
    ...   %0 = stablehlo.add %a, %a : tensor<2xf32>
    ...   return %0 : tensor<2xf32>
    ... }'''
    >>> execution = vt.load_executable(program).execute([vt.Buffer([1, 2])], donate=(0,))

    Args:
        program: Anything that :func:`serialize` accepts.
        engine: As for :func:`run`.
        handlers: As for :func:`run`.
        in_process: Whether XLA runs in this process: faster for small programs, but a program that crashes XLA ends
            this process, and no limit holds. Only for programs that you made. The interpreter always runs in a child.
        timeout: The limit in seconds of preparing the program, and of runs without one of their own (see :func:`run`).
        platform: As for :func:`run`.
        manifest: As for :func:`run`.
        options: ``name``, ``provider`` and ``trusted``, as for :func:`serialize`.

    Raises:
        AliasError: If the program has aliases or donors that XLA rejects.
        InvalidInputError: If it is not exported for the platform.
        InvalidProgramError: If it is not a valid program, or has no ``main``.
        EngineError: If it has an input or a result that numpy cannot represent.
        MalformedArtifactError: If it is a damaged artifact.
        ManifestError: If it is not what its manifest says, or one is required and not there.
        ProviderError: If a dependency of the engine is not installed.
    """
    from vhlo_tools.execution import Executable, choose_executable

    with _loaded(program, engine, platform, manifest, options) as loaded:
        if engine == "auto":
            return choose_executable(loaded, handlers, in_process=in_process, timeout=timeout)
        return Executable(loaded, engine, "as requested", handlers, in_process=in_process, timeout=timeout)


@contextmanager
def _loaded(
    program: ProgramSource, engine: str, platform: str | None, manifest: ManifestChoice, options: LoadOptions
) -> Iterator[Program]:
    from vhlo_tools.program import load_program, names_in_utf8

    if not is_engine(engine):
        raise ValueError(f"{engine!r} is not an engine: expected one of {', '.join(ENGINE_CHOICES)}, or pjrt:PLUGIN")
    source = identify(program, options.get("name"))
    check_source(source, manifest).require()
    program = as_program(source, name=options.get("name"), provider=options.get("provider"))
    loaded = for_platform(load_program(program, **options), source, platform)
    with names_in_utf8(loaded.name):
        yield loaded


def _with_weights(program: ProgramSource, inputs: Sequence[Any]) -> Sequence[Any]:
    """Return the inputs, and behind them the weights of what an integration returned, if these are arguments."""
    model: Any = program
    is_model = unwrapped(program) is not program
    return [*inputs, *model.weights.values()] if is_model and len(inputs) == len(model.inputs) else inputs


#: Constants of this size become inputs of a run: a program is copied several times on its way to an engine.
_LARGE: Final = 1 << 26


def _without_constants(
    program: ProgramSource, number: int, manifest: ManifestChoice, name: str | None
) -> tuple[Artifact, list[Any]] | None:
    """Return a program whose large constants are its last inputs, and their values; ``None`` if it has none.

    ``number`` is that of the inputs: messages about a wrong one count those of the program itself.
    """
    source = identify(program, name)
    container = as_container(source)
    artifact = None if container is not None and len(container.platforms) > 1 else as_artifact(source)
    if artifact is None or len(artifact) < _LARGE:
        return None
    import ml_dtypes
    import numpy as np

    def dtype(tensor: StoredTensor) -> np.dtype[Any] | None:
        called = numpy_name(tensor.element) if tensor.form == "whole" else None
        found = np.dtype(getattr(ml_dtypes, called, called)) if called else None
        return found if found is not None and found.itemsize == tensor.size else None

    check_source(source, manifest).require()
    if not any(each.name == "main" and len(each.arguments) == number for each in artifact.inventory().functions):
        return None
    try:
        apart = externalize(artifact, min_size=_LARGE, function="main", wanted=lambda each: dtype(each) is not None)
    except InvalidInputError:
        return None  # main is called by others
    tensors = apart.tensors.values()
    data = (each.data if isinstance(each.data, memoryview) else bytes(each.data) for each in tensors)
    arrays = [np.frombuffer(part, dtype(each)).reshape(each.shape) for part, each in zip(data, tensors, strict=True)]
    return (apart.artifact, arrays) if arrays else None


def run(
    program: ProgramSource,
    inputs: Sequence[Any],
    *,
    engine: EngineChoice = "auto",
    donate: Donate = (),
    timeout: float | None = None,
    handlers: Mapping[str, Handler] | None = None,
    probe: Probe | None = None,
    platform: str | None = None,
    manifest: ManifestChoice = None,
    **options: Unpack[LoadOptions],
) -> tuple[Any, ...]:
    """Evaluate the function ``main`` of a program.

    An input is *donated* by ``donate``, or by a :class:`Buffer` with ``donate=True``. If an output is aliased with it,
    the output overwrites it: on ``reference`` in the memory of the array or of the buffer, on ``xla`` in device memory.
    The buffer is then deleted. An input that has an alias and is not donated, or that is referenced elsewhere, is
    protected by a copy. Runs of a :func:`load_executable` result report all this.

    Args:
        program: Anything that :func:`serialize` accepts. Of what an integration returned, weights that are arguments
            may be left out of the inputs.
        inputs: For each argument of ``main`` an array of its element type and shape, a tensor of torch, or a
            :class:`Buffer`; for a tuple a sequence of these. Python numbers and lists are converted to the element
            type of the argument.
        engine: ``reference`` is StableHLO's reference interpreter, ``xla`` is XLA for the CPU, ``iree`` is IREE for the
            CPU; ``pjrt:`` and the name of an installed plugin of PJRT, or the path of its library, is its first device
            here. ``auto`` selects the interpreter for small programs that it can run, and XLA otherwise; the report of
            a run states the reason.
        donate: The numbers of donated inputs; ``(number, index)`` is a part of a tuple. An array that is not a
            :class:`Buffer` is copied unless it is writable, contiguous and owns its memory.
        timeout: The time limit in seconds, by default ten minutes; ``math.inf`` for none. It counts separately for
            compilation, for the run, and on ``reference`` for each segment of a program that is stepped through.
        handlers: Functions that compute custom calls, by their targets. A handler is called with the call, a
            :class:`CustomCall`, and an array for each operand, which it must not change; it returns an array for each
            result: one alone, or a sequence.
        probe: The recorder of intermediate values, on ``reference``, which ``auto`` then selects.
        platform: For an export of jax, the platform whose program runs, by default ``cpu`` if there are several. With
            ``any`` the first input is the number of the platform.
        manifest: Which manifest the program must match, as for :func:`require`: by default the one beside its file, if
            there is one; ``True`` if one must be there.
        options: ``name``, ``provider`` and ``trusted``, as for :func:`serialize`.

    Returns:
        The results, one array for each, for a tuple a tuple. Those of ``xla`` are read-only.

    Raises:
        InvalidInputError: If the inputs do not match the program, or it is not exported for the platform.
        BufferDeletedError: If an input was donated before.
        AliasError: If the program has invalid aliases, or an input with a must-alias is not donated.
        EngineError: If the program contains something that the engine cannot run, or fails.
        EngineCrashError: If it crashes the child process that runs it.
        EngineTimeoutError: If it exceeds the time limit.
        InvalidProgramError: If it is not a valid program.
        MalformedArtifactError: If it is a damaged artifact.
        ManifestError: If it is not what its manifest says, or one is required and not there.
    """
    if not isinstance(inputs, Sequence):
        raise TypeError(
            f"inputs must be a sequence with one array for each argument, not a {type(inputs).__qualname__}"
        )
    inputs = _with_weights(program, inputs)
    if probe is not None and engine == "auto":
        engine = "reference"
    apart = _without_constants(program, len(inputs), manifest, options.get("name"))
    if apart is not None:
        program, inputs, manifest = apart[0], [*inputs, *apart[1]], False
    executable = load_executable(
        program, engine=engine, handlers=handlers, timeout=timeout, platform=platform, manifest=manifest, **options
    )
    return executable.run(inputs, donate=donate, timeout=timeout, probe=probe)


# Execution of programs on several devices in parallel


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

    running: Any = {"handlers": handlers, "in_process": in_process, "timeout": timeout}
    with _loaded(program, engine, platform, manifest, options) as loaded:
        return ParallelExecutable(loaded, engine, replicas=replicas, partitions=partitions, **running)


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
    loading: Any = {"handlers": handlers, "timeout": timeout, "platform": platform, "manifest": manifest, **options}
    executable = load_parallel_executable(program, replicas=replicas, partitions=partitions, engine=engine, **loading)
    return executable.run(inputs, timeout=timeout, probe=probe)
