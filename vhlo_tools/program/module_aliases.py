"""Reading and writing of the aliases and donors of a StableHLO module."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
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
    declared_in,
    entry_name,
    set_aliases,
)
from vhlo_tools.bindings import Operation, Provider, class_of, elements_of, functions_of, named_attributes

_BOUNDS: Final = re.compile(r"#stablehlo\.bounds<([^>]*)>")
_WIDTH: Final = re.compile(r"u?s?i(\d+)")


def read_module_aliases(module: Operation) -> Declared:
    """The declarations are those of the function ``main``, or of the only function."""
    store = _store(module)
    return Declared(Signature((), Tuple(()))) if store is None else declared_in(store)


def write_module_aliases(
    module: Operation, config: AliasConfig, form: Form | None = None, *, provider: Provider
) -> None:
    """``form`` is by default the present one, or else one that can represent the aliases."""
    set_aliases(_store(module, provider), config, form)


def _store(module: Operation, provider: Provider | None = None) -> _ModuleStore | None:
    functions = functions_of(module)
    name = entry_name(functions)
    return None if name is None else _ModuleStore(module, functions[name], name, provider)


class _ModuleStore:
    def __init__(self, module: Operation, function: Operation, name: str, provider: Provider | None) -> None:
        self._module = module
        self._function = function
        self._provider = provider
        self.name = name

    @cached_property
    def signature(self) -> Signature:
        type_ = self._function.attributes["function_type"].value
        return Signature.of_results(tuple(map(_shape, type_.inputs)), tuple(map(_shape, type_.results)))

    def argument_aliases(self) -> list[dict[str, Plain]]:
        return [_plain_of(each, ARGUMENT_ATTRIBUTES) for each in self._arguments()]

    def _arguments(self) -> list[dict[str, Any]]:
        if "arg_attrs" not in self._function.attributes:
            return [{} for _ in self.signature.parameters]
        return [dict(named_attributes(each)) for each in elements_of(self._function.attributes["arg_attrs"])]

    def _writer(self) -> _Writer:
        # Reading alone needs no bindings.
        assert self._provider is not None
        return _Writer(self._provider.ir, self._module.context)

    def module_aliases(self) -> dict[str, Plain]:
        return _plain_of(dict(named_attributes(self._module.attributes)), MODULE_ATTRIBUTES)

    def set_argument_aliases(self, arguments: Sequence[Mapping[str, Plain]]) -> None:
        write = self._writer()
        changed = [
            {
                **{name: each for name, each in held.items() if name not in ARGUMENT_ATTRIBUTES},
                **{name: write.attribute(value, 32) for name, value in new.items()},
            }
            for held, new in zip(self._arguments(), arguments, strict=True)
        ]
        attributes = self._function.attributes
        if any(changed):
            attributes["arg_attrs"] = write.array([write.dictionary(each) for each in changed])
        elif "arg_attrs" in attributes:
            del attributes["arg_attrs"]

    def set_module_aliases(self, gone: Sequence[str], added: Mapping[str, Plain]) -> None:
        write = self._writer()
        for name in gone:
            del self._module.attributes[name]
        for name, value in added.items():
            self._module.attributes[name] = write.attribute(value, 64)


def _plain_of(attributes: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Plain]:
    return {name: _plain(attributes[name]) for name in names if name in attributes}


def _plain(attribute: Any) -> Plain:
    read = _READ.get(class_of(attribute))
    return Other(str(attribute)) if read is None else read(attribute)


def _integer(attribute: Any) -> Plain:
    """As MLIR's ``getInt``: signed, and truncated to 64 bits."""
    width = _WIDTH.fullmatch(str(attribute.type))
    bits = min(int(width[1]), 64) if width else 64
    number = int(attribute.value) & (1 << bits) - 1
    return number - (number >> (bits - 1) << bits)


def _integers(attribute: Any) -> Plain:
    type_ = attribute.type
    if str(type_.element_type) != "i64" or type_.rank != 1:
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


def _shape(type_: Any) -> Shape:
    name = class_of(type_)
    if name == "TupleType":
        return Tuple(tuple(_shape(type_.get_type(number)) for number in range(type_.num_types)))
    if name != "RankedTensorType":
        text = str(type_)
        return Opaque() if text == "!stablehlo.token" else Opaque(text)
    sizes = tuple(None if type_.is_dynamic_dim(at) else type_.get_dim_size(at) for at in range(type_.rank))
    said = _BOUNDS.search(str(type_))
    bounds = tuple(None if each.strip() == "?" else int(each) for each in said[1].split(",")) if said else ()
    return Array.of_stablehlo(str(type_.element_type), sizes, bounds)


class _Writer:
    def __init__(self, ir: Any, context: Any) -> None:
        self._ir = ir
        self._context = context

    def attribute(self, value: Plain, bits: int) -> Any:
        """Integers in the attribute have ``bits`` bits."""
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
        raise ValueError(f"{value!r} is not an alias attribute")

    def array(self, attributes: list[Any]) -> Any:
        return self._ir.ArrayAttr.get(attributes, self._context)

    def dictionary(self, attributes: Mapping[str, Any]) -> Any:
        return self._ir.DictAttr.get(dict(attributes), self._context)
