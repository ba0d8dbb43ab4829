"""Types of values changed everywhere in a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from vhlo_tools.bindings import ModuleOp, Operation, Provider

__all__ = ["retype", "values_of"]


def values_of(op: Operation) -> Iterator[Any]:
    """Yield the values that an op makes: its results, and the arguments of its blocks."""
    yield from op.results
    for region in op.regions:
        for block in region:
            yield from block.arguments


def retype(provider: Provider, module: ModuleOp, change: Callable[[Any], Any]) -> None:
    """Change the types of tensors in ``module``, also within tuples, in place.

    Args:
        provider: The bindings.
        module: The program.
        change: Returns what a tensor type becomes, which may be the type itself.
    """
    ir = provider.ir

    def changed(kind: Any) -> Any:
        if isinstance(kind, ir.TupleType):
            return ir.TupleType.get_tuple([changed(kind.get_type(index)) for index in range(kind.num_types)])
        return change(kind) if isinstance(kind, ir.RankedTensorType) else kind

    with module.context, module.operation.location:
        for op in provider.walk(module):
            for value in values_of(op):
                kind = changed(value.type)
                if kind != value.type:
                    value.set_type(kind)
            if str(op.name) == "func.func":
                function = op.attributes["function_type"].value
                kinds = ([changed(kind) for kind in types] for types in (function.inputs, function.results))
                op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*kinds))
