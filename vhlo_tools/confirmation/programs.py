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
    inputs: tuple[Array, ...]  # drawn at random
    results: tuple[Array, ...]  # as vhlo_tools.run gives them


@dataclass(frozen=True, slots=True)
class MatrixProgram:
    name: str
    artifact: Artifact  # at the oldest version that has all of it
    evaluation: Evaluation | None  # None if the program is not run
    reason: str = ""  # why it is not run


def evaluate(executable: Executable, drawing: Drawing) -> Evaluation:
    """Programs that take or give something other than arrays are refused."""
    inputs = draw_inputs(executable, drawing)
    results = executable.run(inputs)
    return Evaluation(_plain(inputs, "takes"), _plain(results, "gives"))


def _plain(values: Sequence[Any], verb: str) -> tuple[Array, ...]:
    if not all(isinstance(value, np.ndarray | np.generic) for value in values):
        raise VhloToolsError(f"it {verb} tuples or tokens, which are not passed to releases")
    return tuple(np.asarray(value) for value in values)
