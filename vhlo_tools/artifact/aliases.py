"""Aliases and donors in the bytes of an artifact: read, and written anew, without MLIR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from vhlo_tools.aliasing import (
    ARGUMENT_ATTRIBUTES,
    MODULE_ATTRIBUTES,
    AliasConfig,
    CallAliases,
    Form,
    NamedValue,
    Plain,
    ProgramAliases,
    Shape,
    Signature,
    Tuple,
    fits,
    read_call,
    read_declared,
    spell,
)
from vhlo_tools.artifact.plain_attributes import PlainReader, PlainWriter
from vhlo_tools.bytecode import File, Operation, Place, entry_name, visit
from vhlo_tools.compat.places import Places, attributes_of
from vhlo_tools.dialect import property_slots
from vhlo_tools.errors import AliasError
from vhlo_tools.retargeting.layout import AttributeLayout
from vhlo_tools.retargeting.leftovers import clear_leftovers
from vhlo_tools.retargeting.tables import Tables

__all__ = ["mentions_aliases", "read_aliases", "write_aliases"]

_ENTRY: Final = "main"
_FUNCTION: Final = "vhlo.func_v"
_CALL: Final = "vhlo.custom_call_v"
_OF_CALL: Final = "vhlo.output_operand_alias_v1"
_NOTHING: Final = Signature((), Tuple(()))
# How deep locations are looked into for a name.
_DEEPEST: Final = 16


def read_aliases(file: File, name: str = "the artifact", *, calls: bool = True) -> ProgramAliases:
    """Return what a program says of aliases and donors, right or wrong.

    Args:
        file: Its bytes.
        name: What it is called in messages.
        calls: Whether custom calls are looked for.

    Raises:
        MalformedArtifactError: If it is damaged.
    """
    entry = _find(file)
    found = _calls(file, name) if calls else ()
    if entry is None:
        return ProgramAliases(None, read_declared(_NOTHING, (), {}), calls=found)
    signature = Signature.of_results(entry.parameters, entry.results)
    declared = read_declared(signature, entry.plain_arguments(), entry.plain_module())
    places = Places(file, name)
    # What has no body has no arguments with locations.
    blocks = [block for region in entry.op.regions for block in region.blocks[:1]]
    arguments = [argument.location for block in blocks for argument in block.arguments]
    parameters = [NamedValue(_name(file, each), None if each is None else places.source(each)) for each in arguments]
    missing = (NamedValue(),) * (len(entry.parameters) - len(parameters))
    results = tuple(NamedValue(_result_name(entry, number)) for number in range(len(entry.results)))
    return ProgramAliases(entry.name, declared, (*parameters, *missing)[: len(entry.parameters)], results, found)


def mentions_aliases(file: File) -> bool:
    """Tell from the tables of a program whether it says anything of aliases; most say nothing, and are not read for it.

    Raises:
        MalformedArtifactError: If they are damaged.
    """
    names = {name.encode() for name in (*ARGUMENT_ATTRIBUTES, *MODULE_ATTRIBUTES)}
    if not names.isdisjoint(file.strings):
        return True
    if not any(file.op_name(index).startswith(_CALL) for index in range(len(file.dialects.ops))):
        return False
    return any(entry_name(file, "attribute", entry) == _OF_CALL for entry in file.attributes)


def write_aliases(file: File, config: AliasConfig, form: Form | None = None) -> None:
    """Give a program the aliases and donors of ``config``, and no others.

    Args:
        file: Its bytes, which are edited.
        config: The aliases and donors.
        form: Where to write the aliases; by default where they are, or else where they can be.

    Raises:
        AliasError: If ``config`` is of another signature, or ``form`` cannot say it.
        MalformedArtifactError: If the program is damaged.
    """
    entry = _find(file)
    if entry is None:
        if config:
            raise AliasError("the program has no function main, and so nothing to alias")
        return
    signature = Signature.of_results(entry.parameters, entry.results)
    if signature != config.signature:
        raise AliasError(
            f"the aliases are of another program: its signature is {_text(config.signature)}, and that of "
            f"@{entry.name} is {_text(signature)}"
        )
    held = read_declared(signature, entry.plain_arguments(), entry.plain_module()).form
    spelled = spell(config, form or (held if held and fits(config, held) else None))
    _Editor(file, entry).write(spelled.arguments, spelled.module)


def _text(signature: Signature) -> str:
    return f"({', '.join(map(str, signature.parameters))}) -> {signature.result}"


@dataclass(slots=True)
class _Entry:
    """The entry function of a program, and the module it is in.

    Attributes:
        reader: Reads its attributes.
        module: The op of the module.
        op: The op of the function.
        name: Its name.
        parameters: The shapes of its parameters.
        results: Those of its results.
        arguments: The attributes of each of its arguments.
        result_attributes: Those of each result.
        held: The attributes of the module.
    """

    reader: PlainReader
    module: Operation
    op: Operation
    name: str
    parameters: tuple[Shape, ...]
    results: tuple[Shape, ...]
    arguments: list[dict[str, int]]
    result_attributes: list[dict[str, int]]
    held: dict[str, int] = field(default_factory=dict)

    def plain_arguments(self) -> list[dict[str, Plain]]:
        """Return what attributes of its arguments say of aliases."""
        return [self._plain(each, ARGUMENT_ATTRIBUTES) for each in self.arguments]

    def plain_module(self) -> dict[str, Plain]:
        """Return what attributes of the module say of aliases."""
        return self._plain(self.held, MODULE_ATTRIBUTES)

    def _plain(self, held: Mapping[str, int], names: tuple[str, ...]) -> dict[str, Plain]:
        return {name: self.reader.attribute(held[name]) for name in names if name in held}


def _find(file: File) -> _Entry | None:
    """Return the function that XLA enters: ``main``, or the only one."""
    reader = PlainReader(file)
    functions: dict[str, tuple[Operation, Operation]] = {}
    for module in file.ir.operations:
        for region in module.regions:
            for op in (op for block in region.blocks for op in block.operations):
                if file.op_name(op.name).startswith(_FUNCTION):
                    functions[_symbol(file, op)] = (module, op)
    if _ENTRY not in functions and len(functions) != 1:
        return None
    name = _ENTRY if _ENTRY in functions else next(iter(functions))
    module, op = functions[name]
    attributes = attributes_of(file, op)
    inputs, outputs = _types(file, attributes.get("function_type"))
    return _Entry(
        reader=reader,
        module=module,
        op=op,
        name=name,
        parameters=tuple(map(reader.shape, inputs)),
        results=tuple(map(reader.shape, outputs)),
        arguments=_dictionaries(reader, attributes.get("arg_attrs"), len(inputs)),
        result_attributes=_dictionaries(reader, attributes.get("res_attrs"), len(outputs)),
        held=attributes_of(file, module),
    )


def _symbol(file: File, op: Operation) -> str:
    return _text_of(file, attributes_of(file, op).get("sym_name")) or ""


def _text_of(file: File, index: int | None) -> str | None:
    value = file.decode("attribute", index) if index is not None else None
    known = value is not None and value.name in ("string", "string_v1")
    return file.string(value.field("value")) if value is not None and known else None


def _types(file: File, index: int | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the types of arguments and results; none where the function has no type of a function."""
    holder = file.decode("attribute", index) if index is not None else None
    if holder is None or holder.name != "type_v1":
        return (), ()
    kind = file.decode("type", holder.field("value"))
    return (kind.field("inputs"), kind.field("outputs")) if kind and kind.name == "func_v1" else ((), ())


def _dictionaries(reader: PlainReader, index: int | None, number: int) -> list[dict[str, int]]:
    """Return an array of ``number`` dictionaries; any other stands for that many empty ones."""
    elements = reader.elements(index) if index is not None else ()
    return [reader.dictionary(each) for each in elements] if len(elements) == number else [{} for _ in range(number)]


def _name(file: File, location: int | None) -> str | None:
    """Return the name that a location begins with, if it does."""
    for _ in range(_DEEPEST):
        value = file.decode("attribute", location) if location is not None else None
        if value is None or value.name not in ("name", "callsite", "fused"):
            return None
        if value.name == "name":
            return _text_of(file, value.field("name"))
        held = value.field("locations") if value.name == "fused" else (value.field("callee"),)
        location = held[0] if held else None
    return None


def _result_name(entry: _Entry, number: int) -> str | None:
    """Return what jax calls a result."""
    index = entry.result_attributes[number].get("jax.result_info")
    value = entry.reader.attribute(index) if index is not None else None
    return value if isinstance(value, str) and value else None


def _calls(file: File, name: str) -> tuple[CallAliases, ...]:
    named = {index for index in range(len(file.dialects.ops)) if file.op_name(index).startswith(_CALL)}
    if not named:
        return ()
    places, reader = Places(file, name), PlainReader(file)
    found: list[CallAliases] = []

    def look(place: Place, values: list[int]) -> None:
        attributes = attributes_of(file, place.op)
        index = attributes.get("output_operand_aliases")
        entries = [_fields(file, each) for each in reader.elements(index)] if index is not None else []
        if not entries:
            return
        shapes = tuple(reader.shape(values[operand]) for operand in place.op.operands)
        found.append(
            CallAliases(
                path=places.path(place),
                target=_text_of(file, attributes.get("call_target_name")) or "",
                signature=Signature.of_results(shapes, tuple(map(reader.shape, place.op.results))),
                aliases=read_call(entries),
                location=places.source(place.op.location),
            )
        )

    visit(file.ir, look, lambda block, place: None, lambda op: op.name in named)
    return tuple(found)


def _fields(file: File, index: int) -> dict[str, Any]:
    """Return an alias of a call by the names that StableHLO has for its parts."""
    value = file.decode("attribute", index)
    if value is None or value.name != "output_operand_alias_v1":
        return {}
    return {
        "output_tuple_indices": value.field("outputTupleIndices"),
        "operand_index": value.field("operandIndex"),
        "operand_tuple_indices": value.field("operandTupleIndices"),
    }


class _Editor:
    """Replaces the attributes of aliases.

    Args:
        file: The file.
        entry: Its entry function.
    """

    def __init__(self, file: File, entry: _Entry) -> None:
        self._file = file
        self._entry = entry
        self._tables = Tables(file)
        self._writer = PlainWriter(self._tables)
        self._lost: set[int] = set()

    def write(self, arguments: tuple[Mapping[str, Plain], ...], module: Mapping[str, Plain]) -> None:
        """Give arguments and the module these attributes of aliases, and no others."""
        self._of_function(arguments)
        self._of_module(module)
        clear_leftovers(self._file, self._tables, self._lost)

    def _of_function(self, arguments: tuple[Mapping[str, Plain], ...]) -> None:
        entry, op = self._entry, self._entry.op
        changed = [
            {**_without(held, ARGUMENT_ATTRIBUTES), **{key: self._writer.argument(each) for key, each in new.items()}}
            for held, new in zip(entry.arguments, arguments, strict=True)
        ]
        if changed == entry.arguments:
            return
        layout = AttributeLayout(self._file, self._tables, in_properties=op.properties is not None)
        slots = property_slots(name := self._file.op_name(op.name))
        if slots is None:
            raise AliasError(f"how {name} keeps the attributes of its arguments is not known")
        inherent, discardable = layout.read(op, slots)
        # Where no argument has any, the library writes none.
        dictionaries = tuple(map(self._dictionary, changed)) if any(changed) else ()
        array = self._tables.vhlo("array_v1", dictionaries)
        self._lose(inherent.get("arg_attrs"), op.attributes if op.properties is None else None)
        op.properties, op.attributes = layout.write({**inherent, "arg_attrs": array}, discardable, slots, op)

    def _of_module(self, module: Mapping[str, Plain]) -> None:
        entry, op = self._entry, self._entry.module
        said = entry.plain_module()
        # An empty list, which HLO leaves behind, says nothing and may stay.
        gone = tuple(name for name, value in said.items() if name in module or value != [])
        if not gone and not module:
            return
        held = entry.reader.dictionary(op.attributes) if op.attributes is not None else {}
        changed = {
            **_without(held, gone),
            **{name: self._writer.module(value) for name, value in module.items()},
        }
        self._lose(op.attributes)
        op.attributes = self._tables.dictionary(changed)

    def _dictionary(self, held: Mapping[str, int]) -> int:
        pairs = sorted(held.items(), key=lambda pair: pair[0].encode())
        string = self._tables.vhlo
        return string("dict_v1", tuple((string("string_v1", self._tables.string(key)), each) for key, each in pairs))

    def _lose(self, *indices: int | None) -> None:
        self._lost.update(index for index in indices if index is not None)


def _without(held: Mapping[str, int], names: tuple[str, ...]) -> dict[str, int]:
    return {name: index for name, index in held.items() if name not in names}
