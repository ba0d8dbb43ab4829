"""Flattening of tuples of ``main``, for engines that exchange arrays only."""

from __future__ import annotations

from typing import Any

from vhlo_tools.aliasing import Alias, AliasConfig, Donor, Shape, ShapeIndex, Signature, leaves
from vhlo_tools.bindings import Module, Operation, Provider, class_of
from vhlo_tools.program import write_module_aliases


def flat_config(config: AliasConfig) -> AliasConfig:
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
    """Aliases and donors are preserved."""
    function_type = main.attributes["function_type"].value
    if not any(class_of(each) == "TupleType" for each in (*function_type.inputs, *function_type.results)):
        return
    block = main.regions[0].blocks[0]
    flatten = _Flattening(provider.ir)
    with main.context, main.location:
        inputs = flatten.arguments(block)
        results = flatten.returned(block.operations[len(block.operations) - 1])
        # A run depends on no attributes of arguments and results, except aliases.
        for name in ("arg_attrs", "res_attrs"):
            if name in main.attributes:
                del main.attributes[name]
        main.attributes["function_type"] = provider.ir.TypeAttr.get(provider.ir.FunctionType.get(inputs, results))
    write_module_aliases(module.operation, flat_config(config), provider=provider)


class _Flattening:
    def __init__(self, ir: Any) -> None:
        self._ir = ir

    def arguments(self, block: Any) -> list[Any]:
        """Replaces all arguments by their leaves, and returns the types of these."""
        old = list(block.arguments)
        # The ops that compose tuples must precede all uses.
        with self._ir.InsertionPoint.at_block_begin(block):
            for argument in old:
                argument.replace_all_uses_with(self._taken(block, argument.type))
        for _ in old:
            block.erase_argument(0)
        return [each.type for each in block.arguments]

    def _taken(self, block: Any, type_: Any) -> Any:
        if class_of(type_) != "TupleType":
            return block.add_argument(type_, self._ir.Location.current)
        elements = [self._taken(block, each) for each in _elements(type_)]
        return self._ir.Operation.create("stablehlo.tuple", results=[type_], operands=elements).result

    def returned(self, terminator: Any) -> list[Any]:
        """Returns the leaves of all results from the function, and their types here."""
        with self._ir.InsertionPoint(terminator):
            values = [leaf for each in terminator.operands for leaf in self._given(each)]
            self._ir.Operation.create("func.return", operands=values)
        terminator.operation.erase()
        return [each.type for each in values]

    def _given(self, value: Any) -> list[Any]:
        if class_of(value.type) != "TupleType":
            return [value]
        found: list[Any] = []
        for number, type_ in enumerate(_elements(value.type)):
            index = self._ir.IntegerAttr.get(self._ir.IntegerType.get_signless(32), number)
            element = self._ir.Operation.create(
                "stablehlo.get_tuple_element", results=[type_], operands=[value], attributes={"index": index}
            )
            found += self._given(element.result)
        return found


def _elements(type_: Any) -> list[Any]:
    return [type_.get_type(number) for number in range(type_.num_types)]
