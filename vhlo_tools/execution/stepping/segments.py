"""Segments: consecutive ops of a block, which the engine evaluates together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vhlo_tools.bindings import Operation, source_of
from vhlo_tools.errors import EngineCrashError, EngineError, EngineTimeoutError
from vhlo_tools.execution.stepping.kernels import Kernel, Kernels
from vhlo_tools.execution.stepping.segment_evaluation import Evaluate
from vhlo_tools.execution.stepping.steps import Device, Frame, Immediate, Keys
from vhlo_tools.program import place_of


class Segment(Immediate):
    """``key_of`` returns the number of a value; ``results`` are the values that other steps need."""

    def __init__(self, kernels: Kernels, key_of: Callable[[Any], int], ops: Sequence[Operation], name: str) -> None:
        self._kernels = kernels
        self._key_of = key_of
        self._ops = ops
        self._name = name
        self._kernel: Kernel | None = None
        self.operands: Keys = ()
        self.results: Keys = ()

    def prepare(self, needed: Callable[[int], bool]) -> None:
        outputs = [value for op in self._ops for value in op.results if needed(self._key_of(value))]
        self._kernel, self.operands, self.results = self._made(self._ops, outputs)

    def take(self, device: Device, frame: Frame) -> None:
        """Errors of a crash or a timeout name the op."""
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
        """The op is found by bisection: each part succeeds, or fails."""
        ops, values, error_type = self._ops, dict(frame), type(error)
        try:
            while len(ops) > 1:
                first, rest = ops[: len(ops) // 2], ops[len(ops) // 2 :]
                ops = rest if self._succeeds(first, evaluate, values, error_type) else first
            if len(self._ops) > 1 and self._succeeds(ops, evaluate, values, error_type):
                return error  # each part succeeds alone: the cause is their combination
        except (EngineCrashError, EngineTimeoutError):
            return error  # another failure than that of the segment, such as of a slow process start, is inconclusive
        (op,) = ops
        place = place_of(source_of(op.location), self._name) or self._name
        what = f"{op.name} at {place}"
        if isinstance(error, EngineTimeoutError):
            return EngineTimeoutError(
                f"{place}: {op.name} exceeds the time limit: {error}", seconds=error.seconds, op=what
            )
        return EngineCrashError(
            f"{place}: {op.name}: {error}",
            signal=error.signal,
            exit_code=error.exit_code,
            op=what,
            output=error.output,
        )

    def _succeeds(
        self, ops: Sequence[Operation], evaluate: Evaluate, values: Frame, error_type: type[EngineError]
    ) -> bool:
        """Adds the results to ``values``."""
        kernel, inputs, outputs = self._made(ops, [value for op in ops for value in op.results])
        try:
            found = kernel.run(evaluate, [values[key] for key in inputs])
        except error_type:
            return False
        values.update(zip(outputs, found, strict=True))
        return True
