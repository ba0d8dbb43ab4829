"""Replaying of records: the artifact is run with the installed library, and its outputs are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import GoldenError, VhloToolsError
from vhlo_tools.golden.record import Record, read_record
from vhlo_tools.records import dataclass
from vhlo_tools.verification import Comparison, compare_outputs


@dataclass(frozen=True, slots=True)
class Replayed:
    """The outcome of a replay.

    Attributes:
        record: The record.
        outputs: The comparison of each output with the recorded one.
        problem: The reason why the record could not be replayed, if so.
        readable: Whether the record itself could be read.
    """

    record: Record
    outputs: tuple[Comparison, ...] = ()
    problem: str | None = None
    readable: bool = True

    @property
    def passed(self) -> bool:
        """Whether all outputs match the recorded ones."""
        return self.problem is None and all(each.passed for each in self.outputs)

    def __str__(self) -> str:
        name = self.record.name
        if self.record.stablehlo:
            name = f"{name} (StableHLO {self.record.stablehlo}, recorded with {self.record.library})"
        if self.problem is not None:
            return f"{name}: {self.problem}"
        lines = [f"{name}: {'as recorded' if self.passed else 'differs'}"]
        lines += [f"  {each}" for each in self.outputs if not each.passed]
        return "\n".join(lines)


def replay(record: Record, run: Callable[[Artifact, Sequence[Any]], tuple[Any, ...]]) -> Replayed:
    """Problems are part of the outcome, and not raised."""
    try:
        outputs = run(record.artifact(), record.values(record.inputs))
        return Replayed(record, compare_outputs(outputs, record.values(record.outputs), record.tolerance))
    except (GoldenError, OSError) as error:
        return Replayed(record, problem=str(error), readable=False)
    except VhloToolsError as error:
        return Replayed(record, problem=str(error))
    except MemoryError:
        return Replayed(record, problem="there is not enough memory for it")
    except (ValueError, TypeError) as error:
        # Such as arrays of other shapes than the program has.
        return Replayed(record, problem=str(error))


def replay_folder(folder: Path, run: Callable[[Record, Artifact, Sequence[Any]], tuple[Any, ...]]) -> Replayed:
    """A record that cannot be read is an outcome too, and nothing is raised."""
    try:
        record = read_record(folder)
    except (GoldenError, OSError) as error:
        return Replayed(Record.unreadable(folder), problem=str(error), readable=False)
    return replay(record, partial(run, record))
