"""Verification of programs, and golden suites."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from vhlo_tools.api.conversion import serialize
from vhlo_tools.api.frontends import as_artifact
from vhlo_tools.api.running import ANY_PLATFORM, ENGINE_CHOICES, EngineChoice, is_engine, load_executable
from vhlo_tools.errors import EngineError
from vhlo_tools.files import Kind, identify, local_path, read_snapshot, view

if TYPE_CHECKING:
    from vhlo_tools.execution import EngineName, Executable, Handler
    from vhlo_tools.program import ProgramSource
    from vhlo_tools.verification import (
        Divergence,
        Drawing,
        EngineDivergence,
        Record,
        Replayed,
        Tolerance,
        VerificationReport,
    )

# Verification that two programs compute the same results


def verify(
    before: ProgramSource,
    after: ProgramSource | None = None,
    inputs: Sequence[Any] | None = None,
    seed: int = 0,
    *,
    rounds: int | None = None,
    drawing: Drawing | None = None,
    tolerance: Tolerance | None = None,
    engine: EngineChoice = "auto",
    engines: Sequence[EngineName] | None = None,
    handlers: Mapping[str, Handler] | None = None,
    bisect: bool = False,
    timeout: float | None = None,
    names: tuple[str | None, str | None] = (None, None),
    provider: str | None = None,
    trusted: bool = False,
) -> VerificationReport:
    """Run two programs on the same inputs, and compare their outputs; or one program on several engines.

    Programs with aliases are run a second time, with every aliased input donated. Differences that the specification
    leaves open for these inputs, and those of subnormal numbers, which XLA takes as zero, are said by name and do not
    count: ``explained`` of the comparison has the reason.

    Args:
        before: The program with the expected outputs: anything that :func:`serialize` accepts.
        after: The program with the outputs to compare; ``None`` to compare ``engines`` on the first.
        inputs: The inputs, in the form that :func:`run` accepts; by default :func:`draw_inputs` draws them.
        seed: The seed for drawing inputs. The same seed draws the same inputs.
        rounds: The number of sets of inputs to draw, from consecutive seeds, of several scales, with edge cases among
            them; by default as many of 256 as take two seconds, up to the first with another result.
        drawing: The settings for drawing inputs; ``seed`` replaces their seed.
        tolerance: The maximum distance between floats, by default four units in the last place.
        engine: The engine for both programs, as for :func:`run`.
        engines: Several engines, in place of ``engine``. Both programs run on each, with the same inputs, and
            ``on_engines`` of the report has what each says, where they disagree on one program, and which of three or
            more stands alone. An engine that cannot run them is listed with the reason.
        handlers: Functions that compute custom calls of both, as for :func:`run`.
        bisect: Whether to find the first op whose results differ, if any, on the reference interpreter; for one
            program, the op up to which two engines agree, and on whose result they do not.
        timeout: The limit in seconds of each run, as for :func:`run`.
        names: The names of the programs in messages, by default their paths.
        provider: The bindings to use, by default the installed ones.
        trusted: Whether MLIR may parse bytes directly in this process, as for :func:`serialize`.

    Returns:
        The report, with ``passed`` and, as text, the comparisons.

    Raises:
        VerificationError: If the programs have different inputs.
        InvalidInputError: If the inputs do not match the programs.
        EngineError: If one of the programs cannot be run; EngineTimeoutError if a run exceeds its limit.
        AliasError: If one of them has invalid aliases.
        InvalidProgramError: If one of them is not a valid program.
        MalformedArtifactError: If one of them is a damaged artifact.
        MissingExtraError: If an engine is not installed.
        ValueError: If there are engines that do not exist, or fewer than two different ones, or one program without
            ``engines``.
    """
    import numpy as np

    from vhlo_tools.verification import (
        Drawing,
        Tolerance,
        draw_inputs as draw,
        drawings,
        find_divergence,
        find_engine_divergence,
        verify_executables,
        verify_on_engines,
    )

    loading: Any = {"handlers": handlers, "timeout": timeout, "provider": provider, "trusted": trusted}
    # An artifact does not say for which platforms it was exported.
    loading["platform"] = ANY_PLATFORM

    sources = (before,) if after is None else (before, after)
    if after is None and engines is None:
        raise ValueError("one program is compared between engines: give engines, or a second program")

    def loaded(engine: EngineChoice) -> tuple[Executable, ...]:
        return tuple(
            load_executable(each, engine=engine, name=name, **loading)
            for each, name in zip(sources, names, strict=False)
        )

    if engines is not None:
        check_engines(engines)
        # Of all engines the interpreter needs no compilation, and its executables are used for drawing and searching.
        executables = loaded("reference")
    else:
        executables = loaded(engine)
        if len({each.engine for each in executables}) > 1:
            # Different engines differ in the last bits.
            executables = loaded("xla")
    sets: dict[str, Sequence[Any]] = {}

    def given() -> Iterator[tuple[str, Sequence[Any]]]:
        if inputs is not None:
            sets["given"] = inputs
            yield "given", inputs
            return
        for name, each in drawings(replace(drawing or Drawing(), seed=seed), rounds):
            sets[name] = draw(executables[0], each)
            yield name, sets[name]

    tolerance = tolerance or Tolerance()
    # Handlers of custom calls compute with edge cases too.
    with np.errstate(all="ignore"):
        if engines is None:
            report = verify_executables(
                executables[0], executables[-1], given(), tolerance, until_failure=rounds is None
            )
        else:
            tried: dict[str, tuple[Executable, ...] | str] = {each: _loaded_or_reason(loaded, each) for each in engines}
            report = verify_on_engines(tried, given(), tolerance, until_failure=rounds is None)
    if report.passed or not bisect:
        return report
    divergence: Divergence | EngineDivergence | None
    if after is None and report.on_engines is not None:
        found = next(each for each in report.on_engines.disagreements if not each.explained)
        pair: Any = next(iter(found.differing))
        divergence = find_engine_divergence(executables[0], pair, sets[found.inputs], tolerance, handlers, timeout)
    else:
        failed = next(each.inputs for each in report.rounds if not each.passed)
        if executables[0].engine != "reference":
            executables = loaded("reference")
        divergence = find_divergence(executables[0], executables[-1], sets[failed], tolerance)
    return replace(report, divergence=divergence, looked_for_divergence=True)


def check_engines(engines: Sequence[str]) -> None:
    """Raise ``ValueError`` unless these are two or more different engines."""
    known = [*(each for each in ENGINE_CHOICES if each != "auto"), "pjrt:PLUGIN"]
    unknown = [each for each in engines if each == "auto" or not is_engine(each)]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not an engine: expected some of {', '.join(known)}")
    if len(set(engines)) < max(len(engines), 2):
        raise ValueError(
            f"engines are compared with each other: expected two or more different ones of {', '.join(known)}"
        )


def _loaded_or_reason(
    load: Callable[[EngineChoice], tuple[Executable, ...]], engine: EngineName
) -> tuple[Executable, ...] | str:
    """Return executables on an engine, compiled where that needs no inputs, or why it cannot run one of them."""
    try:
        executables = load(engine)
        for each in executables:
            each.prepare()
        return executables
    except EngineError as error:
        return str(error)


def draw_inputs(
    program: ProgramSource,
    seed: int = 0,
    *,
    drawing: Drawing | None = None,
    name: str | None = None,
    provider: str | None = None,
    trusted: bool = False,
) -> tuple[Any, ...]:
    """Return inputs for ``main`` of a program, drawn from a seed.

    Floats are mostly normally distributed, integers small; inputs of ops with a restricted domain are within it: roots
    and logarithms get positive numbers, divisions no zeros, gathers and slices valid indices, Cholesky definite
    matrices.

    Args:
        program: Anything that :func:`serialize` accepts.
        seed: The seed; the same seed draws the same inputs.
        drawing: The settings for drawing inputs; ``seed`` replaces their seed.
        name: The name of the program in messages, by default its path.
        provider: The bindings to use, by default those of the module, or the installed ones.
        trusted: Whether MLIR may parse bytes directly in this process, as for :func:`serialize`.

    Raises:
        InvalidProgramError: If it is not a valid program, or has no ``main``.
        EngineError: If it has an input that numpy cannot represent.
        MalformedArtifactError: If it is a damaged artifact.
    """
    from vhlo_tools.verification import Drawing, draw_inputs as draw

    executable = load_executable(program, engine="reference", name=name, provider=provider, trusted=trusted)
    return draw(executable, replace(drawing or Drawing(), seed=seed))


# Recording and replaying of golden programs


def record_golden(
    folder: str | PathLike[str],
    program: ProgramSource,
    inputs: Sequence[Any] | None = None,
    *,
    name: str,
    target: str = "current",
    seed: int = 0,
    drawing: Drawing | None = None,
    tolerance: Tolerance | None = None,
    engine: EngineChoice = "auto",
    handlers: Mapping[str, Handler] | None = None,
    timeout: float | None = None,
    force: bool = False,
    provider: str | None = None,
) -> Record:
    """Record a program with inputs and its current outputs.

    Args:
        folder: The folder of records; the new record is a subfolder ``name``.
        program: Anything that :func:`serialize` accepts. An artifact is stored unchanged.
        inputs: Its inputs, in the form that :func:`run` accepts; by default :func:`draw_inputs` draws them. Of an
            ``HloSnapshot``, which XLA dumps with the values of a run, the default is these: both inputs and outputs.
        name: The name of the record.
        target: The target version for programs that are not artifacts.
        seed: The seed for drawing inputs.
        drawing: The settings for drawing inputs.
        tolerance: The maximum distance between floats of a replay and of the recorded outputs.
        engine: The engine for recording and for replaying.
        handlers: Functions that compute its custom calls, as for :func:`run`; a replay needs them again.
        timeout: The limit in seconds of the run, as for :func:`run`.
        force: Whether an existing record of that name is replaced.
        provider: The bindings to use, by default the installed ones.

    Raises:
        FileExistsError: If there is a record of that name, and ``force`` is not set.
        EngineError: If the program cannot be run.
        VhloToolsError: As :func:`serialize` does.
    """
    from vhlo_tools.bindings import get_provider
    from vhlo_tools.verification import Tolerance, write_record

    artifact = as_artifact(program, None) or serialize(program, target, provider=provider)
    running: Any = {"engine": engine, "handlers": handlers, "timeout": timeout, "provider": provider}
    executable = load_executable(artifact, name=name, **running)
    library = get_provider(provider).library
    given, outputs, made_by = _values_in(program) if inputs is None else (None, None, "")
    if given is None:
        drawn = inputs if inputs is not None else draw_inputs(artifact, seed, drawing=drawing, provider=provider)
        given = executable.converted(drawn)
    if outputs is None:
        outputs, made_by = executable.run(given), f"{library.name}, StableHLO {library.current}"
    return write_record(
        local_path(folder, "a suite") / name,
        artifact,
        given,
        outputs,
        engine=executable.engine,
        library=made_by,
        tolerance=tolerance or Tolerance(),
        force=force,
    )


def _values_in(program: ProgramSource) -> tuple[tuple[Any, ...] | None, tuple[Any, ...] | None, str]:
    """Return the inputs and the outputs in a snapshot of XLA, and what computed these."""
    source = identify(program)
    found = read_snapshot(view(source.data)) if source.kind is Kind.HLO_PROTO and source.data is not None else None
    if found is None:
        return None, None, ""
    values = load_executable(found.constants, name=f"the values in {source.name}").run([])
    inputs, outputs = values[: found.arguments], values[found.arguments :]
    return inputs, outputs if found.has_result else None, f"XLA for {found.platform}, in its snapshot"


def check_golden(
    folder: str | PathLike[str],
    *,
    engine: EngineChoice | None = None,
    handlers: Mapping[str, Handler] | None = None,
    timeout: float | None = None,
    provider: str | None = None,
) -> Iterator[Replayed]:
    """Replay every record in a folder, one after the other.

    Args:
        folder: The folder of records.
        engine: The engine, by default that of the recording, unless it is a plugin: name one that you trust.
        handlers: Functions that compute custom calls, as for :func:`run`.
        timeout: The limit in seconds of each run, as for :func:`run`.
        provider: The bindings to use, by default the installed ones.

    Yields:
        The outcome of each record. A record that cannot be read is an outcome too, and does not stop the others.

    Raises:
        GoldenError: If there are no records.
        OSError: If the folder cannot be read.
    """
    from vhlo_tools.verification import records_in, replay_folder

    def run(record: Record, artifact: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
        if engine is None and record.engine not in ENGINE_CHOICES:
            # A plugin is code, and the record may be from elsewhere.
            raise EngineError(
                f"{record.folder} was made on the engine {record.engine}, which no record chooses: choose one that you "
                f"trust (engine=, --engine)"
            )
        chosen = engine or record.engine
        loading: Any = {"handlers": handlers, "timeout": timeout, "provider": provider}
        return load_executable(artifact, engine=chosen, **loading).run(inputs)

    for each in records_in(local_path(folder, "a suite")):
        yield replay_folder(each, run)
