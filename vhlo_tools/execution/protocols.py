"""Protocols of engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np

from vhlo_tools.execution.donation import Aliased, Buffer
from vhlo_tools.execution.probes import Probe

#: Beside these, ``pjrt:`` and the name or path of a plugin.
EngineName = Literal["reference", "xla", "iree"] | str
#: The leaves of inputs; ``None`` for a token.
Values = Sequence[Buffer | None]
#: The results, and which of them were written over which inputs.
Ran = tuple[list[Buffer | None], Sequence[Aliased]]


class Engine(Protocol):
    """A program, loaded for an engine."""

    def prepare(self, shapes: Sequence[tuple[int, ...]], timeout: float | None = None) -> None:
        """Prepare the first run; ``timeout`` is in seconds, by default ten minutes."""

    def call(self, arrays: Sequence[np.ndarray[Any, Any]], timeout: float | None) -> list[np.ndarray[Any, Any] | None]:
        """The fast path: inputs are contiguous, in native byte order, and no tokens; none is overwritten."""

    def execute(self, arguments: Values, aliased: Sequence[Aliased], timeout: float | None, probe: Probe | None) -> Ran:
        """Inputs that are overwritten are deleted; ``aliased`` is returned with the reasons for actual copies."""


class ParallelEngine(Protocol):
    """A program, loaded for several devices of an engine."""

    def prepare(self, shapes: Sequence[tuple[int, ...]], timeout: float | None = None) -> None:
        """Prepare the first run; ``timeout`` is in seconds, by default ten minutes."""

    def execute_parallel(
        self, inputs: Sequence[Sequence[Any]], timeout: float | None, probe: Probe | None
    ) -> tuple[tuple[Any, ...], ...]:
        """Device ``r * partitions + p`` is partition ``p`` of replica ``r``; ``reference`` limits each segment."""
