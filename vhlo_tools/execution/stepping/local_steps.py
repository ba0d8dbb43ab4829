"""Steps on one device: handlers, probes, bodies with host ops, calls, loops and branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import CALLEES, Module, Operation, Provider, functions_of
from vhlo_tools.errors import EngineError, VhloToolsError
from vhlo_tools.execution.handlers import CustomCall, Handler, checked_results
from vhlo_tools.execution.op_traits import ops_where
from vhlo_tools.execution.probes import ProbeSite
from vhlo_tools.execution.stepping.steps import Device, DeviceRun, Frame, Immediate, Keys, Nested, Step, StepBlock
from vhlo_tools.execution.values import ArgumentType, TokenType, TupleType, ValueType
from vhlo_tools.records import dataclass

# Selection of the ops of a program that are stepped through instead of evaluated by the engine

#: Ops that the interpreter does not support, or not on one device without effects.
HOST_OPS: Final = ops_where(lambda traits: traits.reference in ("host", "devices"))


def has_host_ops(provider: Provider, module: Module) -> bool:
    return any(str(op.name) in HOST_OPS for op in provider.walk(module))


class HostOps:
    """Host ops, ops with these in their regions, and calls of functions with these."""

    def __init__(self, provider: Provider, module: Module) -> None:
        self._provider = provider
        self._functions: frozenset[str] = frozenset()
        bodies = functions_of(module)
        # A function is stepped through if it contains such ops, including calls of functions found before.
        while True:
            found = frozenset(name for name, function in bodies.items() if self.includes(function))
            if found == self._functions:
                return
            self._functions = found

    def includes(self, op: Operation) -> bool:
        return any(self._is_host_op(each) for each in self._provider.walk(op))

    def _is_host_op(self, op: Operation) -> bool:
        name = str(op.name)
        if name in CALLEES:
            return str(op.attributes[CALLEES[name]].value) in self._functions
        return name in HOST_OPS


# Steps that Python computes: handlers, probes, and the numbers of devices


@dataclass(frozen=True, slots=True)
class Emit(Immediate):
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


# Steps for bodies with ops that the engine cannot evaluate, stepped through for each element, which is slow


@dataclass(frozen=True, slots=True)
class Map(Nested):
    blocks: tuple[StepBlock, ...]
    operands: Keys
    results: Keys
    types: tuple[ArgumentType, ...]

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        (body,) = self.blocks
        operands = [frame[key] for key in self.operands]
        results = _empty(self.types)
        for index in np.ndindex(results[0].shape):
            values = yield from body.run(device, frame, _scalars(operands, index))
            _put(results, index, values)
        frame.update(zip(self.results, results, strict=True))


@dataclass(frozen=True, slots=True)
class Reduce(Nested):
    """Elements are reduced in order."""

    blocks: tuple[StepBlock, ...]
    operands: Keys
    results: Keys
    types: tuple[ArgumentType, ...]
    dimensions: tuple[int, ...]

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        (body,) = self.blocks
        keys, initial = self.operands[: len(self.types)], self.operands[len(self.types) :]
        # Move the reduced dimensions to the end.
        last = range(-len(self.dimensions), 0)
        operands = [np.moveaxis(frame[key], self.dimensions, tuple(last)) for key in keys]
        results = _empty(self.types)
        kept = results[0].ndim
        for index in np.ndindex(results[0].shape):
            values = [frame[key] for key in initial]
            for along in np.ndindex(operands[0].shape[kept:]):
                values = yield from body.run(device, frame, [*values, *_scalars(operands, (*index, *along))])
            _put(results, index, values)
        frame.update(zip(self.results, results, strict=True))


def _empty(types: Sequence[ArgumentType]) -> list[Any]:
    return [np.empty(type_.shape, type_.dtype) for type_ in types]


def _scalars(operands: Sequence[Any], index: tuple[int, ...]) -> list[Any]:
    return [np.asarray(operand[index], operand.dtype) for operand in operands]


def _put(results: Sequence[Any], index: tuple[int, ...], values: Sequence[Any]) -> None:
    for result, value in zip(results, values, strict=True):
        result[index] = value


# Calls, loops and branches, as steps

#: The greatest depth of calls, each of which needs a few Python frames.
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class FunctionCall(Step):
    function: str
    place: str
    operands: Keys
    results: Keys

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        if device.depth == _DEEPEST:
            raise EngineError(
                f"{self.place}: calls are nested {_DEEPEST} deep, the limit for functions with custom calls, "
                f"collectives or probes: check that the recursion ends"
            )
        device.depth += 1
        values = [frame[key] for key in self.operands]
        returned = yield from device.functions[self.function].run(device, {}, values)
        device.depth -= 1
        frame.update(zip(self.results, returned, strict=True))


@dataclass(frozen=True, slots=True)
class While(Nested):
    blocks: tuple[StepBlock, ...]  # the condition and the body
    operands: Keys
    results: Keys

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        condition, body = self.blocks
        values = [frame[key] for key in self.operands]
        device.iterations.append(0)
        while True:
            (more,) = yield from condition.run(device, frame, values)
            if not more:
                break
            values = yield from body.run(device, frame, values)
            device.iterations[-1] += 1
        device.iterations.pop()
        frame.update(zip(self.results, values, strict=True))


@dataclass(frozen=True, slots=True)
class Branch(Nested):
    """The first block is for true; an index out of range selects the last."""

    blocks: tuple[StepBlock, ...]
    operands: Keys
    results: Keys

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        chosen = frame[self.operands[0]]
        if chosen.dtype == np.bool_:
            number = 0 if chosen else 1
        else:
            number = int(chosen) if 0 <= chosen < len(self.blocks) else len(self.blocks) - 1
        values = yield from self.blocks[number].run(device, frame, ())
        frame.update(zip(self.results, values, strict=True))


@dataclass(frozen=True, slots=True)
class Asynchronous(Nested):
    """Executed immediately; the result is the future of its values."""

    blocks: tuple[StepBlock, ...]
    operands: Keys
    results: Keys

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        (block,), (future,) = self.blocks, self.results
        values = yield from block.run(device, frame, [frame[key] for key in self.operands])
        frame[future] = tuple(values)


@dataclass(frozen=True, slots=True)
class Unpack(Immediate):
    operands: Keys
    results: Keys

    def take(self, device: Device, frame: Frame) -> None:
        frame.update(zip(self.results, frame[self.operands[0]], strict=True))
