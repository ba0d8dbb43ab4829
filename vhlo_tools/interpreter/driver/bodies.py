"""Blocks of a new module that ops of another are copied into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vhlo_tools.bindings import Module, Operation, Provider
from vhlo_tools.interpreter.lowering.retyping import values_of

__all__ = ["Body", "append_block", "captured", "is_constant"]


class Body:
    """A block that copies of ops are added to.

    Args:
        provider: The bindings.
        module: The module that it is in.
        block: The block.

    Attributes:
        module: The module that it is in.
        arguments: What the block takes.
        point: Where ops are added.
        known: What stands in it for values of the program.
    """

    def __init__(self, provider: Provider, module: Module, block: Any) -> None:
        self.module = module
        self.arguments = list(block.arguments)
        self.point = provider.ir.InsertionPoint(block)
        self.known: dict[Any, Any] = {}
        self._provider = provider
        self._block = block

    @classmethod
    def of_main(cls, provider: Provider, kinds: Sequence[Any], location: Any) -> Body:
        """Return the body of the function ``main`` of a new module.

        Args:
            provider: The bindings.
            kinds: The types of what it takes.
            location: Where all of it is said to stand.
        """
        ir = provider.ir
        with location:
            module = ir.Module.create()
            attributes = {
                "sym_name": ir.StringAttr.get("main"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(list(kinds), [])),
            }
            point = ir.InsertionPoint(module.body)
            main = ir.Operation.create("func.func", attributes=attributes, regions=1, ip=point)
        return cls(provider, module, append_block(main.regions[0], kinds, location))

    def add(self, op: Operation) -> None:
        """Add a copy of an op, which takes what stands for the operands of the op."""
        twin = op.operation.clone(ip=self.point)
        for each in self._provider.walk(twin):
            for index, value in enumerate(each.operands):
                if value in self.known:
                    each.operation.operands[index] = self.known[value]
        self.known.update(zip(op.results, twin.results, strict=True))

    def finish(self, outputs: Sequence[Any]) -> None:
        """Return ``outputs``, which are values of the block, from the function whose block it is."""
        ir = self._provider.ir
        main = self._block.owner
        with main.location:
            ir.Operation.create("func.return", operands=list(outputs), ip=self.point)
            kinds = [[value.type for value in values] for values in (self.arguments, outputs)]
            main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*kinds))


def append_block(region: Any, kinds: Sequence[Any], location: Any) -> Any:
    """Append a block that takes values of the types ``kinds`` to a region, and return it."""
    return region.blocks.append(*kinds, arg_locs=[location] * len(kinds))


def captured(provider: Provider, ops: Sequence[Operation]) -> list[Any]:
    """Return the values that ops and all within take from outside of them."""
    inside: set[Any] = set()
    found: dict[Any, None] = {}
    for op in ops:
        for each in provider.walk(op):
            # What is inside is made before it is used, for ops dominate their uses.
            inside.update(values_of(each))
            found.update((value, None) for value in each.operands if value not in inside)
    return list(found)


def is_constant(value: Any) -> bool:
    """Tell whether a value is a constant of the program."""
    return str(getattr(value.owner, "name", "")) == "stablehlo.constant"
