"""Kernels: ops of a program as a separate module, which the interpreter evaluates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

from vhlo_tools.bindings import CALLEES, Module, Operation, Provider
from vhlo_tools.execution.op_traits import ops_where
from vhlo_tools.execution.reference.calling_convention import convert_input, convert_results
from vhlo_tools.execution.reference.lowering.wrap_main import wrap_main
from vhlo_tools.execution.reference.preflight import check_runnable
from vhlo_tools.execution.stepping.bodies import Body, append_block, captured, is_constant
from vhlo_tools.execution.stepping.segment_evaluation import Evaluate
from vhlo_tools.execution.values.arrays import ValueType, as_arrays, parse_value_type
from vhlo_tools.records import dataclass

_COMBINERS: Final = ops_where(lambda traits: traits.combines)


@dataclass(frozen=True, slots=True)
class Kernel:
    provider: Provider
    digest: str  # key in caches
    bytecode: bytes
    arguments: tuple[ValueType, ...]
    results: tuple[ValueType, ...]

    def run(self, evaluate: Evaluate, values: Sequence[Any]) -> list[Any]:
        """``None`` stands for a token, a tuple for a tuple."""
        converted = [
            part
            for number, (value, type_) in enumerate(zip(values, self.arguments, strict=True))
            for array, of_array in as_arrays(value, type_, f"value {number}")
            for part in convert_input(array, of_array)
        ]
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

    def of_ops(self, ops: Sequence[Operation], outputs: Sequence[Any]) -> tuple[Kernel, list[Any]]:
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

    def of_reduction(self, block: Any, type_: Any, location: Any) -> Kernel:
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

    def _finished(self, body: Body, outputs: Sequence[Any], needed: Iterable[Operation]) -> Kernel:
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
        return Kernel(provider, hashlib.sha256(bytecode).hexdigest(), bytecode, arguments, results)


def _is_plain(block: Any, ops: Sequence[Operation]) -> bool:
    if len(ops) != 2 or list(ops[1].operands) != list(ops[0].results) or len(ops[0].operands) != 2:
        return False
    arguments = list(block.arguments)
    same = {str(value.type) for value in (*arguments, *ops[0].results)}
    return str(ops[0].name) in _COMBINERS and len(same) == 1 and all(each in arguments for each in ops[0].operands)
