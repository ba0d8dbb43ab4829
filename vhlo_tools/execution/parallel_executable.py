"""Programs that run on several devices at once: replicas, and partitions of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from vhlo_tools.errors import EngineError, InvalidInputError
from vhlo_tools.execution.engines import PARALLEL_ENGINES, laid_out
from vhlo_tools.execution.executable import Executable
from vhlo_tools.execution.handlers import Handler
from vhlo_tools.execution.probes import Probe
from vhlo_tools.execution.protocols import EngineName, ParallelEngine
from vhlo_tools.program import Program


class ParallelExecutable:
    """A program, loaded for several devices of an engine; ``main`` can be run any number of times.

    Args:
        program: The program.
        engine: The engine; ``auto`` selects ``xla`` for programs that XLA can run.
        replicas: The number of replicas, by default that of the program, or one.
        partitions: The number of partitions of each replica, by default that of the program or of its
            mesh, or one.
        handlers: The handlers of custom calls, by target.
        in_process: Whether XLA runs in this process, which it can crash.
        timeout: The limit in seconds of the preparation, and of runs without one of their own.

    Attributes:
        name: The name of the program in messages.
        engine: The engine that runs the program.
        why: The reason for the choice of that engine.
        replicas: The number of replicas.
        partitions: The number of partitions of each replica.
        inputs: The number of sequences of inputs of a run: one for each device, or one of unsplit values.

    Raises:
        InvalidInputError: If there are too many devices, or none.
        EngineError: If the engine cannot run the program.
        VhloToolsError: As :class:`Executable` does.
    """

    def __init__(
        self,
        program: Program,
        engine: EngineName | Literal["auto"],
        *,
        replicas: int | None = None,
        partitions: int | None = None,
        handlers: Mapping[str, Handler] | None = None,
        in_process: bool = False,
        timeout: float | None = None,
    ) -> None:
        self.name: str = program.name
        self._timeout = timeout
        grid, inputs, self._reason = laid_out(program, replicas, partitions)
        self.inputs: int = inputs
        self.replicas: int = grid.replicas
        self.partitions: int = grid.partitions
        self.engine: EngineName
        self.why: str
        self._executable = Executable(program, "xla", "on several devices", handlers)

        def made(engine: EngineName) -> ParallelEngine:
            if engine not in PARALLEL_ENGINES:
                raise EngineError(
                    f"{self.name}: the engine {engine} runs programs on one device: use the engine "
                    f"{' or '.join(PARALLEL_ENGINES)} for several"
                )
            return PARALLEL_ENGINES[engine](self._executable.flat, grid, dict(handlers or {}), in_process)

        if engine != "auto":
            self.engine, self.why, self._runner = engine, "as requested", made(engine)
            return
        self.engine, self.why, self._runner = "xla", "it runs all devices at once", made("xla")
        try:
            self.prepare()
        except EngineError as failure:
            if self.inputs != grid.size:
                raise  # only XLA splits values into parts
            self.engine, self.why, self._runner = "reference", f"XLA cannot run it: {failure}", made("reference")

    def prepare(self) -> None:
        """Prepare the first run (such as compilation), if its preparation does not depend on inputs.

        Raises:
            EngineError: If the engine cannot run the program.
        """
        if (shapes := self._executable.static_shapes) is not None:
            self._runner.prepare(shapes, self._timeout)

    def run(
        self, inputs: Sequence[Sequence[Any]], *, timeout: float | None = None, probe: Probe | None = None
    ) -> tuple[tuple[Any, ...], ...]:
        """Evaluate ``main`` on all devices in parallel.

        Args:
            inputs: The inputs of each device, or one sequence for all if the program specifies how devices share it.
            timeout: The limit in seconds, by default that of the executable, or ten minutes; on ``reference`` for each
                segment of the program.
            probe: The probe that records intermediate values, on the engine ``reference``.

        Returns:
            For each sequence of inputs the results as arrays; a tuple for a result that is a tuple.

        Raises:
            InvalidInputError: If the inputs are for another number of devices, or do not match the program.
            EngineError: If the engine cannot run the program, or fails.
            EngineTimeoutError: If a segment exceeds the time limit.
        """
        if len(inputs) != self.inputs:
            raise InvalidInputError(
                f"{self.name} requires {self.inputs} sequences of inputs ({self._reason}), got {len(inputs)}"
            )
        leaves = [self._executable.leaves_of(given) for given in inputs]
        results = self._runner.execute_parallel(leaves, self._timeout if timeout is None else timeout, probe)
        return tuple(self._executable.nested(each) for each in results)
