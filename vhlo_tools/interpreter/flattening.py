"""A ``main`` that takes and gives no tuples, for engines that exchange arrays only."""

from __future__ import annotations

from typing import Any

from vhlo_tools.aliasing import Alias, AliasConfig, Donor, Shape, ShapeIndex, Signature, leaves
from vhlo_tools.bindings import Module, Operation, Provider, class_of
from vhlo_tools.program import write_module_aliases

__all__ = ["flat_config", "flatten_main"]


def flat_config(config: AliasConfig) -> AliasConfig:
    """Return the aliases and donors of a program whose tuples are taken apart."""
    numbers: dict[tuple[int, ShapeIndex], int] = {}
    shapes: list[Shape] = []
    for number, shape in enumerate(config.signature.parameters):
        for index, leaf in leaves(shape):
            numbers[number, index] = len(shapes)
            shapes.append(leaf)
    results = list(leaves(config.signature.result))
    alone = len(results) == 1
    places = {index: () if alone else (number,) for number, (index, _) in enumerate(results)}
    return AliasConfig(
        Signature.of_results(tuple(shapes), tuple(leaf for _, leaf in results)),
        [
            Alias(places[each.output_index], numbers[each.parameter_number, each.parameter_index], (), each.kind)
            for each in config.aliases
        ],
        [Donor(numbers[each.parameter_number, each.parameter_index]) for each in config.donors],
    )


def flatten_main(provider: Provider, module: Module, main: Operation, config: AliasConfig) -> None:
    """Let ``main`` take and give arrays where it takes and gives tuples; one without tuples stays as it is.

    Args:
        provider: The bindings.
        module: The module, which is changed.
        main: Its function ``main``.
        config: Its aliases and donors, which it keeps.
    """
    kind = main.attributes["function_type"].value
    if not any(class_of(each) == "TupleType" for each in (*kind.inputs, *kind.results)):
        return
    block = main.regions[0].blocks[0]
    flatten = _Flattening(provider.ir)
    with main.context, main.location:
        inputs = flatten.arguments(block)
        results = flatten.returned(block.operations[len(block.operations) - 1])
        # What is said of arguments and results by their numbers, but for aliases, is nothing that a run depends on.
        for name in ("arg_attrs", "res_attrs"):
            if name in main.attributes:
                del main.attributes[name]
        main.attributes["function_type"] = provider.ir.TypeAttr.get(provider.ir.FunctionType.get(inputs, results))
    write_module_aliases(module.operation, flat_config(config), provider=provider)


class _Flattening:
    """Makes tuples of arguments, and takes results apart.

    Args:
        ir: The module ``ir`` of the bindings.
    """

    def __init__(self, ir: Any) -> None:
        self._ir = ir

    def arguments(self, block: Any) -> list[Any]:
        """Give a block arguments that are no tuples for all that it has, and return their types."""
        old = list(block.arguments)
        # Those that make a tuple of an argument come before all that uses it.
        with self._ir.InsertionPoint.at_block_begin(block):
            for argument in old:
                argument.replace_all_uses_with(self._taken(block, argument.type))
        for _ in old:
            block.erase_argument(0)
        return [each.type for each in block.arguments]

    def _taken(self, block: Any, kind: Any) -> Any:
        if class_of(kind) != "TupleType":
            return block.add_argument(kind, self._ir.Location.current)
        elements = [self._taken(block, each) for each in _elements(kind)]
        return self._ir.Operation.create("stablehlo.tuple", results=[kind], operands=elements).result

    def returned(self, terminator: Any) -> list[Any]:
        """Let an op return no tuples, and return the types of what it returns."""
        with self._ir.InsertionPoint(terminator):
            values = [leaf for each in terminator.operands for leaf in self._given(each)]
            self._ir.Operation.create("func.return", operands=values)
        terminator.operation.erase()
        return [each.type for each in values]

    def _given(self, value: Any) -> list[Any]:
        if class_of(value.type) != "TupleType":
            return [value]
        found: list[Any] = []
        for number, kind in enumerate(_elements(value.type)):
            index = self._ir.IntegerAttr.get(self._ir.IntegerType.get_signless(32), number)
            element = self._ir.Operation.create(
                "stablehlo.get_tuple_element", results=[kind], operands=[value], attributes={"index": index}
            )
            found += self._given(element.result)
        return found


def _elements(kind: Any) -> list[Any]:
    return [kind.get_type(number) for number in range(kind.num_types)]
