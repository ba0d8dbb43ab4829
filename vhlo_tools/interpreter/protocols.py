"""What an engine is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np

from vhlo_tools.interpreter.buffers import Buffer
from vhlo_tools.interpreter.donation import Aliased
from vhlo_tools.interpreter.probing import Probe

__all__ = ["Engine", "EngineName", "ParallelEngine", "Ran", "Values"]

EngineName = Literal["reference", "xla"]
#: The leaves of inputs, ``None`` for a token.
Values = Sequence[Buffer | None]
#: The results, and which of them were written over which inputs.
Ran = tuple[list[Buffer | None], Sequence[Aliased]]


class Engine(Protocol):
    """A program, ready to be run by an engine."""

    def prepare(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Do what the first run with inputs of some shapes would have to wait for.

        Raises:
            EngineError: If the engine cannot run the program.
        """

    def call(self, arrays: Sequence[np.ndarray[Any, Any]], timeout: float | None) -> list[np.ndarray[Any, Any] | None]:
        """Run it on arrays that are just what it takes, and write over none: the short way, with as little as may be.

        Args:
            arrays: The inputs, contiguous and in the machine's byte order; none is a token.
            timeout: How many seconds it may take, if the engine can be ended.

        Returns:
            The results, ``None`` for a token.

        Raises:
            EngineError: If the engine cannot run it, or fails.
            EngineTimeoutError: If it takes longer than it may.
        """

    def execute(self, arguments: Values, aliased: Sequence[Aliased], timeout: float | None, probe: Probe | None) -> Ran:
        """Run it.

        Args:
            arguments: The inputs, ``None`` for a token. Those that are to be written over lose their memory to a
                result, and are deleted.
            aliased: Which results are written over which inputs, or over copies of them.
            timeout: How many seconds it may take, if the engine can be ended.
            probe: What keeps intermediate values.

        Returns:
            The results, in buffers of their own, and ``aliased`` as it came to pass.

        Raises:
            EngineError: If the engine cannot run it, or fails.
            EngineTimeoutError: If it takes longer than it may.
        """


class ParallelEngine(Protocol):
    """A program, ready to be run by several devices at once."""

    def prepare(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Do what the first run with inputs of some shapes would have to wait for.

        Raises:
            EngineError: If the engine cannot run the program.
        """

    def execute_parallel(
        self, inputs: Sequence[Sequence[Any]], timeout: float | None, probe: Probe | None
    ) -> tuple[tuple[Any, ...], ...]:
        """Run it.

        Args:
            inputs: For each device the leaves of its inputs as arrays, ``None`` for a token; device
                ``r * partitions + p`` is partition ``p`` of replica ``r``.
            timeout: How many seconds each segment may take, if the engine can be ended.
            probe: What keeps intermediate values.

        Returns:
            The leaves of the results of each device, in the same form.

        Raises:
            EngineError: If the engine cannot run it, or fails.
            EngineTimeoutError: If it takes longer than it may.
        """
