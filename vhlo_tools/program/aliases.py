"""Aliases and donors of a module of StableHLO: read, and written anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from vhlo_tools.aliasing import (
    ARGUMENT_ATTRIBUTES,
    MODULE_ATTRIBUTES,
    AliasConfig,
    Array,
    Declared,
    Form,
    Opaque,
    Other,
    Plain,
    Shape,
    Signature,
    Tuple,
    Unit,
    fits,
    read_declared,
    spell,
)
from vhlo_tools.bindings import Operation, Provider, class_of, elements_of, named_attributes
from vhlo_tools.errors import AliasError

__all__ = ["read_module_aliases", "write_module_aliases"]

_ENTRY: Final = "main"
_BOUNDS: Final = re.compile(r"#stablehlo\.bounds<([^>]*)>")
_WIDTH: Final = re.compile(r"u?s?i(\d+)")


def read_module_aliases(module: Operation) -> Declared:
    """Return what a module says of the aliases and donors of its function ``main``, or of its only one.

    Args:
        module: The op of the module, which stays as it is.
    """
    function = _entry(module)
    if function is None:
        return read_declared(Signature((), Tuple(())), (), {})
    return _declared(module, function)


def write_module_aliases(
    module: Operation, config: AliasConfig, form: Form | None = None, *, provider: Provider
) -> None:
    """Give a module the aliases and donors of ``config``, and no others.

    Args:
        module: The op of the module, which is changed.
        config: The aliases and donors.
        form: Where to write the aliases; by default where they are, or else where they can be.
        provider: The bindings whose module it is.

    Raises:
        AliasError: If ``config`` is of another signature, or ``form`` cannot say it.
    """
    function = _entry(module)
    if function is None:
        if config:
            raise AliasError("the program has no function main, and so nothing to alias")
        return
    declared = _declared(module, function)
    if declared.signature != config.signature:
        raise AliasError("the aliases are of a program with another signature")
    held = declared.form
    spelled = spell(config, form or (held if held and fits(config, held) else None))
    write = _Writer(provider.ir, module.context)
    others = [_without(each, ARGUMENT_ATTRIBUTES) for each in _of_arguments(function, len(spelled.arguments))]
    changed = [
        {**kept, **{name: write.attribute(value, 32) for name, value in new.items()}}
        for kept, new in zip(others, spelled.arguments, strict=True)
    ]
    if any(changed):
        function.attributes["arg_attrs"] = write.array([write.dictionary(each) for each in changed])
    elif "arg_attrs" in function.attributes:
        del function.attributes["arg_attrs"]
    for name, value in _plain_of(dict(named_attributes(module.attributes)), MODULE_ATTRIBUTES).items():
        # An empty list, which HLO leaves behind, says nothing and may stay.
        if value != [] or name in spelled.module:
            del module.attributes[name]
    for name, value in spelled.module.items():
        module.attributes[name] = write.attribute(value, 64)


def _entry(module: Operation) -> Operation | None:
    functions = {}
    for region in module.regions:
        for block in region.blocks:
            for op in block.operations:
                if op.operation.name == "func.func":
                    functions[op.operation.attributes["sym_name"].value] = op.operation
    return functions.get(_ENTRY, next(iter(functions.values())) if len(functions) == 1 else None)


def _declared(module: Operation, function: Operation) -> Declared:
    kind = function.attributes["function_type"].value
    signature = Signature.of_results(tuple(map(_shape, kind.inputs)), tuple(map(_shape, kind.results)))
    arguments = [_plain_of(each, ARGUMENT_ATTRIBUTES) for each in _of_arguments(function, len(signature.parameters))]
    return read_declared(signature, arguments, _plain_of(dict(named_attributes(module.attributes)), MODULE_ATTRIBUTES))


def _of_arguments(function: Operation, number: int) -> list[dict[str, Any]]:
    if "arg_attrs" not in function.attributes:
        return [{} for _ in range(number)]
    return [dict(named_attributes(each)) for each in elements_of(function.attributes["arg_attrs"])]


def _plain_of(attributes: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Plain]:
    return {name: _plain(attributes[name]) for name in names if name in attributes}


def _without(attributes: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: each for name, each in attributes.items() if name not in names}


def _plain(attribute: Any) -> Plain:
    read = _READ.get(class_of(attribute))
    return Other(str(attribute)) if read is None else read(attribute)


def _integer(attribute: Any) -> Plain:
    """Return an integer as MLIR's ``getInt`` gives it: signed, and no more than 64 bits of it."""
    width = _WIDTH.fullmatch(str(attribute.type))
    bits = min(int(width[1]), 64) if width else 64
    number = int(attribute.value) & (1 << bits) - 1
    return number - (number >> (bits - 1) << bits)


def _integers(attribute: Any) -> Plain:
    kind = attribute.type
    if str(kind.element_type) != "i64" or kind.rank != 1:
        return Other(str(attribute))
    return tuple(int(each) for each in attribute)


_READ: Final[dict[str, Callable[[Any], Plain]]] = {
    "ArrayAttr": lambda attribute: [_plain(each) for each in elements_of(attribute)],
    "BoolAttr": lambda attribute: bool(attribute.value),
    "DenseI64ArrayAttr": lambda attribute: tuple(int(each) for each in attribute),
    "DenseIntElementsAttr": _integers,
    "DictAttr": lambda attribute: {name: _plain(each) for name, each in named_attributes(attribute)},
    "IntegerAttr": _integer,
    "StringAttr": lambda attribute: str(attribute.value),
    "UnitAttr": lambda attribute: Unit(),
}


def _shape(kind: Any) -> Shape:
    name = class_of(kind)
    if name == "TupleType":
        return Tuple(tuple(_shape(kind.get_type(number)) for number in range(kind.num_types)))
    if name != "RankedTensorType":
        text = str(kind)
        return Opaque() if text == "!stablehlo.token" else Opaque(text)
    sizes = tuple(None if kind.is_dynamic_dim(at) else kind.get_dim_size(at) for at in range(kind.rank))
    said = _BOUNDS.search(str(kind))
    bounds = tuple(None if each.strip() == "?" else int(each) for each in said[1].split(",")) if said else ()
    return Array.of_stablehlo(str(kind.element_type), sizes, bounds)


class _Writer:
    """Makes attributes of plain values.

    Args:
        ir: The module ``ir`` of the bindings.
        context: The context that they shall be of.
    """

    def __init__(self, ir: Any, context: Any) -> None:
        self._ir = ir
        self._context = context

    def attribute(self, value: Plain, bits: int) -> Any:
        """Return an attribute whose integers have so many bits."""
        ir, context = self._ir, self._context
        match value:
            case bool():
                return ir.BoolAttr.get(value, context)
            case int():
                return ir.IntegerAttr.get(ir.IntegerType.get_signless(bits, context), value)
            case str():
                return ir.StringAttr.get(value, context)
            case tuple():
                return ir.DenseI64ArrayAttr.get(list(value), context)
            case list():
                return self.array([self.attribute(each, bits) for each in value])
            case dict():
                return self.dictionary({name: self.attribute(each, bits) for name, each in value.items()})
        raise ValueError(f"{value!r} is no attribute that aliases have")

    def array(self, attributes: list[Any]) -> Any:
        """Return an array of attributes."""
        return self._ir.ArrayAttr.get(attributes, self._context)

    def dictionary(self, attributes: Mapping[str, Any]) -> Any:
        """Return a dictionary of attributes."""
        return self._ir.DictAttr.get(dict(attributes), self._context)
