"""Contents of an artifact, counted from its bytes: ops, types, attributes, functions, aliases, constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.aliasing import Alias, Donor
from vhlo_tools.artifact.aliases import read_aliases
from vhlo_tools.bytecode import Printer, attributes_of, entry_name, heads_in, visit
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.aliasing import Declared
    from vhlo_tools.bytecode import File, Head, Operation, Value
    from vhlo_tools.spec import EntryKind

_DEEPEST: Final = 100
_LONGEST_LIST: Final = 1000
# Shared values are built once, but copying or printing expands them: real programs stay far below this.
_LARGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Function:
    """A function.

    Attributes:
        name: Its name.
        arguments: The types of its arguments, in StableHLO syntax.
        results: The types of its results.
        argument_attributes: The attributes of each argument, by name, as text or plain values.
        result_attributes: The attributes of each result, likewise.
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
        count: The number of constant ops.
        bytes: The number of bytes of their values in the file; a value that several ops share counts once.
        largest: The size in bytes and the type of the largest; ``None`` if there is none.
    """

    count: int = 0
    bytes: int = 0
    largest: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """The contents of an artifact.

    Attributes:
        ops: The number of ops of each name.
        types: The number of different types of each name.
        attributes: The number of different attributes of each name, locations included.
        functions: Its functions, in order.
        aliases: The effective input-output aliases of ``main``: those of the module if it has any, else of arguments.
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
    """The values of constants are not read."""
    heads = heads_in(file.program)
    ops: Counter[int] = Counter()
    for head, count in heads.items():
        ops[head.name] += count
    reader = _InventoryReader(file)
    functions: list[Function] = []
    visit(
        file.program,
        lambda place, values: functions.append(reader.function(place.op)),
        lambda block, around: None,
        lambda head: file.op_name(head.name) == "vhlo.func_v1",
    )
    aliases = read_aliases(file, calls=False, names=False).declared
    return Inventory(
        ops=_sorted(ops, file.op_name),
        types=_kinds(file, "type"),
        attributes=_kinds(file, "attribute"),
        functions=tuple(functions),
        aliases=_numbered(aliases),
        donors=aliases.donors,
        constants=reader.constants(
            {head: count for head, count in heads.items() if file.op_name(head.name) == "vhlo.constant_v1"}
        ),
    )


def _numbered(declared: Declared) -> tuple[Alias, ...]:
    """Use result numbers as in attributes of arguments: 0 if there is only one result."""
    if declared.module:
        return declared.aliases
    return tuple(replace(each, output_index=each.output_index or (0,)) for each in declared.aliases)


def _sorted(counts: Mapping[int, int], name: Any) -> dict[str, int]:
    named = [(name(index), number) for index, number in counts.items()]
    return dict(sorted(named, key=lambda item: (-item[1], item[0])))


def _kinds(file: File, kind: EntryKind) -> dict[str, int]:
    table = file.attributes if kind == "attribute" else file.types
    counts: Counter[str] = Counter()
    codes = table.codes
    for _, run in table.groups():
        for code, count in Counter(codes[run.start : run.stop]).items():
            if code:
                counts[entry_name(file, kind, table[codes.index(code, run.start)])] += count
            else:
                # Text, codes of several bytes, and nothing at all.
                counts.update(entry_name(file, kind, table[index]) for index in run if not codes[index])
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


class _InventoryReader:
    def __init__(self, file: File) -> None:
        self.file = file
        self.printer = Printer(file)
        # Shared, so that a value nested many times is built once.
        self.values: dict[int, Any] = {}
        # The number of plain values in each without sharing.
        self.sizes: dict[int, int] = {}
        self.depth = 0
        # Few types have many arguments: of a thousand functions of 600 arguments, in 1.3 MB, each was printed anew.
        self.types: dict[int, str] = {}

    def value(self, index: int) -> Any:
        """Return an attribute as a plain value if possible, else as text."""
        if index not in self.values:
            if self.depth > _DEEPEST:
                entry = self.file.attributes[index]
                raise entry.malformed(f"attributes nest deeper than {_DEEPEST} levels, or in a cycle")
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
                raise entry.malformed(f"a nested attribute expands to {self.sizes[index]} values")
        return self.values[index]

    def type(self, index: int) -> str:
        """Return a type in StableHLO syntax, or in VHLO syntax if that has no short form."""
        if index not in self.types:
            value = self.file.decode("type", index)
            is_tensor = value is not None and value.name == "tensor_v1" and value.encoding.code == 20
            self.types[index] = self.printer.builtin_tensor(index)[0] if is_tensor else self.printer.type(index)
        return self.types[index]

    def function(self, op: Operation) -> Function:
        attributes = attributes_of(self.file, op)
        arguments, results = self.signature(attributes.get("function_type"))
        return Function(
            name=str(self.value(attributes["sym_name"])) if "sym_name" in attributes else "",
            arguments=tuple(map(self.type, arguments)),
            results=tuple(map(self.type, results)),
            argument_attributes=self.dictionaries(attributes.get("arg_attrs"), len(arguments)),
            result_attributes=self.dictionaries(attributes.get("res_attrs"), len(results)),
        )

    def signature(self, index: int | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
        holder = self.file.decode("attribute", index) if index is not None else None
        if holder is None or holder.name != "type_v1":
            return (), ()
        kind = self.file.decode("type", holder.field("value"))
        return (kind.field("inputs"), kind.field("outputs")) if kind and kind.name == "func_v1" else ((), ())

    def dictionaries(self, index: int | None, number: int) -> tuple[Mapping[str, Any], ...]:
        """Return ``number`` dictionaries, empty ones if the array has another length."""
        values = self.value(index) if index is not None else []
        if not isinstance(values, list) or len(values) != number:
            return ({},) * number
        return tuple(each if isinstance(each, dict) else {} for each in values)

    def constants(self, heads: Mapping[Head, int]) -> Constants:
        sizes: dict[int, int] = {}
        count = sum(heads.values())
        for head in heads:
            index = attributes_of(self.file, head).get("value")
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


def _integers(reader: _InventoryReader, value: Value) -> Any:
    """Return a tensor of 64-bit integers, to which VHLO converts an integer array, as a list."""
    text, shape, element = reader.printer.builtin_tensor(value.field("type"))
    data = bytes(value.field("data"))
    if element != "i64" or len(shape) != 1 or not 0 <= shape[0] <= _LONGEST_LIST or len(data) % 8:
        return f"{len(data)} bytes of {text}"
    numbers = [int.from_bytes(data[at : at + 8], "little", signed=True) for at in range(0, len(data), 8)]
    return numbers * (shape[0] if len(numbers) == 1 else 1)


def _list(reader: _InventoryReader, value: Value) -> Any:
    return [reader.value(index) for index in value.field("elements")]


def _dictionary(reader: _InventoryReader, value: Value) -> Any:
    pairs = value.field("elements")
    return {reader.printer.string(key).decode("utf-8", "replace"): reader.value(content) for key, content in pairs}


def _string(reader: _InventoryReader, value: Value) -> Any:
    return reader.file.string(value.field("value"))


def _integer(reader: _InventoryReader, value: Value) -> Any:
    content = value.field("value")
    if isinstance(content, tuple):
        # Words of 64 bits, of a type that no version of StableHLO has.
        return f"an integer of {len(content)} words"
    return int(reader.printer.number(value))


def _array(reader: _InventoryReader, value: Value) -> Any:
    data = bytes(value.field("data"))
    if reader.type(value.field("element")) != "i64" or len(data) % 8 or len(data) > 8 * _LONGEST_LIST:
        return f"{len(data)} bytes of an array"
    return [int.from_bytes(data[at : at + 8], "little", signed=True) for at in range(0, len(data), 8)]


# By the name of the attribute: those of arguments belong to VHLO, those of the module to the builtin dialect.
_PLAIN: Final[dict[str, Any]] = {
    **dict.fromkeys(("array", "array_v1"), _list),
    **dict.fromkeys(("dict_v1", "dictionary"), _dictionary),
    **dict.fromkeys(("string", "string_v1"), _string),
    **dict.fromkeys(("integer", "integer_v1"), _integer),
    "bool_v1": lambda reader, value: bool(value.field("value")),
    "dense_array": _array,
    "tensor_v1": _integers,
    "unit": lambda reader, value: True,
}
