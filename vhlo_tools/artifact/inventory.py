"""What an artifact holds, counted from its bytes: ops, types, attributes, functions, aliases, constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from vhlo_tools.aliasing import Alias, Declared, Donor
from vhlo_tools.artifact.aliases import read_aliases
from vhlo_tools.bytecode import File, Operation, Value, entry_name, walk
from vhlo_tools.bytecode.printing import Printer, inherent_attributes
from vhlo_tools.dialect import EntryKind

__all__ = ["Alias", "Constants", "Donor", "Function", "Inventory", "take_inventory"]

_DEEPEST: Final = 100
_LONGEST_LIST: Final = 1000
# Shared values are built once, but whoever copies or prints them takes them apart: real programs stay far below this.
_LARGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Function:
    """A function.

    Attributes:
        name: Its name.
        arguments: The types of its arguments, as StableHLO spells them.
        results: The types of its results.
        argument_attributes: The attributes of each argument, by name, as text or plain values.
        result_attributes: The same of each result.
    """

    name: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    argument_attributes: tuple[Mapping[str, Any], ...] = ()
    result_attributes: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Constants:
    """The constants of a program.

    Attributes:
        count: How many ops hold one.
        bytes: How many bytes they take in the file; one that several ops share counts once.
        largest: The bytes and the type of the largest; ``None`` if there is none.
    """

    count: int = 0
    bytes: int = 0
    largest: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """What an artifact holds.

    Attributes:
        ops: How often each op occurs, by name.
        types: How many different types of each kind there are, by name.
        attributes: The same of attributes, locations included.
        functions: Its functions, in order.
        aliases: The input-output aliases of ``main`` that count: those of the module if it has any, else of arguments.
        donors: The buffer donors of ``main``.
        constants: Its constants.
    """

    ops: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, int] = field(default_factory=dict)
    attributes: Mapping[str, int] = field(default_factory=dict)
    functions: tuple[Function, ...] = ()
    aliases: tuple[Alias, ...] = ()
    donors: tuple[Donor, ...] = ()
    constants: Constants = field(default_factory=Constants)


def take_inventory(file: File) -> Inventory:
    """Return what the artifact ``file`` holds; its constants are not looked at.

    Raises:
        MalformedArtifactError: If it is damaged.
    """
    ops = [item for item in walk(file.ir) if isinstance(item, Operation)]
    reader = _Reader(file)
    functions = tuple(reader.function(op) for op in ops if file.op_name(op.name) == "vhlo.func_v1")
    aliases = read_aliases(file, calls=False).declared
    return Inventory(
        ops=_sorted(Counter(op.name for op in ops), file.op_name),
        types=_kinds(file, "type"),
        attributes=_kinds(file, "attribute"),
        functions=functions,
        aliases=_numbered(aliases),
        donors=aliases.donors,
        constants=reader.constants(op for op in ops if file.op_name(op.name) == "vhlo.constant_v1"),
    )


def _numbered(declared: Declared) -> tuple[Alias, ...]:
    """Return aliases with the number of the result as attributes of arguments give it: 0 where there is but one."""
    if declared.module:
        return declared.aliases
    return tuple(replace(each, output_index=each.output_index or (0,)) for each in declared.aliases)


def _sorted(counts: Mapping[int, int], name: Any) -> dict[str, int]:
    named = [(name(index), number) for index, number in counts.items()]
    return dict(sorted(named, key=lambda item: (-item[1], item[0])))


def _kinds(file: File, kind: EntryKind) -> dict[str, int]:
    table = file.attributes if kind == "attribute" else file.types
    counts = Counter(entry_name(file, kind, entry) for entry in table)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


class _Reader:
    def __init__(self, file: File) -> None:
        self.file = file
        self.printer = Printer(file)
        # Shared, so that what is nested many times over is built once.
        self.values: dict[int, Any] = {}
        # How many plain values each of them is when nothing is shared.
        self.sizes: dict[int, int] = {}
        self.depth = 0

    def attributes_of(self, op: Operation) -> dict[str, int]:
        """Return all attributes of ``op`` by name, wherever its version of the format keeps them."""
        found = dict(inherent_attributes(self.file, op))
        dictionary = self.file.decode("attribute", op.attributes) if op.attributes is not None else None
        if dictionary is not None and dictionary.name not in ("dictionary", "dict_v1"):
            raise self.file.attributes[op.attributes or 0].malformed(
                f"{dictionary.dialect}.{dictionary.name} stands where the dictionary of an op belongs"
            )
        for key, value in dictionary.field("elements") if dictionary else ():
            found[self.printer.string(key).decode("utf-8", "replace")] = value
        return found

    def value(self, index: int) -> Any:
        """Return an attribute as a plain value where it is one, else as text."""
        if index not in self.values:
            if self.depth > _DEEPEST:
                entry = self.file.attributes[index]
                raise entry.malformed(f"attributes nest deeper than {_DEEPEST}, or in a circle")
            self.depth += 1
            value = self.file.decode("attribute", index)
            plain = _PLAIN.get(value.name) if value else None
            self.values[index] = plain(self, value) if plain else self.printer.attribute(index)
            self.depth -= 1
            references = value.field("elements") if value and plain in (_list, _dictionary) else ()
            contents = (each[1] if isinstance(each, tuple) else each for each in references)
            self.sizes[index] = 1 + sum(self.sizes[each] for each in contents)
            if self.sizes[index] > _LARGEST:
                entry = self.file.attributes[index]
                raise entry.malformed(f"a nested attribute unfolds to {self.sizes[index]} values")
        return self.values[index]

    def type(self, index: int) -> str:
        """Return a type as StableHLO spells it, or as VHLO does where it has no short spelling."""
        value = self.file.decode("type", index)
        if value is not None and value.name == "tensor_v1" and value.encoding.code == 20:
            return self.printer.builtin_tensor(index)[0]
        return self.printer.type(index)

    def function(self, op: Operation) -> Function:
        attributes = self.attributes_of(op)
        arguments, results = self.signature(attributes.get("function_type"))
        return Function(
            name=str(self.value(attributes["sym_name"])) if "sym_name" in attributes else "",
            arguments=tuple(map(self.type, arguments)),
            results=tuple(map(self.type, results)),
            argument_attributes=self.dictionaries(attributes.get("arg_attrs"), len(arguments)),
            result_attributes=self.dictionaries(attributes.get("res_attrs"), len(results)),
        )

    def signature(self, index: int | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the types of arguments and results; none where the function has no type of a function."""
        holder = self.file.decode("attribute", index) if index is not None else None
        if holder is None or holder.name != "type_v1":
            return (), ()
        kind = self.file.decode("type", holder.field("value"))
        return (kind.field("inputs"), kind.field("outputs")) if kind and kind.name == "func_v1" else ((), ())

    def dictionaries(self, index: int | None, number: int) -> tuple[Mapping[str, Any], ...]:
        """Return an array of ``number`` dictionaries; any other stands for that many empty ones."""
        values = self.value(index) if index is not None else []
        if not isinstance(values, list) or len(values) != number:
            return ({},) * number
        return tuple(each if isinstance(each, dict) else {} for each in values)

    def constants(self, ops: Iterator[Operation]) -> Constants:
        sizes: dict[int, int] = {}
        count = 0
        for op in ops:
            count += 1
            index = self.attributes_of(op).get("value")
            if index is not None:
                sizes[index] = len(self.file.attributes[index].data)
        if not sizes:
            return Constants(count)
        largest = max(sizes, key=lambda index: (sizes[index], -index))
        value = self.file.decode("attribute", largest)
        kind = self.type(value.field("type")) if value and value.name == "tensor_v1" else ""
        data = {index: self._data_size(index, size) for index, size in sizes.items()}
        return Constants(count, sum(data.values()), {"bytes": data[largest], "type": kind})

    def _data_size(self, index: int, size: int) -> int:
        value = self.file.decode("attribute", index)
        return len(value.field("data")) if value is not None and value.name == "tensor_v1" else size


def _integers(reader: _Reader, value: Value) -> Any:
    """Return a tensor of 64-bit integers as a list, which is what an array becomes on its way through VHLO."""
    text, shape, element = reader.printer.builtin_tensor(value.field("type"))
    data = bytes(value.field("data"))
    if element != "i64" or len(shape) != 1 or not 0 <= shape[0] <= _LONGEST_LIST or len(data) % 8:
        return f"{len(data)} bytes of {text}"
    numbers = [int.from_bytes(data[at : at + 8], "little", signed=True) for at in range(0, len(data), 8)]
    return numbers * (shape[0] if len(numbers) == 1 else 1)


def _list(reader: _Reader, value: Value) -> Any:
    return [reader.value(index) for index in value.field("elements")]


def _dictionary(reader: _Reader, value: Value) -> Any:
    pairs = value.field("elements")
    return {reader.printer.string(key).decode("utf-8", "replace"): reader.value(content) for key, content in pairs}


def _string(reader: _Reader, value: Value) -> Any:
    return reader.file.string(value.field("value"))


def _array(reader: _Reader, value: Value) -> Any:
    data = bytes(value.field("data"))
    if reader.type(value.field("element")) != "i64" or len(data) % 8 or len(data) > 8 * _LONGEST_LIST:
        return f"{len(data)} bytes of an array"
    return [int.from_bytes(data[at : at + 8], "little", signed=True) for at in range(0, len(data), 8)]


# By the name of the attribute; those of arguments are of VHLO, those of the module MLIR's own.
_PLAIN: Final[dict[str, Any]] = {
    **dict.fromkeys(("array", "array_v1"), _list),
    **dict.fromkeys(("dict_v1", "dictionary"), _dictionary),
    **dict.fromkeys(("string", "string_v1"), _string),
    **dict.fromkeys(("integer", "integer_v1"), lambda reader, value: int(reader.printer.number(value))),
    "bool_v1": lambda reader, value: bool(value.field("value")),
    "dense_array": _array,
    "tensor_v1": _integers,
    "unit": lambda reader, value: True,
}
