"""Segments: ops of a block, one after the other, that the engine evaluates at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vhlo_tools.bindings import Operation, source_of
from vhlo_tools.errors import EngineCrashError, EngineError, EngineTimeoutError
from vhlo_tools.interpreter.driver.evaluation import Evaluate
from vhlo_tools.interpreter.driver.kernels import Kernel, Kernels
from vhlo_tools.interpreter.driver.steps import Device, Frame, Immediate, Keys
from vhlo_tools.program import place_of

__all__ = ["Segment"]


class Segment(Immediate):
    """A segment, as a step.

    Args:
        kernels: What makes kernels of ops.
        key_of: Gives the numbers of values.
        ops: Its ops.
        name: What to call the program in messages.

    Attributes:
        operands: The values that it takes.
        results: The values that are needed of it.
    """

    def __init__(self, kernels: Kernels, key_of: Callable[[Any], int], ops: Sequence[Operation], name: str) -> None:
        self._kernels = kernels
        self._key_of = key_of
        self._ops = ops
        self._name = name
        self._kernel: Kernel | None = None
        self.operands: Keys = ()
        self.results: Keys = ()

    def prepare(self, needed: Callable[[int], bool]) -> None:
        """Make what is evaluated.

        Args:
            needed: Tells which values something else needs.

        Raises:
            EngineError: Naming an op that the interpreter cannot run, and where it stands.
        """
        outputs = [value for op in self._ops for value in op.results if needed(self._key_of(value))]
        self._kernel, self.operands, self.results = self._made(self._ops, outputs)

    def take(self, device: Device, frame: Frame) -> None:
        """Evaluate it (see :meth:`Immediate.take`).

        Raises:
            EngineCrashError: Naming the op that the interpreter died of.
            EngineTimeoutError: Naming the op that took too long.
        """
        if self.results:
            assert self._kernel is not None
            values = [frame[key] for key in self.operands]
            try:
                found = self._kernel.run(device.evaluate, values)
            except (EngineCrashError, EngineTimeoutError) as error:
                raise self._named(error, device.evaluate, frame) from error
            frame.update(zip(self.results, found, strict=True))

    def _made(self, ops: Sequence[Operation], outputs: Sequence[Any]) -> tuple[Kernel, Keys, Keys]:
        kernel, inputs = self._kernels.of_ops(ops, outputs)
        return kernel, tuple(map(self._key_of, inputs)), tuple(map(self._key_of, outputs))

    def _named(self, error: EngineCrashError | EngineTimeoutError, evaluate: Evaluate, frame: Frame) -> EngineError:
        """Return the error with the op that it came from, which is found by halves: each lives, or dies."""
        ops, values, kind = self._ops, dict(frame), type(error)
        try:
            while len(ops) > 1:
                first, rest = ops[: len(ops) // 2], ops[len(ops) // 2 :]
                ops = rest if self._survives(first, evaluate, values, kind) else first
            if len(self._ops) > 1 and self._survives(ops, evaluate, values, kind):
                return error  # each part alone does well: it is all of it together
        except (EngineCrashError, EngineTimeoutError):
            return (
                error  # what ends otherwise than all of it, such as in a process that is slow to start, tells nothing
            )
        (op,) = ops
        place = place_of(source_of(op.location), self._name) or self._name
        what = f"{op.name} at {place}"
        if isinstance(error, EngineTimeoutError):
            return EngineTimeoutError(f"{place}: {op.name} takes too long: {error}", seconds=error.seconds, op=what)
        return EngineCrashError(
            f"{place}: {op.name}: {error}",
            signal=error.signal,
            exit_code=error.exit_code,
            op=what,
            output=error.output,
        )

    def _survives(self, ops: Sequence[Operation], evaluate: Evaluate, values: Frame, kind: type[EngineError]) -> bool:
        """Tell whether ops can be evaluated without an error of a kind, and add what they give to ``values``."""
        kernel, inputs, outputs = self._made(ops, [value for op in ops for value in op.results])
        try:
            found = kernel.run(evaluate, [values[key] for key in inputs])
        except kind:
            return False
        values.update(zip(outputs, found, strict=True))
        return True
