"""Blocks of a new module that contain copies of ops of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vhlo_tools.bindings import Module, Operation, Provider
from vhlo_tools.rewriting import values_of


class Body:
    """A block to which copies of ops are added.

    Args:
        provider: The bindings.
        module: The module that contains the block.
        block: The block.

    Attributes:
        module: The module that contains the block.
        arguments: The arguments of the block.
        point: The insertion point of ops.
        known: The values of the block that correspond to values of the program.
    """

    def __init__(self, provider: Provider, module: Module, block: Any) -> None:
        self.module = module
        self.arguments: list[Any] = list(block.arguments)
        self.point: Any = provider.ir.InsertionPoint(block)
        self.known: dict[Any, Any] = {}
        self._provider = provider
        self._block = block

    @classmethod
    def of_main(cls, provider: Provider, types: Sequence[Any], location: Any) -> Body:
        """Return the body of the function ``main`` of a new module.

        Args:
            provider: The bindings.
            types: The types of its arguments.
            location: The location of the module and the function.
        """
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
        """Add a copy of an op, whose operands are the corresponding values of the block."""
        twin = op.operation.clone(ip=self.point)
        for each in self._provider.walk(twin):
            for index, value in enumerate(each.operands):
                if value in self.known:
                    each.operation.operands[index] = self.known[value]
        self.known.update(zip(op.results, twin.results, strict=True))

    def finish(self, outputs: Sequence[Any]) -> None:
        """Return ``outputs``, values of the block, from the function of the block."""
        ir = self._provider.ir
        main = self._block.owner
        with main.location:
            ir.Operation.create("func.return", operands=list(outputs), ip=self.point)
            types = [[value.type for value in values] for values in (self.arguments, outputs)]
            main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))


def append_block(region: Any, types: Sequence[Any], location: Any) -> Any:
    """Append a block with arguments of the types ``types`` to a region, and return it."""
    return region.blocks.append(*types, arg_locs=[location] * len(types))


def captured(provider: Provider, ops: Sequence[Operation]) -> list[Any]:
    """Return the values that ops, including nested ones, use and that are defined outside of them."""
    inside: set[Any] = set()
    found: dict[Any, None] = {}
    for op in ops:
        for each in provider.walk(op):
            # Values inside are defined before their uses, because ops dominate their uses.
            inside.update(values_of(each))
            found.update((value, None) for value in each.operands if value not in inside)
    return list(found)


def is_constant(value: Any) -> bool:
    """Return whether a value is a constant of the program."""
    return str(getattr(value.owner, "name", "")) == "stablehlo.constant"
