"""What the engine knows nothing of, as steps: handlers, probes, and which device it is."""

# ruff: noqa: D102 - the members are those of a step, and documented there

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vhlo_tools.errors import EngineError, VhloToolsError
from vhlo_tools.interpreter.driver.steps import Device, Frame, Immediate, Keys
from vhlo_tools.interpreter.handlers import CustomCall, Handler, checked_results
from vhlo_tools.interpreter.probing import ProbeSite
from vhlo_tools.interpreter.values import TokenType, TupleType, ValueType

__all__ = ["Emit", "HandlerCall", "Identify"]


@dataclass(frozen=True, slots=True)
class Emit(Immediate):
    """A value is given to the probe."""

    site: ProbeSite
    operands: Keys
    results: Keys = ()

    def take(self, device: Device, frame: Frame) -> None:
        device.emit(self.site, tuple(device.iterations), frame[self.operands[0]], device.number)


@dataclass(frozen=True, slots=True)
class HandlerCall(Immediate):
    """A custom call that a handler computes.

    Attributes:
        call: The call.
        handler: The handler.
        operands: Those of the call that are no tokens.
        results: Those of the call that are no tokens.
        kinds: The types of these.
        tokens: Those that are.
    """

    call: CustomCall
    handler: Handler
    operands: Keys
    results: Keys
    kinds: tuple[ValueType, ...]
    tokens: Keys

    def take(self, device: Device, frame: Frame) -> None:
        arrays = [each for key in self.operands for each in _shown(frame[key])]
        try:
            returned = self.handler(self.call, *arrays)
        except VhloToolsError:
            raise
        except Exception as error:
            raise EngineError(f"{self.call}: its handler raised {type(error).__name__}: {error}") from error
        # The handler may have returned what it was given, or may use the memory again.
        leaves = iter([each.copy() for each in checked_results(self.call, returned)])
        frame.update(zip(self.results, [_nested(kind, leaves) for kind in self.kinds], strict=True))
        frame.update(dict.fromkeys(self.tokens))


@dataclass(frozen=True, slots=True)
class Identify(Immediate):
    """The number of the replica or of the partition that a device is."""

    of_replica: bool
    results: Keys
    operands: Keys = ()

    def take(self, device: Device, frame: Frame) -> None:
        frame[self.results[0]] = np.asarray(device.replica if self.of_replica else device.partition, np.uint32)


def _shown(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays of a value, those in tuples one by one, such that a handler cannot change them."""
    if isinstance(value, tuple):
        for each in value:
            yield from _shown(each)
    elif value is not None:
        view = np.asarray(value).view()
        view.flags.writeable = False
        yield view


def _nested(kind: ValueType, leaves: Iterator[np.ndarray[Any, Any]]) -> Any:
    """Return a value of a type, made of the next leaves."""
    if isinstance(kind, TupleType):
        return tuple(_nested(part, leaves) for part in kind.parts)
    return None if isinstance(kind, TokenType) else next(leaves)
