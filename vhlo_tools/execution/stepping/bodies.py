"""Builder of blocks from copies of ops of another module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vhlo_tools.bindings import Module, Operation, Provider
from vhlo_tools.rewriting import values_of


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
