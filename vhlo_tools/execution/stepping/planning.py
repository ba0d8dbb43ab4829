"""Plan of a run: the ops that are stepped through, and the segments that the interpreter evaluates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from vhlo_tools.bindings import CALLEES, Module, Operation, Provider, functions_of
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.call_rules import form_of_op
from vhlo_tools.execution.handlers import Handler, call_of, described, handler_advice, refusal
from vhlo_tools.execution.known_targets import RULES, reason_against
from vhlo_tools.execution.probes import ProbeSite, is_instrumentation, site_of
from vhlo_tools.execution.reference.known_calls import known_handler
from vhlo_tools.execution.stepping.device_steps import (
    DISTRIBUTED,
    MANUAL_CALLS,
    MANUAL_COMPUTATION,
    cut_or_join,
    manual_computation,
)
from vhlo_tools.execution.stepping.local_steps import (
    Asynchronous,
    Branch,
    Emit,
    FunctionCall,
    HandlerCall,
    HostOps,
    Map,
    Reduce,
    Unpack,
    While,
)
from vhlo_tools.execution.stepping.steps import Kernels, Keys, Segment, Step, StepBlock, captured, is_constant
from vhlo_tools.execution.values import ArgumentType, parse_tensor_type, parse_value_type
from vhlo_tools.program import meshes_of, place_of

#: The approximate number of bytes of probed values in one segment.
_PROBED: Final = 64 << 20

_TOKEN: Final = "!stablehlo.token"

#: The prefix of the targets of the toolkit's own custom calls.
_OWN: Final = "vhlo_tools."


def plan(
    provider: Provider,
    module: Module,
    roots: Sequence[str],
    handlers: Mapping[str, Handler],
    sites: Sequence[ProbeSite],
    name: str,
    *,
    has_host: bool = False,
) -> dict[str, StepBlock]:
    """``roots`` do not include ``main``; with ``has_host``, a host feeds devices, and receives and sends values."""
    return _StepPlanner(provider, module, handlers, sites, name, has_host=has_host).plan(roots)


class _StepPlanner:
    def __init__(
        self,
        provider: Provider,
        module: Module,
        handlers: Mapping[str, Handler],
        sites: Sequence[ProbeSite],
        name: str,
        *,
        has_host: bool,
    ) -> None:
        self.provider = provider
        self.has_host = has_host
        self.kernels = Kernels(provider, module, name)
        self._handlers = handlers
        self._sites = sites
        self._name = name
        self._functions = functions_of(module)
        self._meshes = meshes_of(module)
        self._host_ops = HostOps(provider, module)
        self._keys: dict[Any, int] = {}
        self._needed: set[int] = set()
        self._segments: list[Segment] = []
        self._pending: list[str] = []

    def plan(self, roots: Sequence[str]) -> dict[str, StepBlock]:
        self._pending = list(roots)
        blocks: dict[str, StepBlock] = {}
        while self._pending:
            name = self._pending.pop()
            if name not in blocks:
                blocks[name] = self._block(self._body(name))
        # Which results of each segment are needed is known only now.
        for segment in self._segments:
            segment.prepare(self._needed.__contains__)
        return blocks

    def _body(self, name: str) -> Any:
        function = self._functions[name]
        if not len(function.regions[0].blocks):
            raise self.refusal(function, "the function is declared, but not defined")
        return function.regions[0].blocks[0]

    # Interface for the construction of steps

    def key_of(self, value: Any) -> int:
        return self._keys.setdefault(value, len(self._keys))

    def used(self, values: Iterable[Any]) -> Keys:
        keys = tuple(map(self.key_of, values))
        self._needed.update(keys)
        return keys

    def defined(self, values: Iterable[Any]) -> Keys:
        return tuple(map(self.key_of, values))

    def refusal(self, op: Operation, reason: str) -> EngineError:
        return refusal(op, self._name, reason)

    def place(self, op: Operation) -> str:
        return described(op, self._name)

    def mesh(self, name: str) -> str | None:
        return self._meshes.get(name)

    def types(self, op: Operation) -> tuple[ArgumentType, ...]:
        types = tuple(parse_tensor_type(str(each.type)) for each in op.results)
        for type_ in types:
            if not type_.is_static:
                raise self.refusal(op, f"the inputs do not resolve the shape of its result {type_.text}")
        return types

    # Blocks

    def _block(self, block: Any) -> StepBlock:
        arguments = self.defined(block.arguments)
        steps: list[Step] = []
        ops: list[Operation] = []
        emits: list[Emit] = []
        probed = 0

        def flush() -> None:
            nonlocal probed
            if ops:
                steps.append(self._segment(list(ops)))
            steps.extend(emits)
            ops.clear()
            emits.clear()
            probed = 0

        *inner, end = (each.operation for each in block.operations)
        for op in inner:
            if is_instrumentation(op):
                emits.append(Emit(self._sites[site_of(op)], self.used(op.operands)))
                probed += _bytes_of(op.operands[0])
                if probed > _PROBED:
                    flush()
            elif self._host_ops.includes(op):
                flush()
                steps.append(self._step(op))
            else:
                ops.append(op)
        flush()
        return StepBlock(arguments, steps, self.used(end.operands))

    def _segment(self, ops: list[Operation]) -> Segment:
        self.used(value for value in captured(self.provider, ops) if not is_constant(value))
        segment = Segment(self.kernels, self.key_of, ops, self._name)
        self._segments.append(segment)
        return segment

    def _step(self, op: Operation) -> Step:
        name = str(op.name)
        if make := STEPS.get(name):
            return make(self, op)
        if name in DISTRIBUTED:
            return DISTRIBUTED[name](self, op)
        inner = next(each for each in self.provider.walk(op)[1:] if self._host_ops.includes(each))
        what = inner.attributes["call_target_name"].value if str(inner.name).endswith("custom_call") else inner.name
        raise self.refusal(
            op,
            f"its body contains {what}, but besides control flow only the bodies of map and reduce are stepped through",
        )

    def _regions(self, op: Operation) -> list[StepBlock]:
        return [self._block(region.blocks[0]) for region in op.regions]

    def _custom_call(self, op: Operation) -> Step:
        target = str(op.attributes["call_target_name"].value)
        if target in RULES and target not in self._handlers and (reason := reason_against(form_of_op(op))):
            raise self.refusal(op, reason)
        if target in MANUAL_CALLS and (step := cut_or_join(self, op)) is not None:
            return step
        handler = self._handlers.get(target) or known_handler(target)
        if handler is None:
            # Handlers of the toolkit's own targets are for ops that are not custom calls in the user's program.
            given = sorted(name for name in self._handlers if not name.startswith(_OWN))
            known = f"there are handlers for {', '.join(given)}" if given else "there are none"
            raise self.refusal(op, f"no handler for custom calls of {target}: give {handler_advice(target)}; {known}")
        tokens, results = _parted(op.results)
        _, operands = _parted(op.operands)
        call = call_of(op)
        call = replace(call, location=place_of(call.location, self._name))
        for type_ in call.results:
            if not type_.is_static:
                raise self.refusal(op, f"the inputs do not resolve the shape of its result {type_.text}")
        types = tuple(parse_value_type(str(result.type)) for result in results)
        keys = self.used(operands), self.defined(results)
        return HandlerCall(call, handler, *keys, types, self.defined(tokens))

    def _call(self, op: Operation) -> Step:
        function = str(op.attributes[CALLEES[str(op.name)]].value)
        self._pending.append(function)
        return FunctionCall(function, self.place(op), self.used(op.operands), self.defined(op.results))

    def _while(self, op: Operation) -> Step:
        condition, body = self._regions(op)
        return While(condition, body, self.used(op.operands), self.defined(op.results))

    def _branch(self, op: Operation) -> Step:
        return Branch(tuple(self._regions(op)), self.used(op.operands), self.defined(op.results))

    def _manual(self, op: Operation) -> Step:
        (body,) = self._regions(op)
        return manual_computation(self, op, body)

    def _map(self, op: Operation) -> Step:
        (body,) = self._regions(op)
        return Map(body, self.used(op.operands), self.defined(op.results), self.types(op))

    def _reduce(self, op: Operation) -> Step:
        (body,) = self._regions(op)
        dimensions = tuple(int(each) for each in op.attributes["dimensions"])
        return Reduce(body, self.used(op.operands), dimensions, self.defined(op.results), self.types(op))

    def _asynchronous(self, op: Operation) -> Step:
        (block,) = self._regions(op)
        return Asynchronous(block, self.used(op.operands), self.defined(op.results))

    def _unpack(self, op: Operation) -> Step:
        return Unpack(self.used(op.operands), self.defined(op.results))


STEPS: Final[Mapping[str, Callable[[_StepPlanner, Operation], Step]]] = {
    "func.call": _StepPlanner._call,
    MANUAL_COMPUTATION: _StepPlanner._manual,
    "stablehlo.async_done": _StepPlanner._unpack,
    "stablehlo.async_start": _StepPlanner._asynchronous,
    "stablehlo.case": _StepPlanner._branch,
    "stablehlo.composite": _StepPlanner._call,
    "stablehlo.custom_call": _StepPlanner._custom_call,
    "stablehlo.if": _StepPlanner._branch,
    "stablehlo.map": _StepPlanner._map,
    "stablehlo.reduce": _StepPlanner._reduce,
    "stablehlo.while": _StepPlanner._while,
}


def _parted(values: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """The tokens, then the others."""
    parts: tuple[list[Any], list[Any]] = ([], [])
    for value in values:
        parts[str(value.type) != _TOKEN].append(value)
    return parts


def _bytes_of(value: Any) -> int:
    type_ = parse_tensor_type(str(value.type))
    return math.prod(size or 0 for size in type_.shape) * type_.dtype.itemsize
