"""Recording and replaying of golden programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from vhlo_tools.api.conversion import serialize
from vhlo_tools.api.frontends import as_artifact
from vhlo_tools.api.running import load_executable
from vhlo_tools.api.verification import draw_inputs
from vhlo_tools.files import local_path

if TYPE_CHECKING:
    from vhlo_tools.api.running import EngineChoice
    from vhlo_tools.execution import Handler
    from vhlo_tools.program import ProgramSource
    from vhlo_tools.verification import Drawing, Record, Replayed, Tolerance


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
        inputs: Its inputs, in the form that :func:`run` accepts; by default :func:`draw_inputs` draws them.
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
    executable = load_executable(
        artifact, engine=engine, handlers=handlers, timeout=timeout, name=name, provider=provider
    )
    drawn = inputs if inputs is not None else draw_inputs(artifact, seed, drawing=drawing, provider=provider)
    given = executable.converted(drawn)
    library = get_provider(provider).library
    return write_record(
        local_path(folder, "a suite") / name,
        artifact,
        given,
        executable.run(given),
        engine=executable.engine,
        library=f"{library.name}, StableHLO {library.current}",
        tolerance=tolerance or Tolerance(),
        force=force,
    )


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
        engine: The engine, by default that of the recording.
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
        chosen: Any = engine or record.engine
        options: Any = {"handlers": handlers, "timeout": timeout, "provider": provider}
        return load_executable(artifact, engine=chosen, **options).run(inputs)

    for each in records_in(local_path(folder, "a suite")):
        yield replay_folder(each, run)
