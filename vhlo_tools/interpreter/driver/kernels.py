"""Ops of a program as a module of their own, which the interpreter evaluates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vhlo_tools.bindings import Module, Operation, Provider
from vhlo_tools.bindings.functions import CALLEES
from vhlo_tools.interpreter.carrying import carried_in, carried_out
from vhlo_tools.interpreter.driver.bodies import Body, append_block, captured, is_constant
from vhlo_tools.interpreter.driver.evaluation import Evaluate
from vhlo_tools.interpreter.lowering.surroundings import surround
from vhlo_tools.interpreter.preflight import check_runnable
from vhlo_tools.interpreter.values import ValueType, as_arrays, parse_value_type

__all__ = ["Kernel", "Kernels"]

_ELEMENTWISE: Final = frozenset(
    f"stablehlo.{name}"
    for name in ("add", "and", "divide", "maximum", "minimum", "multiply", "or", "power", "subtract", "xor")
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A module, ready to be evaluated.

    Attributes:
        provider: The bindings.
        digest: What it is known by.
        bytecode: The module.
        arguments: The types of what it takes.
        results: The types of what it gives.
    """

    provider: Provider
    digest: str
    bytecode: bytes
    arguments: tuple[ValueType, ...]
    results: tuple[ValueType, ...]

    def run(self, evaluate: Evaluate, values: Sequence[Any]) -> list[Any]:
        """Return what it gives: arrays, ``None`` for tokens, tuples for tuples.

        Args:
            evaluate: What evaluates it.
            values: What it takes, in the same form.

        Raises:
            EngineError: If the interpreter fails.
        """
        carried = [
            part
            for number, (value, kind) in enumerate(zip(values, self.arguments, strict=True))
            for array, of_array in as_arrays(value, kind, f"value {number}")
            for part in carried_in(array, of_array)
        ]
        return carried_out(evaluate(self.provider, self.digest, self.bytecode, carried), self.results)


class Kernels:
    """Makes kernels of the ops of a program.

    Args:
        provider: The bindings.
        module: The program, which has no function ``main``, and which the interpreter can run but for what is walked.
        name: What to call it in messages.
    """

    def __init__(self, provider: Provider, module: Module, name: str) -> None:
        self._provider = provider
        self._name = name
        self._functions: dict[str, Operation] = {}
        # What attributes refer to: meshes.
        self._others: list[Operation] = []
        for each in module.body.operations:
            op = each.operation
            if str(op.name) == "func.func":
                self._functions[str(op.attributes["sym_name"].value)] = op
            else:
                self._others.append(op)

    def of_ops(self, ops: Sequence[Operation], outputs: Sequence[Any]) -> tuple[Kernel, list[Any]]:
        """Return a kernel of ops that stand in one block, one after the other, and the values that it takes.

        Constants that they take from outside are part of it.

        Args:
            ops: The ops.
            outputs: The values that it shall give, which the ops make.

        Raises:
            EngineError: Naming an op that the interpreter cannot run, and where it stands.
        """
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

    def of_reduction(self, block: Any, kind: Any, location: Any) -> Kernel:
        """Return a kernel that reduces two tensors to one, element by element.

        Args:
            block: The body of a reduction: it takes two scalars and returns one.
            kind: The type of the tensors.
            location: Where the reduction stands.
        """
        ir = self._provider.ir
        outer = Body.of_main(self._provider, [kind, kind], location)
        ops = [each.operation for each in block.operations]
        if _is_plain(block, ops):
            # The op itself does to whole tensors what it does to scalars, and much faster.
            twin = ops[0].clone(ip=outer.point)
            for index, operand in enumerate(ops[0].operands):
                twin.operands[index] = outer.arguments[list(block.arguments).index(operand)]
            twin.results[0].set_type(kind)
            return self._finished(outer, [twin.results[0]], self._others)
        with kind.context, location:
            dimensions = ir.DenseI64ArrayAttr.get(list(range(len(kind.shape))))
        mapped = ir.Operation.create(
            "stablehlo.map",
            results=[kind],
            operands=outer.arguments,
            attributes={"dimensions": dimensions},
            regions=1,
            loc=location,
            ip=outer.point,
        )
        kinds = [argument.type for argument in block.arguments]
        inner = Body(self._provider, outer.module, append_block(mapped.regions[0], kinds, location))
        inner.known.update(zip(block.arguments, inner.arguments, strict=True))
        for op in ops:
            inner.add(op)
        needed = [*self._others, *(self._functions[name] for name in self._called(ops))]
        return self._finished(outer, [mapped.results[0]], needed)

    def _called(self, ops: Iterable[Operation]) -> list[str]:
        """Return the names of the functions that ops call, and of those that these call."""
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

    def _finished(self, body: Body, outputs: Sequence[Any], needed: Iterable[Operation]) -> Kernel:
        provider, module = self._provider, body.module
        body.finish(outputs)
        for op in needed:
            module.body.append(op.operation.clone(ip=False))
        arguments = tuple(parse_value_type(str(value.type)) for value in body.arguments)
        results = tuple(parse_value_type(str(value.type)) for value in outputs)
        surround(provider, module, arguments, results)
        provider.verify(module)
        check_runnable(provider, module, self._name)
        bytecode = b"".join(provider.bytecode(module, provider.library.current))
        return Kernel(provider, hashlib.sha256(bytecode).hexdigest(), bytecode, arguments, results)


def _is_plain(block: Any, ops: Sequence[Operation]) -> bool:
    """Tell whether a body is one elementwise op of its two arguments: then all are of one type."""
    if len(ops) != 2 or list(ops[1].operands) != list(ops[0].results) or len(ops[0].operands) != 2:
        return False
    arguments = list(block.arguments)
    same = {str(value.type) for value in (*arguments, *ops[0].results)}
    return str(ops[0].name) in _ELEMENTWISE and len(same) == 1 and all(each in arguments for each in ops[0].operands)
