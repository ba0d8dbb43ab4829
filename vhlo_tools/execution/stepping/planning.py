"""Plan of a run: the ops that are stepped through, and the segments that the interpreter evaluates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from vhlo_tools.bindings import CALLEES, Module, Operation, Provider, functions_of
from vhlo_tools.execution.call_rules import form_of_op
from vhlo_tools.execution.handlers import Handler, call_of, handler_advice
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
from vhlo_tools.execution.stepping.steps import Planner, Segment, Step, StepBlock, captured, is_constant
from vhlo_tools.execution.values import parse_tensor_type, parse_value_type
from vhlo_tools.program import place_of

#: The approximate number of bytes of probed values in one segment.
_PROBED: Final = 64 << 20

_TOKEN: Final = "!stablehlo.token"

#: The prefix of the targets of the toolkit's own custom calls.
_OWN: Final = "vhlo_tools."


class StepPlanner(Planner):
    def __init__(
        self,
        provider: Provider,
        module: Module,
        handlers: Mapping[str, Handler],
        sites: Sequence[ProbeSite],
        name: str,
        *,
        has_host: bool = False,
    ) -> None:
        super().__init__(provider, module, name, has_host=has_host)
        self._handlers = handlers
        self._sites = sites
        self._functions = functions_of(module)
        self._host_ops = HostOps(provider, module)
        self._segments: list[Segment] = []
        self._pending: list[str] = []

    def plan(self, roots: Sequence[str]) -> dict[str, StepBlock]:
        """``roots`` do not include ``main``."""
        self._pending = list(roots)
        blocks: dict[str, StepBlock] = {}
        while self._pending:
            name = self._pending.pop()
            if name in blocks:
                continue
            function = self._functions[name]
            if not len(function.regions[0].blocks):
                raise self.refusal(function, "the function is declared, but not defined")
            blocks[name] = self._block(function.regions[0].blocks[0])
        # Which results of each segment are needed is known only now.
        for segment in self._segments:
            segment.prepare(self._needed.__contains__)
        return blocks

    def _block(self, block: Any) -> StepBlock:
        arguments = self.defined(block.arguments)
        steps: list[Step] = []
        ops: list[Operation] = []
        emits: list[Emit] = []
        probed = 0

        def flush() -> None:
            nonlocal probed
            if ops:
                self.used(value for value in captured(self.provider, ops) if not is_constant(value))
                steps.append(segment := Segment(self.kernels, self.key_of, list(ops), self._name))
                self._segments.append(segment)
            steps.extend(emits)
            ops.clear()
            emits.clear()
            probed = 0

        *inner, end = (each.operation for each in block.operations)
        for op in inner:
            if is_instrumentation(op):
                emits.append(Emit(self._sites[site_of(op)], self.used(op.operands)))
                type_ = parse_tensor_type(str(op.operands[0].type))
                probed += math.prod(size or 0 for size in type_.shape) * type_.dtype.itemsize
                if probed > _PROBED:
                    flush()
            elif self._host_ops.includes(op):
                flush()
                steps.append(self._step(op))
            else:
                ops.append(op)
        flush()
        return StepBlock(arguments, steps, self.used(end.operands))

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

    def regions(self, op: Operation) -> tuple[StepBlock, ...]:
        return tuple(self._block(region.blocks[0]) for region in op.regions)

    def custom_call(self, op: Operation) -> Step:
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
        self.check_static(op, call.results)
        types = tuple(parse_value_type(str(result.type)) for result in results)
        keys = self.used(operands), self.defined(results)
        return HandlerCall(call, handler, *keys, types, self.defined(tokens))

    def call(self, op: Operation) -> Step:
        function = str(op.attributes[CALLEES[str(op.name)]].value)
        self._pending.append(function)
        return FunctionCall(function, self.place(op), self.used(op.operands), self.defined(op.results))


_Make = Callable[[StepPlanner, Operation], Step]


def _nested(kind: Callable[..., Step], *more: Callable[[StepPlanner, Operation], Any]) -> _Make:
    """Steps of a kind that is made of blocks, operands and results, and of what ``more`` functions return."""

    def make(planner: StepPlanner, op: Operation) -> Step:
        blocks, operands, results = planner.regions(op), planner.used(op.operands), planner.defined(op.results)
        return kind(blocks, operands, results, *(each(planner, op) for each in more))

    return make


STEPS: Final[Mapping[str, _Make]] = {
    "func.call": StepPlanner.call,
    MANUAL_COMPUTATION: lambda planner, op: manual_computation(planner, op, planner.regions(op)),
    "stablehlo.async_done": lambda planner, op: Unpack(planner.used(op.operands), planner.defined(op.results)),
    "stablehlo.async_start": _nested(Asynchronous),
    "stablehlo.case": _nested(Branch),
    "stablehlo.composite": StepPlanner.call,
    "stablehlo.custom_call": StepPlanner.custom_call,
    "stablehlo.if": _nested(Branch),
    "stablehlo.map": _nested(Map, StepPlanner.types),
    "stablehlo.reduce": _nested(
        Reduce, StepPlanner.types, lambda _, op: tuple(int(each) for each in op.attributes["dimensions"])
    ),
    "stablehlo.while": _nested(While),
}


def _parted(values: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """The tokens, then the others."""
    parts: tuple[list[Any], list[Any]] = ([], [])
    for value in values:
        parts[str(value.type) != _TOKEN].append(value)
    return parts
