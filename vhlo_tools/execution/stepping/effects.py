"""Steps that Python computes: handlers, probes, and the numbers of devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from vhlo_tools.errors import EngineError, VhloToolsError
from vhlo_tools.execution.handlers import CustomCall, Handler, checked_results
from vhlo_tools.execution.probes.probes import ProbeSite
from vhlo_tools.execution.stepping.steps import Device, Frame, Immediate, Keys
from vhlo_tools.execution.values.arrays import TokenType, TupleType, ValueType
from vhlo_tools.records import dataclass


@dataclass(frozen=True, slots=True)
class Emit(Immediate):
    """The recording of a value by the probe."""

    site: ProbeSite
    operands: Keys
    results: Keys = ()

    def take(self, device: Device, frame: Frame) -> None:
        device.emit(self.site, tuple(device.iterations), frame[self.operands[0]], device.number)


@dataclass(frozen=True, slots=True)
class HandlerCall(Immediate):
    call: CustomCall
    handler: Handler
    operands: Keys  # without tokens
    results: Keys  # without tokens
    types: tuple[ValueType, ...]
    tokens: Keys  # the results that are tokens

    def take(self, device: Device, frame: Frame) -> None:
        arrays = [each for key in self.operands for each in _shown(frame[key])]
        try:
            returned = self.handler(self.call, *arrays)
        except VhloToolsError:
            raise
        except Exception as error:
            raise EngineError(f"{self.call}: its handler raised {type(error).__name__}: {error}") from error
        # The handler may have returned its operands, or may reuse the memory.
        leaves = iter([each.copy() for each in checked_results(self.call, returned)])
        frame.update(zip(self.results, [_nested(type_, leaves) for type_ in self.types], strict=True))
        frame.update(dict.fromkeys(self.tokens))


@dataclass(frozen=True, slots=True)
class Identify(Immediate):
    """The number of the replica or of the partition of a device."""

    of_replica: bool
    results: Keys
    operands: Keys = ()

    def take(self, device: Device, frame: Frame) -> None:
        frame[self.results[0]] = np.asarray(device.replica if self.of_replica else device.partition, np.uint32)


def _shown(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Read-only views for a handler, elements of tuples separately."""
    if isinstance(value, tuple):
        for each in value:
            yield from _shown(each)
    elif value is not None:
        view = np.asarray(value).view()
        view.flags.writeable = False
        yield view


def _nested(type_: ValueType, leaves: Iterator[np.ndarray[Any, Any]]) -> Any:
    if isinstance(type_, TupleType):
        return tuple(_nested(part, leaves) for part in type_.parts)
    return None if isinstance(type_, TokenType) else next(leaves)
