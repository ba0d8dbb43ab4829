"""Contents of an artifact, counted from its bytes: ops, types, attributes, functions, aliases, constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.aliasing import Alias, Donor
from vhlo_tools.artifact.aliases import read_aliases
from vhlo_tools.bytecode import Printer, attributes_of, entry_name, function_types, heads_in, table_of, visit
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.bytecode import File, Head, Operation, Value
    from vhlo_tools.spec import EntryKind

_DEEPEST: Final = 100
_LONGEST_LIST: Final = 1000
_NESTED: Final = ("array", "array_v1", "dict_v1", "dictionary")
# Shared values are built once, but copying or printing expands them: real programs stay far below this.
_LARGEST: Final = 1 << 20
# So many characters count as one value, and so many are the limit on those of all signatures: one long name or type may
# be that of all.
_TEXT: Final = 64
_LONGEST: Final = _TEXT * _LARGEST


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
        lambda head: file.op_name(head.name) == "vhlo.func_v1",
    )
    declared = read_aliases(file, calls=False, names=False).declared
    aliases = declared.aliases
    if not declared.module:
        # Result numbers as in attributes of arguments: 0 if there is only one result.
        aliases = tuple(replace(each, output_index=each.output_index or (0,)) for each in aliases)
    return Inventory(
        ops=_by_number([(file.op_name(index), number) for index, number in ops.items()]),
        types=_kinds(file, "type"),
        attributes=_kinds(file, "attribute"),
        functions=tuple(functions),
        aliases=aliases,
        donors=declared.donors,
        constants=reader.constants(
            {head: count for head, count in heads.items() if file.op_name(head.name) == "vhlo.constant_v1"}
        ),
    )


def _by_number(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    return dict(sorted(counts, key=lambda item: (-item[1], item[0])))


def _kinds(file: File, kind: EntryKind) -> dict[str, int]:
    table = table_of(file, kind)
    counts: Counter[str] = Counter()
    codes = table.codes
    for _, run in table.groups():
        for code, count in Counter(codes[run.start : run.stop]).items():
            if code:
                counts[entry_name(file, kind, table[codes.index(code, run.start)])] += count
            else:
                # Text, codes of several bytes, and nothing at all.
                counts.update(entry_name(file, kind, table[index]) for index in run if not codes[index])
    return _by_number(counts.items())


class _InventoryReader:
    def __init__(self, file: File) -> None:
        self.file = file
        self.printer = Printer(file)
        # Shared, so that a value nested many times is built once.
        self.values: dict[int, Any] = {}
        # The number of plain values in each without sharing.
        self.sizes: dict[int, int] = {}
        self.depth = 0
        # The number of characters of the signatures so far.
        self.shown = 0

    def value(self, index: int) -> Any:
        """Return an attribute as a plain value if possible, else as text."""
        if index not in self.values:
            if self.depth > _DEEPEST:
                entry = self.file.attributes[index]
                raise entry.malformed(f"attributes nest deeper than {_DEEPEST} levels, or in a cycle")
            self.depth += 1
            value = self.file.decode("attribute", index)
            self.values[index] = self.printer.attribute(index) if value is None else self.plain(index, value)
            self.depth -= 1
            references = value.field("elements") if value is not None and value.name in _NESTED else ()
            contents = (each[1] if isinstance(each, tuple) else each for each in references)
            found = self.values[index]
            own = 1 + len(found) // _TEXT if isinstance(found, str) else 1
            self.sizes[index] = own + sum(self.sizes[each] for each in contents)
            if self.sizes[index] > _LARGEST:
                entry = self.file.attributes[index]
                raise entry.malformed(f"a nested attribute expands to {self.sizes[index]} values")
        return self.values[index]

    def plain(self, index: int, value: Value) -> Any:
        """Attributes of arguments belong to VHLO, those of the module to the builtin dialect."""
        match value.name:
            case "array" | "array_v1":
                return [self.value(each) for each in value.field("elements")]
            case "dict_v1" | "dictionary":
                pairs = value.field("elements")
                return {self.printer.string(key).decode("utf-8", "replace"): self.value(held) for key, held in pairs}
            case "string" | "string_v1":
                return self.file.string(value.field("value"))
            case "integer" | "integer_v1":
                content = value.field("value")
                # Words of 64 bits, of a type that no version of StableHLO has.
                is_wide = isinstance(content, tuple)
                return f"an integer of {len(content)} words" if is_wide else int(self.printer.number(value))
            case "bool_v1":
                return bool(value.field("value"))
            case "unit":
                return True
            case "dense_array":
                is_list = self.printer.short_type(value.field("element")) == "i64"
                return _integers(value, "an array", is_list=is_list)
            case "tensor_v1":
                # VHLO converts integer arrays to tensors; a single element represents all if they are equal.
                text, shape, element = self.printer.builtin_tensor(value.field("type"))
                is_list = element == "i64" and len(shape) == 1 and 0 <= shape[0] <= _LONGEST_LIST
                numbers = _integers(value, text, is_list=is_list)
                return numbers * shape[0] if isinstance(numbers, list) and len(numbers) == 1 else numbers
        return self.printer.attribute(index)

    def function(self, op: Operation) -> Function:
        attributes = attributes_of(self.file, op)
        arguments, results = function_types(self.file, attributes.get("function_type")) or ((), ())
        name = str(self.value(attributes["sym_name"])) if "sym_name" in attributes else ""
        sides = [tuple(map(self.printer.short_type, side)) for side in (arguments, results)]
        self.shown += len(name) + sum(len(each) for side in sides for each in side)
        if self.shown > _LONGEST:
            entry = self.file.attributes[op.location]
            raise entry.malformed(f"the signatures of functions have {self.shown} characters; the limit is {_LONGEST}")
        return Function(
            name=name,
            arguments=sides[0],
            results=sides[1],
            argument_attributes=self.dictionaries(attributes.get("arg_attrs"), len(arguments)),
            result_attributes=self.dictionaries(attributes.get("res_attrs"), len(results)),
        )

    def dictionaries(self, index: int | None, number: int) -> tuple[Mapping[str, Any], ...]:
        """Return ``number`` dictionaries, empty ones if the array has another length."""
        values = self.value(index) if index is not None else []
        if not isinstance(values, list) or len(values) != number:
            return ({},) * number
        return tuple(each if isinstance(each, dict) else {} for each in values)

    def constants(self, heads: Mapping[Head, int]) -> Constants:
        held = {attributes_of(self.file, head).get("value") for head in heads}
        entries = {index: self.file.attributes[index] for index in held if index is not None}
        count = sum(heads.values())
        if not entries:
            return Constants(count)
        values = {index: self.file.decode("attribute", index) for index in entries}
        tensors = {index: value for index, value in values.items() if value and value.name == "tensor_v1"}
        sizes = {
            index: len(tensors[index].field("data") if index in tensors else entry.data)
            for index, entry in entries.items()
        }
        largest = max(entries, key=lambda index: (len(entries[index].data), -index))
        kind = self.printer.short_type(tensors[largest].field("type")) if largest in tensors else ""
        return Constants(count, sum(sizes.values()), {"bytes": sizes[largest], "type": kind})


def _integers(value: Value, what: str, *, is_list: bool) -> list[int] | str:
    """Return 64-bit integers as a list, anything else, and very many, by their size."""
    data = bytes(value.field("data"))
    if not is_list or len(data) % 8 or len(data) > 8 * _LONGEST_LIST:
        return f"{len(data)} bytes of {what}"
    return [int.from_bytes(data[at : at + 8], "little", signed=True) for at in range(0, len(data), 8)]
