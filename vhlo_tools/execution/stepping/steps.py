"""Steps of a program, and segments of ops that the engine evaluates as kernels."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import CALLEES, MLIRFailure, Module, Operation, Provider, get_provider, isolation, source_of
from vhlo_tools.conversion import values_of
from vhlo_tools.errors import EngineCrashError, EngineError, EngineTimeoutError
from vhlo_tools.execution.handlers import described, refusal
from vhlo_tools.execution.isolated import limits_of, with_message
from vhlo_tools.execution.lowering.shapes import wrap_main
from vhlo_tools.execution.op_traits import ops_where
from vhlo_tools.execution.probes import ProbeSite
from vhlo_tools.execution.reference.calling_convention import convert_inputs, convert_results
from vhlo_tools.execution.reference.preparation import check_runnable
from vhlo_tools.execution.values import ArgumentType, ValueType, parse_tensor_type, parse_value_type
from vhlo_tools.program import meshes_of, place_of
from vhlo_tools.records import dataclass

# Evaluation of segments by StableHLO's reference interpreter, in this process

Arrays = Sequence[np.ndarray[Any, Any]]

#: Evaluates ``main`` of a module, of tensors that the interpreter exchanges: called with the provider, the digest of
#: the module, the module as bytecode, and the inputs. The digest is the same in every iteration of a loop.
Evaluate = Callable[[Provider, str, bytes, Arrays], list[np.ndarray[Any, Any]]]

_EVALUATE: Final = "vhlo_tools.execution.stepping.steps:evaluate_segment_here"

#: Parsed modules by provider and digest, and the number that is kept.
_modules: Final[dict[tuple[str, str], Module]] = {}
_KEPT: Final = 256


def evaluate_here(provider: Provider, digest: str, bytecode: bytes, arrays: Arrays) -> list[np.ndarray[Any, Any]]:
    key = provider.prefix, digest
    if (module := _modules.pop(key, None)) is None:
        module = provider.parse(provider.new_context(), bytecode)
    # The last is the one used last; another thread may remove some too.
    _modules[key] = module
    while len(_modules) > _KEPT:
        _modules.pop(next(iter(_modules)), None)
    try:
        values = provider.evaluate(module, [provider.dense_elements(module.context, array) for array in arrays])
    except MLIRFailure as failure:
        raise EngineError(f"the reference interpreter failed: {failure}", failure.diagnostics) from failure
    return [provider.array_of(value) for value in values]


def evaluate_isolated(
    provider: Provider, digest: str, bytecode: bytes, arrays: Arrays, timeout: float | None
) -> list[np.ndarray[Any, Any]]:
    """In a child process; ``timeout`` is in seconds."""
    arguments = provider.prefix, digest, memoryview(bytecode), list(arrays)
    results: list[np.ndarray[Any, Any]] = isolation.call(_EVALUATE, *arguments, limits=limits_of(timeout))
    return results


def evaluate_segment_here(
    provider: str, digest: str, bytecode: memoryview, arrays: list[np.ndarray[Any, Any]]
) -> list[np.ndarray[Any, Any]]:
    return evaluate_here(get_provider(provider), digest, bytes(bytecode), arrays)


# The steps of a program that is stepped through, and their execution by a device
#
# The run of a device is a generator, which yields where it needs other devices and is sent the result of the exchange.
# Each step reads and writes values by number, in the frame of its function.

Keys = tuple[int, ...]
Frame = dict[int, Any]


@dataclass(slots=True)
class Device:
    number: int  # replica * partitions + partition
    replica: int
    partition: int
    functions: Mapping[str, StepBlock]
    evaluate: Evaluate
    emit: Callable[[ProbeSite, tuple[int, ...], Any, int], None]  # receiver of probed values
    iterations: list[int] = field(default_factory=list)  # current ones, of the enclosing loops
    depth: int = 0  # of calls
    #: functions that return the values of infeeds, in order; shared by all devices
    feed: deque[str] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """A point at which a device waits for others."""

    step: Any
    values: tuple[Any, ...]  # contributed by the device


#: The run of a device; it returns the results of the step or block.
DeviceRun = Generator[Rendezvous, Sequence[Any], Any]


class Step(ABC):
    __slots__ = ()
    operands: Keys
    results: Keys

    @property
    def uses(self) -> frozenset[int]:
        return frozenset(self.operands)

    @abstractmethod
    def run(self, device: Device, frame: Frame) -> DeviceRun: ...


class Nested(Step):
    """A step with blocks of its own."""

    __slots__ = ()
    blocks: tuple[StepBlock, ...]

    @property
    def uses(self) -> frozenset[int]:
        return frozenset(self.operands).union(*(block.uses for block in self.blocks))


class Immediate(Step):
    """A step that needs no other devices."""

    __slots__ = ()

    @abstractmethod
    def take(self, device: Device, frame: Frame) -> None: ...

    def run(self, device: Device, frame: Frame) -> DeviceRun:
        self.take(device, frame)
        yield from ()


class StepBlock:
    def __init__(self, arguments: Keys, steps: Sequence[Step], returned: Keys) -> None:
        self._arguments = arguments
        self._steps = tuple(steps)
        self._returned = returned

    @cached_property
    def uses(self) -> frozenset[int]:
        return frozenset(self._returned).union(*(step.uses for step in self._steps))

    @cached_property
    def _ended(self) -> list[Keys]:
        """For each step, the values of the block that no later step needs."""
        own = {*self._arguments, *(key for step in self._steps for key in step.results)}
        needed = set(self._returned)
        ended = []
        for step in reversed(self._steps):
            ended.append(tuple(({*step.uses, *step.results} & own) - needed))
            needed |= step.uses
        return ended[::-1]

    def run(self, device: Device, frame: Frame, values: Sequence[Any]) -> DeviceRun:
        frame.update(zip(self._arguments, values, strict=True))
        for step, ended in zip(self._steps, self._ended, strict=True):
            yield from step.run(device, frame)
            for key in ended:
                frame.pop(key, None)
        return [frame[key] for key in self._returned]


# Builder of blocks from copies of ops of another module


class Body:
    """``known`` maps values of the program to those of the block."""

    def __init__(self, provider: Provider, module: Module, block: Any) -> None:
        self.module = module
        self.arguments: list[Any] = list(block.arguments)
        self.point: Any = provider.ir.InsertionPoint(block)
        self.known: dict[Any, Any] = {}
        self._provider = provider
        self._block = block

    @classmethod
    def of_main(cls, provider: Provider, types: Sequence[Any], location: Any) -> Body:
        ir = provider.ir
        with location:
            module = ir.Module.create()
            attributes = {
                "sym_name": ir.StringAttr.get("main"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(list(types), [])),
            }
            point = ir.InsertionPoint(module.body)
            main = ir.Operation.create("func.func", attributes=attributes, regions=1, ip=point)
        return cls(provider, module, append_block(main.regions[0], types, location))

    def add(self, op: Operation) -> None:
        twin = op.operation.clone(ip=self.point)
        for each in self._provider.walk(twin):
            for index, value in enumerate(each.operands):
                if value in self.known:
                    each.operation.operands[index] = self.known[value]
        self.known.update(zip(op.results, twin.results, strict=True))

    def finish(self, outputs: Sequence[Any]) -> None:
        ir = self._provider.ir
        main = self._block.owner
        with main.location:
            ir.Operation.create("func.return", operands=list(outputs), ip=self.point)
            types = [[value.type for value in values] for values in (self.arguments, outputs)]
            main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))


def append_block(region: Any, types: Sequence[Any], location: Any) -> Any:
    return region.blocks.append(*types, arg_locs=[location] * len(types))


def captured(provider: Provider, ops: Sequence[Operation]) -> list[Any]:
    """Values that the ops, including nested ones, use, and that are defined outside of them."""
    inside: set[Any] = set()
    found: dict[Any, None] = {}
    for op in ops:
        for each in provider.walk(op):
            # Values inside are defined before their uses, because ops dominate their uses.
            inside.update(values_of(each))
            found.update((value, None) for value in each.operands if value not in inside)
    return list(found)


def is_constant(value: Any) -> bool:
    return str(getattr(value.owner, "name", "")) == "stablehlo.constant"


# Kernels: ops of a program as a separate module, which the interpreter evaluates

_COMBINERS: Final = ops_where(lambda traits: traits.combines)


@dataclass(frozen=True, slots=True)
class CompiledSegment:
    provider: Provider
    digest: str  # key in caches
    bytecode: bytes
    arguments: tuple[ValueType, ...]
    results: tuple[ValueType, ...]

    def run(self, evaluate: Evaluate, values: Sequence[Any]) -> list[Any]:
        converted = convert_inputs(values, self.arguments, "value")
        return convert_results(evaluate(self.provider, self.digest, self.bytecode, converted), self.results)


class Kernels:
    """The program has no ``main``, and the interpreter can run all ops that are not stepped through."""

    def __init__(self, provider: Provider, module: Module, name: str) -> None:
        self._provider = provider
        self._name = name
        self._functions: dict[str, Operation] = {}
        # Ops that attributes refer to: meshes.
        self._others: list[Operation] = []
        for each in module.body.operations:
            op = each.operation
            if str(op.name) == "func.func":
                self._functions[str(op.attributes["sym_name"].value)] = op
            else:
                self._others.append(op)

    def of_ops(self, ops: Sequence[Operation], outputs: Sequence[Any]) -> tuple[CompiledSegment, list[Any]]:
        """Also returns the values that are the arguments; constants that the ops use become part of the kernel."""
        outside = captured(self._provider, ops)
        inputs = [value for value in outside if not is_constant(value)]
        body = Body.of_main(self._provider, [value.type for value in inputs], ops[0].location)
        body.known.update(zip(inputs, body.arguments, strict=True))
        for value in outside:
            if is_constant(value):
                body.add(value.owner.operation)
        for op in ops:
            body.add(op)
        needed = [*self._others, *(self._functions[name] for name in self._called(ops))]
        return self._finished(body, [body.known[value] for value in outputs], needed), inputs

    def of_reduction(self, block: Any, type_: Any, location: Any) -> CompiledSegment:
        """``block`` reduces two scalars; the kernel reduces two tensors of ``type_``, element by element."""
        ir = self._provider.ir
        outer = Body.of_main(self._provider, [type_, type_], location)
        ops = [each.operation for each in block.operations]
        if _is_plain(block, ops):
            # The op has the same effect on whole tensors as on scalars, and is much faster.
            twin = ops[0].clone(ip=outer.point)
            for index, operand in enumerate(ops[0].operands):
                twin.operands[index] = outer.arguments[list(block.arguments).index(operand)]
            twin.results[0].set_type(type_)
            return self._finished(outer, [twin.results[0]], self._others)
        with type_.context, location:
            dimensions = ir.DenseI64ArrayAttr.get(list(range(len(type_.shape))))
        mapped = ir.Operation.create(
            "stablehlo.map",
            results=[type_],
            operands=outer.arguments,
            attributes={"dimensions": dimensions},
            regions=1,
            loc=location,
            ip=outer.point,
        )
        types = [argument.type for argument in block.arguments]
        inner = Body(self._provider, outer.module, append_block(mapped.regions[0], types, location))
        inner.known.update(zip(block.arguments, inner.arguments, strict=True))
        for op in ops:
            inner.add(op)
        needed = [*self._others, *(self._functions[name] for name in self._called(ops))]
        return self._finished(outer, [mapped.results[0]], needed)

    def _called(self, ops: Iterable[Operation]) -> list[str]:
        found: dict[str, None] = {}
        pending = list(ops)
        while pending:
            for op in self._provider.walk(pending.pop()):
                if str(op.name) not in CALLEES:
                    continue
                name = str(op.attributes[CALLEES[str(op.name)]].value)
                if name not in found and name in self._functions:
                    found[name] = None
                    pending.append(self._functions[name])
        return list(found)

    def _finished(self, body: Body, outputs: Sequence[Any], needed: Iterable[Operation]) -> CompiledSegment:
        provider, module = self._provider, body.module
        body.finish(outputs)
        for op in needed:
            module.body.append(op.operation.clone(ip=False))
        arguments = tuple(parse_value_type(str(value.type)) for value in body.arguments)
        results = tuple(parse_value_type(str(value.type)) for value in outputs)
        wrap_main(provider, module, arguments, results)
        provider.verify(module)
        check_runnable(provider, module, self._name)
        bytecode = b"".join(provider.bytecode(module, provider.library.current))
        return CompiledSegment(provider, hashlib.sha256(bytecode).hexdigest(), bytecode, arguments, results)


def _is_plain(block: Any, ops: Sequence[Operation]) -> bool:
    if len(ops) != 2 or list(ops[1].operands) != list(ops[0].results) or len(ops[0].operands) != 2:
        return False
    arguments = list(block.arguments)
    same = {str(value.type) for value in (*arguments, *ops[0].results)}
    return str(ops[0].name) in _COMBINERS and len(same) == 1 and all(each in arguments for each in ops[0].operands)


# Construction of steps from the ops of a program


class Planner:
    """Numbers the values of a program, which steps read and write; with ``has_host``, a host exchanges values."""

    def __init__(self, provider: Provider, module: Module, name: str, *, has_host: bool) -> None:
        self.provider: Provider = provider
        self.has_host: bool = has_host
        self.kernels: Kernels = Kernels(provider, module, name)
        self._name = name
        self._meshes = meshes_of(module)
        self._keys: dict[Any, int] = {}
        self._needed: set[int] = set()

    def key_of(self, value: Any) -> int:
        return self._keys.setdefault(value, len(self._keys))

    def used(self, values: Iterable[Any]) -> Keys:
        """The numbers of values that a step reads."""
        keys = self.defined(values)
        self._needed.update(keys)
        return keys

    def defined(self, values: Iterable[Any]) -> Keys:
        """The numbers of values that a step writes."""
        return tuple(map(self.key_of, values))

    def refusal(self, op: Operation, reason: str) -> EngineError:
        return refusal(op, self._name, reason)

    def place(self, op: Operation) -> str:
        return described(op, self._name)

    def mesh(self, name: str) -> str | None:
        """As MLIR prints it."""
        return self._meshes.get(name)

    def types(self, op: Operation) -> tuple[ArgumentType, ...]:
        types = tuple(parse_tensor_type(str(each.type)) for each in op.results)
        self.check_static(op, types)
        return types

    def check_static(self, op: Operation, types: Iterable[ArgumentType]) -> None:
        for type_ in types:
            if not type_.is_static:
                raise self.refusal(op, f"the inputs do not resolve the shape of its result {type_.text}")


# Segments: consecutive ops of a block, which the engine evaluates together


class Segment(Immediate):
    """``key_of`` returns the number of a value; ``results`` are the values that other steps need."""

    def __init__(self, kernels: Kernels, key_of: Callable[[Any], int], ops: Sequence[Operation], name: str) -> None:
        self._kernels = kernels
        self._key_of = key_of
        self._ops = ops
        self._name = name
        self._kernel: CompiledSegment | None = None
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

    def _made(self, ops: Sequence[Operation], outputs: Sequence[Any]) -> tuple[CompiledSegment, Keys, Keys]:
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
        exceeds = " exceeds the time limit" if isinstance(error, EngineTimeoutError) else ""
        return with_message(error, f"{place}: {op.name}{exceeds}: {error}", op=f"{op.name} at {place}")

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
