"""A record replayed: its artifact is read and run by today's library, and its outputs are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import VhloToolsError
from vhlo_tools.golden.record import Record
from vhlo_tools.verification import Comparison, compare_outputs

__all__ = ["Replayed", "replay"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay showed.

    Attributes:
        record: The record.
        outputs: How each output compares with what it was.
        problem: Why it could not be replayed, if it could not.
    """

    record: Record
    outputs: tuple[Comparison, ...] = ()
    problem: str | None = None

    @property
    def passed(self) -> bool:
        """Whether the outputs are what they were."""
        return self.problem is None and all(each.passed for each in self.outputs)

    def __str__(self) -> str:
        name = f"{self.record.name} (StableHLO {self.record.stablehlo}, recorded with {self.record.library})"
        if self.problem is not None:
            return f"{name}: {self.problem}"
        lines = [f"{name}: {'as recorded' if self.passed else 'differs'}"]
        lines += [f"  {each}" for each in self.outputs if not each.passed]
        return "\n".join(lines)


def replay(record: Record, run: Callable[[Artifact, Sequence[Any]], tuple[Any, ...]]) -> Replayed:
    """Run the artifact of a record on its inputs.

    Args:
        record: The record.
        run: Runs an artifact on inputs.

    Returns:
        What it showed; an artifact that cannot be read or run is a problem of it, and raises nothing.
    """
    try:
        outputs = run(record.artifact(), record.values(record.inputs))
        return Replayed(record, compare_outputs(outputs, record.values(record.outputs), record.tolerance))
    except (VhloToolsError, OSError) as error:
        return Replayed(record, problem=str(error))
