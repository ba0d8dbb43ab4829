"""Changes of the types of all values of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from vhlo_tools.bindings import ModuleOp, Operation, Provider


def values_of(op: Operation) -> Iterator[Any]:
    """The results, and the arguments of the blocks."""
    yield from op.results
    for region in op.regions:
        for block in region:
            yield from block.arguments


def retype(provider: Provider, module: ModuleOp, change: Callable[[Any], Any]) -> None:
    """Rewrites in place, also within tuples; ``change`` may return its argument."""
    ir = provider.ir

    def changed(type_: Any) -> Any:
        if isinstance(type_, ir.TupleType):
            return ir.TupleType.get_tuple([changed(type_.get_type(index)) for index in range(type_.num_types)])
        return change(type_) if isinstance(type_, ir.RankedTensorType) else type_

    with module.context, module.operation.location:
        for op in provider.walk(module):
            for value in values_of(op):
                type_ = changed(value.type)
                if type_ != value.type:
                    value.set_type(type_)
            if str(op.name) == "func.func":
                function = op.attributes["function_type"].value
                types = ([changed(each) for each in listed] for listed in (function.inputs, function.results))
                op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
