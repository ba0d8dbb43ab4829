"""Recorded programs: made, and replayed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vhlo_tools.api.checking import as_artifact
from vhlo_tools.api.execution import EngineChoice, load_executable
from vhlo_tools.api.functions import serialize
from vhlo_tools.api.verification import draw_inputs

if TYPE_CHECKING:
    from vhlo_tools.golden import Record, Replayed
    from vhlo_tools.interpreter import Handler
    from vhlo_tools.program import ProgramSource
    from vhlo_tools.verification import Drawing, Tolerance

__all__ = ["check_golden", "record_golden"]


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
    force: bool = False,
    provider: str | None = None,
) -> Record:
    """Record a program with inputs and the outputs that it has now.

    Args:
        folder: The folder of records; it gets one more, of the name ``name``.
        program: Anything that :func:`serialize` takes. An artifact is kept as it is.
        inputs: Its inputs, as :func:`run` takes them; by default :func:`draw_inputs` draws them.
        name: What to call the record.
        target: The version to write a program for that is no artifact yet.
        seed: What inputs are drawn from.
        drawing: How.
        tolerance: How far floats of a replay may be from these outputs.
        engine: What it runs on, now and when it is replayed.
        handlers: Functions that compute its custom calls, as for :func:`run`; a replay needs them again.
        force: Whether a record of that name is replaced.
        provider: The bindings to use, by default the installed ones.

    Raises:
        FileExistsError: If there is a record of that name, and ``force`` is not set.
        EngineError: If it cannot be run.
        VhloToolsError: As :func:`serialize` does.
    """
    from vhlo_tools.bindings import get_provider
    from vhlo_tools.golden import write_record
    from vhlo_tools.verification import Tolerance

    artifact = as_artifact(program, None) or serialize(program, target, provider=provider)
    executable = load_executable(artifact, engine=engine, handlers=handlers, name=name, provider=provider)
    drawn = inputs if inputs is not None else draw_inputs(artifact, seed, drawing=drawing, provider=provider)
    given = executable.converted(drawn)
    library = get_provider(provider).library
    return write_record(
        Path(folder) / name,
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
    provider: str | None = None,
) -> Iterator[Replayed]:
    """Replay every record in a folder, one after the other.

    Args:
        folder: The folder of records.
        engine: What they run on, by default what they were recorded on.
        handlers: Functions that compute custom calls, as for :func:`run`.
        provider: The bindings to use, by default the installed ones.

    Raises:
        GoldenError: If there are no records, or one that cannot be read as such.
        OSError: If the folder cannot be read.
    """
    from vhlo_tools.golden import read_record, records_in, replay

    for each in records_in(Path(folder)):
        record = read_record(each)
        chosen: Any = engine or record.engine

        def run(artifact: Any, inputs: Sequence[Any], chosen: Any = chosen) -> tuple[Any, ...]:
            return load_executable(artifact, engine=chosen, handlers=handlers, provider=provider).run(inputs)

        yield replay(record, run)
