"""A program planned: which of its ops are walked, and which are evaluated together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from vhlo_tools.bindings import Module, Operation, Provider
from vhlo_tools.bindings.functions import CALLEES, functions_of
from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.driver.bodies import captured, is_constant
from vhlo_tools.interpreter.driver.control_flow import Asynchronous, Branch, FunctionCall, Unpack, While
from vhlo_tools.interpreter.driver.distributed import DISTRIBUTED
from vhlo_tools.interpreter.driver.effects import Emit, HandlerCall
from vhlo_tools.interpreter.driver.elementwise import Map, Reduce
from vhlo_tools.interpreter.driver.kernels import Kernels
from vhlo_tools.interpreter.driver.manual import MANUAL_CALLS, MANUAL_COMPUTATION, cut_or_join, manual_computation
from vhlo_tools.interpreter.driver.segments import Segment
from vhlo_tools.interpreter.driver.specials import Specials
from vhlo_tools.interpreter.driver.steps import Block, Keys, Step
from vhlo_tools.interpreter.handlers import Handler, call_of, handler_advice
from vhlo_tools.interpreter.known_calls import known_handler
from vhlo_tools.interpreter.markers import is_marker, site_of
from vhlo_tools.interpreter.meshes import meshes_of
from vhlo_tools.interpreter.probing import ProbeSite
from vhlo_tools.interpreter.refusals import described, refusal
from vhlo_tools.interpreter.values import ArgumentType, parse_tensor_type, parse_value_type
from vhlo_tools.program import place_of

__all__ = ["plan"]

#: Probed values of about so many bytes are held at once before they are handed on.
_PROBED: Final = 64 << 20

_TOKEN: Final = "!stablehlo.token"

#: What targets of the toolkit's own custom calls begin with.
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
) -> dict[str, Block]:
    """Return the functions of a program that are walked, by name.

    Args:
        provider: The bindings.
        module: The program, as the interpreter can run it but for what is walked.
        roots: The names of the functions that are run, of which none is ``main``.
        handlers: What computes custom calls, by their targets.
        sites: What marks in the program stand for.
        name: What to call it in messages.
        has_host: Whether there is a host, which feeds devices, and through which they send values.

    Raises:
        EngineError: Naming an op that cannot be run, and where it stands.
    """
    return _Planner(provider, module, handlers, sites, name, has_host=has_host).plan(roots)


class _Planner:
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
        self._specials = Specials(provider, module)
        self._keys: dict[Any, int] = {}
        self._needed: set[int] = set()
        self._segments: list[Segment] = []
        self._pending: list[str] = []

    def plan(self, roots: Sequence[str]) -> dict[str, Block]:
        """Return the functions that are walked."""
        self._pending = list(roots)
        blocks: dict[str, Block] = {}
        while self._pending:
            name = self._pending.pop()
            if name not in blocks:
                blocks[name] = self._block(self._body(name))
        # Only now is it known what is needed of each.
        for segment in self._segments:
            segment.prepare(self._needed.__contains__)
        return blocks

    def _body(self, name: str) -> Any:
        function = self._functions[name]
        if not len(function.regions[0].blocks):
            raise self.refusal(function, "the function is declared, but not defined here")
        return function.regions[0].blocks[0]

    # What makers of steps use

    def key_of(self, value: Any) -> int:
        """Return the number of a value."""
        return self._keys.setdefault(value, len(self._keys))

    def used(self, values: Iterable[Any]) -> Keys:
        """Return the numbers of values that a step takes."""
        keys = tuple(map(self.key_of, values))
        self._needed.update(keys)
        return keys

    def defined(self, values: Iterable[Any]) -> Keys:
        """Return the numbers of values that a step makes."""
        return tuple(map(self.key_of, values))

    def refusal(self, op: Operation, reason: str) -> EngineError:
        """Return the error that an op cannot be run."""
        return refusal(op, self._name, reason)

    def place(self, op: Operation) -> str:
        """Return an op and where it stands, for messages."""
        return described(op, self._name)

    def mesh(self, name: str) -> str | None:
        """Return a mesh of the program as MLIR prints it, if there is one of that name."""
        return self._meshes.get(name)

    def types(self, op: Operation) -> tuple[ArgumentType, ...]:
        """Return the types of the results of an op.

        Raises:
            EngineError: If one is no tensor whose shape is known.
        """
        kinds = tuple(parse_tensor_type(str(each.type)) for each in op.results)
        for kind in kinds:
            if not kind.is_static:
                raise self.refusal(op, f"the inputs do not resolve the shape of its result {kind.text}")
        return kinds

    # Blocks

    def _block(self, block: Any) -> Block:
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
            if is_marker(op):
                emits.append(Emit(self._sites[site_of(op)], self.used(op.operands)))
                probed += _bytes_of(op.operands[0])
                if probed > _PROBED:
                    flush()
            elif self._specials.includes(op):
                flush()
                steps.append(self._step(op))
            else:
                ops.append(op)
        flush()
        return Block(arguments, steps, self.used(end.operands))

    def _segment(self, ops: list[Operation]) -> Segment:
        self.used(value for value in captured(self.provider, ops) if not is_constant(value))
        segment = Segment(self.kernels, self.key_of, ops, self._name)
        self._segments.append(segment)
        return segment

    def _step(self, op: Operation) -> Step:
        name = str(op.name)
        if make := _STEPS.get(name):
            return make(self, op)
        if name in DISTRIBUTED:
            return DISTRIBUTED[name](self, op)
        inner = next(each for each in self.provider.walk(op)[1:] if self._specials.includes(each))
        what = inner.attributes["call_target_name"].value if str(inner.name).endswith("custom_call") else inner.name
        raise self.refusal(
            op, f"its body holds {what}, and only bodies of map and reduce are walked, beside control flow"
        )

    def _regions(self, op: Operation) -> list[Block]:
        return [self._block(region.blocks[0]) for region in op.regions]

    def _custom_call(self, op: Operation) -> Step:
        target = str(op.attributes["call_target_name"].value)
        if target in MANUAL_CALLS and (step := cut_or_join(self, op)) is not None:
            return step
        handler = self._handlers.get(target) or known_handler(target)
        if handler is None:
            # Those of the toolkit's own stand for ops that the user has not written as calls.
            given = sorted(name for name in self._handlers if not name.startswith(_OWN))
            known = f"there are handlers for {', '.join(given)}" if given else "there are none"
            raise self.refusal(op, f"nothing computes {target}: give {handler_advice(target)}; {known}")
        tokens, results = _parted(op.results)
        _, operands = _parted(op.operands)
        call = call_of(op)
        call = replace(call, location=place_of(call.location, self._name))
        for kind in call.results:
            if not kind.is_static:
                raise self.refusal(op, f"the inputs do not resolve the shape of its result {kind.text}")
        kinds = tuple(parse_value_type(str(result.type)) for result in results)
        keys = self.used(operands), self.defined(results)
        return HandlerCall(call, handler, *keys, kinds, self.defined(tokens))

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


_STEPS: Final[Mapping[str, Callable[[_Planner, Operation], Step]]] = {
    "func.call": _Planner._call,
    MANUAL_COMPUTATION: _Planner._manual,
    "stablehlo.async_done": _Planner._unpack,
    "stablehlo.async_start": _Planner._asynchronous,
    "stablehlo.case": _Planner._branch,
    "stablehlo.composite": _Planner._call,
    "stablehlo.custom_call": _Planner._custom_call,
    "stablehlo.if": _Planner._branch,
    "stablehlo.map": _Planner._map,
    "stablehlo.reduce": _Planner._reduce,
    "stablehlo.while": _Planner._while,
}


def _parted(values: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Return the tokens among values, and the others."""
    parts: tuple[list[Any], list[Any]] = ([], [])
    for value in values:
        parts[str(value.type) != _TOKEN].append(value)
    return parts


def _bytes_of(value: Any) -> int:
    kind = parse_tensor_type(str(value.type))
    return math.prod(size or 0 for size in kind.shape) * kind.dtype.itemsize
