"""Programs for releases: an artifact, inputs, and the results that are expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import VhloToolsError
from vhlo_tools.execution import Executable
from vhlo_tools.records import dataclass
from vhlo_tools.verification import Drawing, draw_inputs

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a program computes.

    Attributes:
        inputs: The inputs, drawn at random.
        results: The results that :func:`vhlo_tools.run` gives for them.
    """

    inputs: tuple[Array, ...]
    results: tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class MatrixProgram:
    """A program that releases write, read and run.

    Attributes:
        name: Its name.
        artifact: The program at the oldest version that has all of it.
        evaluation: What it computes; ``None`` if it is not run.
        reason: Why it is not run.
    """

    name: str
    artifact: Artifact
    evaluation: Evaluation | None
    reason: str = ""


def evaluate(executable: Executable, drawing: Drawing) -> Evaluation:
    """Run a program on random inputs.

    Raises:
        VhloToolsError: If it cannot be run, or takes or gives something other than arrays.
    """
    inputs = draw_inputs(executable, drawing)
    results = executable.run(inputs)
    return Evaluation(_plain(inputs, "takes"), _plain(results, "gives"))


def _plain(values: Sequence[Any], verb: str) -> tuple[Array, ...]:
    if not all(isinstance(value, np.ndarray | np.generic) for value in values):
        raise VhloToolsError(f"it {verb} tuples or tokens, which are not passed to releases")
    return tuple(np.asarray(value) for value in values)
