"""The function of an artifact that XLA enters: its signature, and the attributes of its arguments and results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from vhlo_tools.aliasing import Shape, Signature
from vhlo_tools.artifact.plain_attributes import PlainReader
from vhlo_tools.bytecode import File, Operation
from vhlo_tools.compat.places import attributes_of
from vhlo_tools.dialect import property_slots
from vhlo_tools.retargeting.layout import AttributeLayout
from vhlo_tools.retargeting.tables import Tables

__all__ = ["EntryFunction", "arguments_elsewhere", "find_entry", "replace_dictionaries", "text_of"]

_ENTRY: Final = "main"
_FUNCTION: Final = "vhlo.func_v"


@dataclass(slots=True)
class EntryFunction:
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

    @property
    def signature(self) -> Signature:
        """Its signature as XLA has it."""
        return Signature.of_results(self.parameters, self.results)


def find_entry(file: File) -> EntryFunction | None:
    """Return the function that XLA enters: ``main``, or the only one."""
    reader = PlainReader(file)
    functions = {_symbol(file, op): (module, op) for module, op in _functions(file)}
    if _ENTRY not in functions and len(functions) != 1:
        return None
    name = _ENTRY if _ENTRY in functions else next(iter(functions))
    module, op = functions[name]
    attributes = attributes_of(file, op)
    inputs, outputs = _types(file, attributes.get("function_type"))
    return EntryFunction(
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


def arguments_elsewhere(file: File, entry: EntryFunction | None) -> Iterator[tuple[str, int, dict[str, int]]]:
    """Yield the name of each other function, with the number and the attributes of each of its arguments."""
    reader = PlainReader(file)
    for _, op in _functions(file):
        if entry is None or op is not entry.op:
            index = attributes_of(file, op).get("arg_attrs")
            for number, each in enumerate(reader.elements(index) if index is not None else ()):
                yield _symbol(file, op), number, reader.dictionary(each)


def _functions(file: File) -> Iterator[tuple[Operation, Operation]]:
    """Yield each function with the module that it is in."""
    for module in file.ir.operations:
        for region in module.regions:
            for op in (op for block in region.blocks for op in block.operations):
                if file.op_name(op.name).startswith(_FUNCTION):
                    yield module, op


def _symbol(file: File, op: Operation) -> str:
    return text_of(file, attributes_of(file, op).get("sym_name")) or ""


def text_of(file: File, index: int | None) -> str | None:
    """Return the text that an attribute is; ``None`` if it is no string."""
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


def replace_dictionaries(
    file: File, tables: Tables, entry: EntryFunction, key: str, dictionaries: Sequence[Mapping[str, int]]
) -> set[int]:
    """Give the arguments or the results of a function other attributes, and return the attributes that it lost.

    Args:
        file: The file, which is edited.
        tables: Its tables.
        entry: The function.
        key: ``arg_attrs`` or ``res_attrs``.
        dictionaries: For each argument or result the indices of its attributes by name.

    Raises:
        UnsupportedFeatureError: If how the function keeps its attributes is not known.
        MalformedArtifactError: If it is damaged.
    """
    op = entry.op
    layout = AttributeLayout(file, tables, in_properties=op.properties is not None)
    slots = property_slots(file.op_name(op.name))
    inherent, discardable = layout.read(op, slots)
    # Where none has any, the library writes none.
    indices = tuple(_dictionary(tables, each) for each in dictionaries) if any(dictionaries) else ()
    lost = {inherent.get(key), op.attributes if op.properties is None else None}
    changed = {**inherent, key: tables.vhlo("array_v1", indices)}
    op.properties, op.attributes = layout.write(changed, discardable, slots, op)
    return {index for index in lost if index is not None}


def _dictionary(tables: Tables, held: Mapping[str, int]) -> int:
    pairs = sorted(held.items(), key=lambda pair: pair[0].encode())
    vhlo = tables.vhlo
    return vhlo("dict_v1", tuple((vhlo("string_v1", tables.string(name)), each) for name, each in pairs))
