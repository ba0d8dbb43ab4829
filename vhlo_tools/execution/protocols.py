"""Protocols of engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np

from vhlo_tools.execution.donation.buffers import Buffer
from vhlo_tools.execution.donation.donation import Aliased
from vhlo_tools.execution.probes.probes import Probe

EngineName = Literal["reference", "xla", "iree"]
#: The leaves of inputs; ``None`` for a token.
Values = Sequence[Buffer | None]
#: The results, and which of them were written over which inputs.
Ran = tuple[list[Buffer | None], Sequence[Aliased]]


class Engine(Protocol):
    """A program, loaded for an engine."""

    def prepare(self, shapes: Sequence[tuple[int, ...]], timeout: float | None = None) -> None:
        """Prepare the first run with inputs of the given shapes.

        Args:
            shapes: The shapes.
            timeout: The limit in seconds, by default ten minutes.

        Raises:
            EngineError: If the engine cannot run the program.
        """

    def call(self, arrays: Sequence[np.ndarray[Any, Any]], timeout: float | None) -> list[np.ndarray[Any, Any] | None]:
        """Run the program on arrays that need no conversion, and overwrite none: the fast path.

        Args:
            arrays: The inputs, contiguous and in the machine's byte order; none is a token.
            timeout: The limit in seconds, by default ten minutes.

        Returns:
            The results, ``None`` for a token.

        Raises:
            EngineError: If the engine cannot run the program, or fails.
            EngineTimeoutError: If the run exceeds the time limit.
        """

    def execute(self, arguments: Values, aliased: Sequence[Aliased], timeout: float | None, probe: Probe | None) -> Ran:
        """Run the program.

        Args:
            arguments: The inputs, ``None`` for a token. Inputs that are overwritten lose their memory to a result, and
                are deleted.
            aliased: The results that are written over inputs, or over copies of inputs.
            timeout: The limit in seconds, by default ten minutes.
            probe: The probe that records intermediate values.

        Returns:
            The results, in new buffers, and ``aliased`` with the reasons for actual copies.

        Raises:
            EngineError: If the engine cannot run the program, or fails.
            EngineTimeoutError: If the run exceeds the time limit.
        """


class ParallelEngine(Protocol):
    """A program, loaded for several devices of an engine."""

    def prepare(self, shapes: Sequence[tuple[int, ...]], timeout: float | None = None) -> None:
        """Prepare the first run with inputs of the given shapes.

        Args:
            shapes: The shapes.
            timeout: The limit in seconds, by default ten minutes.

        Raises:
            EngineError: If the engine cannot run the program.
        """

    def execute_parallel(
        self, inputs: Sequence[Sequence[Any]], timeout: float | None, probe: Probe | None
    ) -> tuple[tuple[Any, ...], ...]:
        """Run the program.

        Args:
            inputs: For each device the leaves of its inputs as arrays, ``None`` for a token; device
                ``r * partitions + p`` is partition ``p`` of replica ``r``.
            timeout: The limit in seconds, by default ten minutes; on ``reference`` for each segment.
            probe: The probe that records intermediate values.

        Returns:
            The leaves of the results of each device, in the same form.

        Raises:
            EngineError: If the engine cannot run the program, or fails.
            EngineTimeoutError: If a segment exceeds the time limit.
        """
