"""Functions of an artifact: the entry function of XLA, the attributes of its arguments as plain values, and names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal

from vhlo_tools.aliasing import Array, NamedValue, Opaque, Other, Signature, Tuple, Unit, entry_name
from vhlo_tools.bytecode import (
    Printer,
    Tables,
    attributes_of,
    collect_garbage,
    decode,
    encode,
    function_types,
    table_of,
)
from vhlo_tools.errors import InvalidProgramError

if TYPE_CHECKING:
    from vhlo_tools.aliasing import Plain, Shape
    from vhlo_tools.bytecode import Block, File, Operation, SourceLocations, Value
    from vhlo_tools.spec import EntryKind

# Conversion of attributes of a file to plain values and back, and of its types to shapes

#: The dialect of attributes: those of a module are builtin, all others of VHLO.
Dialect = Literal["builtin", "vhlo"]

_DYNAMIC: Final = -(1 << 63)
_WORD: Final = 8
_DEEPEST: Final = 100
# Shared values are expanded here; real programs stay far below this.
_LARGEST: Final = 1 << 17
_SIGNLESS: Final = 0


class PlainReader:
    def __init__(self, file: File) -> None:
        self._file = file
        self._printer = Printer(file)
        self._depth = 0
        self._left = _LARGEST
        # The height of what was read since the entry around it began.
        self._height = 0
        # Value, size and height of each entry that was read: files share entries, of which a few could otherwise
        # cost as much as a hundred thousand.
        self._known: dict[tuple[EntryKind, int], tuple[Any, int, int]] = {}
        self._elements: dict[int, str] = {}

    def attribute(self, index: int) -> Plain:
        found: Plain = self._unfolded("attribute", index, self._attribute)
        return found

    def shape(self, index: int) -> Shape:
        found: Shape = self._unfolded("type", index, self._shape)
        return found

    def _unfolded(self, kind: EntryKind, index: int, read: Callable[[int], Any]) -> Any:
        """Read an entry, within limits of depth and size that count each use of a shared entry."""
        if not self._depth:
            self._left = _LARGEST
        found, size, height = self._known.get((kind, index), (None, 1, 0))
        if self._depth + height > _DEEPEST or self._left < size:
            raise table_of(self._file, kind)[index].malformed(
                f"{kind}s nest deeper than {_DEEPEST} levels, or expand to more than {_LARGEST} values"
            )
        if (kind, index) in self._known:
            self._left -= size
        else:
            outer, left = self._height, self._left
            self._height = 0
            self._left -= 1
            self._depth += 1
            found = read(index)
            self._depth -= 1
            height, self._height = self._height, outer
            self._known[kind, index] = found, left - self._left, height
        self._height = max(self._height, height + 1)
        return found

    def _attribute(self, index: int) -> Plain:
        value = self._file.decode("attribute", index)
        plain = _PLAIN.get(value.name) if value is not None else None
        found = plain(self, value) if plain and value is not None else None
        return Other(self._printer.attribute(index)) if found is None else found

    def _shape(self, index: int) -> Shape:
        value = self._file.decode("type", index)
        if value is not None and value.name == "tensor_v1":
            return self._array(value)
        if value is not None and value.name == "tuple_v1":
            return Tuple(tuple(map(self.shape, value.field("elements"))))
        if value is not None and value.name == "token_v1":
            return Opaque()
        return Opaque(self._printer.type(index))

    def _array(self, value: Value) -> Array:
        # Only one of the two encodings of tensors has such an attribute.
        fields = {field.name for field in value.encoding.fields}
        held = self._file.decode("attribute", value.field("encoding")) if "encoding" in fields else None
        bounds = held.field("bounds") if held is not None and held.name == "type_extensions_v1" else ()
        sizes, limits = (
            tuple(None if size == _DYNAMIC else size for size in each) for each in (value.field("shape"), bounds)
        )
        return Array.of_stablehlo(self._element(value.field("element")), sizes, limits)

    def _element(self, index: int) -> str:
        """Cached, because arguments share few element types."""
        found = self._elements.get(index)
        if found is None:
            found = self._elements[index] = self._printer.builtin_element(index)
        return found

    def string(self, value: Value) -> str:
        return self._file.string(value.field("value"))

    def items(self, value: Value) -> list[Plain]:
        return list(map(self.attribute, value.field("elements")))

    def pairs(self, value: Value) -> dict[str, Plain]:
        pairs = value.field("elements")
        return {self._printer.string(key).decode("utf-8", "replace"): self.attribute(held) for key, held in pairs}

    def integer(self, value: Value) -> Plain:
        """Return an integer like MLIR's ``getInt``: signed, truncated to 64 bits."""
        text = self._element(value.field("type"))
        number = value.field("value")
        if isinstance(number, tuple):
            # Words of 64 bits, least significant first.
            number = number[0] if number else 0
        digits = text.lstrip("usi")
        bits = min(int(digits), 8 * _WORD) if digits.isdigit() else 64
        number &= (1 << bits) - 1
        # There are integers of no bits.
        number -= (number >> max(bits - 1, 0)) << bits
        return bool(number) if text == "i1" else number

    def integers(self, value: Value) -> tuple[int, ...] | None:
        """Return an array or a tensor of rank 1 with 64-bit integers; ``None`` for any other."""
        if value.name == "dense_array":
            number, element = value.field("size"), self._printer.builtin_element(value.field("element"))
        else:
            _, shape, element = self._printer.builtin_tensor(value.field("type"))
            number = shape[0] if len(shape) == 1 else -1
        data = bytes(value.field("data"))
        if element != "i64" or not 0 <= number <= _LARGEST or len(data) % _WORD:
            return None
        numbers = tuple(
            int.from_bytes(data[at : at + _WORD], "little", signed=True) for at in range(0, len(data), _WORD)
        )
        # A single element represents all if they are equal.
        return numbers * number if len(numbers) == 1 else numbers if len(numbers) == number else None


_PLAIN: Final[Mapping[str, Callable[[PlainReader, Value], Plain | None]]] = {
    **dict.fromkeys(("array", "array_v1"), PlainReader.items),
    **dict.fromkeys(("dict_v1", "dictionary"), PlainReader.pairs),
    **dict.fromkeys(("string", "string_v1"), PlainReader.string),
    **dict.fromkeys(("integer", "integer_v1"), PlainReader.integer),
    **dict.fromkeys(("dense", "dense_array", "tensor_v1"), PlainReader.integers),
    "bool_v1": lambda reader, value: bool(value.field("value")),
    "unit": lambda reader, value: Unit(),
}


class PlainWriter:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def argument(self, value: Plain) -> int:
        """Return an attribute of VHLO; integers have 32 bits, as frameworks write them on arguments."""
        structure = self._tables.structure
        match value:
            case bool():
                return structure("attribute", {"attribute": "bool_v1", "value": value})
            case int():
                return structure("attribute", {"attribute": "integer_v1", "type": {"type": "i32_v1"}, "value": value})
        raise ValueError(f"{value!r} is not an alias attribute of an argument")

    def module(self, value: Plain) -> int:
        """Return a builtin attribute; integers have 64 bits."""
        builtin = self._tables.builtin
        match value:
            case int() if not isinstance(value, bool):
                return builtin("integer", self._i64(), value)
            case str():
                return builtin("string", self._tables.string(value))
            case tuple():
                data = b"".join(number.to_bytes(_WORD, "little", signed=True) for number in value)
                return builtin("dense_array", self._i64(), len(value), data)
            case list():
                return builtin("array", tuple(map(self.module, value)))
            case dict():
                index = self._tables.dictionary({key: self.module(each) for key, each in value.items()})
                return builtin("dictionary", ()) if index is None else index
        raise ValueError(f"{value!r} is not an alias attribute of a module")

    def _i64(self) -> int:
        return self._tables.builtin_type("integer", 8 * _WORD << 2 | _SIGNLESS)


# Functions of an artifact, the entry function of XLA, and the attributes of arguments and results

_FUNCTION: Final = "vhlo.func_v"
_ENTRY: Final = b"main"
_COUNTS: Final = ("mhlo.num_replicas", "mhlo.num_partitions")


class EntryFunction:
    """A function of a program, and the module that contains it; each part is read on first access."""

    def __init__(self, file: File, module: Operation, op: Operation, name: str) -> None:
        self.file = file
        self.module = module
        self.op = op
        self.name = name

    @cached_property
    def reader(self) -> PlainReader:
        return PlainReader(self.file)

    @cached_property
    def attributes(self) -> Mapping[str, int]:
        return attributes_of(self.file, self.op)

    @cached_property
    def module_attributes(self) -> Mapping[str, int]:
        return attributes_of(self.file, self.module)

    @cached_property
    def types(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Types of arguments and results; empty without a function type."""
        return function_types(self.file, self.attributes.get("function_type")) or ((), ())

    @cached_property
    def signature(self) -> Signature:
        inputs, outputs = self.types
        return Signature.of_results(tuple(map(self.reader.shape, inputs)), tuple(map(self.reader.shape, outputs)))

    @cached_property
    def arguments(self) -> list[Mapping[str, int]]:
        return self._dictionaries("arg_attrs", 0)

    @cached_property
    def results(self) -> list[Mapping[str, int]]:
        return self._dictionaries("res_attrs", 1)

    @property
    def body(self) -> Block | None:
        """Block of the arguments; ``None`` for a declaration."""
        return next((block for region in self.op.regions for block in region.blocks), None)

    @property
    def has_argument_attributes(self) -> bool:
        return bool(self.file.elements(self.attributes.get("arg_attrs")))

    def _dictionaries(self, key: str, side: int) -> list[Mapping[str, int]]:
        """Return an array of dictionaries; one of another length than the values reads as empty dictionaries."""
        number = len(self.types[side])
        elements = self.file.elements(self.attributes.get(key)) or ()
        # The names must survive unchanged when the attributes are written again.
        found = [self.file.dictionary(each, errors="surrogateescape") or {} for each in elements]
        return found if len(found) == number else [{} for _ in range(number)]


def functions_in(file: File, *, bodies: bool = True) -> Iterator[EntryFunction]:
    """Without ``bodies`` less of the program is decoded."""
    for module in (file.ir if bodies else file.outline).operations:
        for region in module.regions:
            for op in (op for block in region.blocks for op in block.operations):
                if file.op_name(op.name).startswith(_FUNCTION):
                    yield EntryFunction(file, module, op, file.text(attributes_of(file, op).get("sym_name")) or "")


def devices_of(file: File) -> tuple[int, int]:
    """Return the numbers of replicas and of partitions that a module says it is for, 1 where it says none."""
    function = next(functions_in(file, bodies=False), None)
    held = function.module_attributes if function else {}
    said = [function.reader.attribute(held[name]) if function and name in held else 1 for name in _COUNTS]
    replicas, partitions = (each if type(each) is int and each > 0 else 1 for each in said)
    return replicas, partitions


def without_entry(data: bytes) -> bytes:
    """Return an artifact in which ``main``, and whatever else is called so, has another name."""
    file = decode(data)
    other = next(name for name in (b"main_%d" % number for number in count()) if name not in file.strings)
    file.strings[:] = [other if each == _ENTRY else each for each in file.strings]
    return encode(file)


def find_entry(file: File) -> EntryFunction | None:
    """Return the function that XLA enters: ``main``, or the only one."""
    return entry_of(functions_in(file))


def entry_of(functions: Iterable[EntryFunction]) -> EntryFunction | None:
    named = {each.name: each for each in functions}
    name = entry_name(named)
    return None if name is None else named[name]


def replace_dictionaries(
    file: File, tables: Tables, entry: EntryFunction, key: str, dictionaries: Sequence[Mapping[str, int]]
) -> set[int]:
    """Replace ``arg_attrs`` or ``res_attrs`` (``key``), and return the attributes that the function no longer has."""
    # Imported here because most programs are only read.
    from vhlo_tools.bytecode import change_attributes

    vhlo, indices = tables.vhlo, []
    # If all dictionaries are empty, the library writes an empty array.
    for held in dictionaries if any(dictionaries) else ():
        pairs = sorted(held.items(), key=lambda pair: pair[0].encode("utf-8", "surrogateescape"))
        named = tuple((vhlo("string_v1", tables.string(name)), each) for name, each in pairs)
        indices.append(vhlo("dict_v1", named))
    return change_attributes(file, tables, entry.op, {key: vhlo("array_v1", tuple(indices))})


# Reader and writer of the names of arguments and results of an artifact's entry function
#
# The name of an argument is the one with which its location begins, as JAX writes it, and the name of a result is the
# attribute ``jax.result_info``. Names are written in the same form, so that they survive all transformations.

_RESULT: Final = "jax.result_info"
# The depth to which locations are searched for a name.
_DEEPEST_LOCATION: Final = 16


def read_parameters(file: File, entry: EntryFunction, places: SourceLocations) -> tuple[NamedValue, ...]:
    """Return the names of arguments, and their locations in the user's source."""
    block = entry.body
    # A declaration has no arguments with locations.
    locations = [argument.location for argument in block.arguments] if block else []
    found = [NamedValue(_name(file, each), None if each is None else places.source(each)) for each in locations]
    missing = [NamedValue()] * (len(entry.types[0]) - len(found))
    return tuple([*found, *missing][: len(entry.types[0])])


def read_results(entry: EntryFunction) -> tuple[NamedValue, ...]:
    held = (entry.reader.attribute(each[_RESULT]) if _RESULT in each else None for each in entry.results)
    return tuple(NamedValue(name if isinstance(name, str) and name else None) for name in held)


def write_names(file: File, parameters: Mapping[int, str], results: Mapping[int, str]) -> None:
    """Name arguments and results of the entry function by number; others keep theirs."""
    entry = find_entry(file)
    block = entry.body if entry else None
    if entry is None or block is None or not _has(parameters, block.arguments) or not _has(results, entry.types[1]):
        raise InvalidProgramError("the program has no function main with the arguments and results that are named")
    tables = Tables(file)
    for number, name in parameters.items():
        argument = block.arguments[number]
        held = file.decode("attribute", argument.location) if argument.location is not None else None
        # The name replaces the one with which the location begins, if any.
        child = held.field("child") if held is not None and held.name == "name" else argument.location
        if child is None:
            child = tables.builtin("unknown")
        location = tables.builtin("name", tables.builtin("string", tables.string(name)), child)
        block.arguments[number] = argument._replace(location=location)
    changed = [
        {**held, _RESULT: tables.vhlo("string_v1", tables.string(results[number]))} if number in results else held
        for number, held in enumerate(entry.results)
    ]
    if changed != entry.results:
        collect_garbage(file, tables, replace_dictionaries(file, tables, entry, "res_attrs", changed))


def _has(numbers: Mapping[int, str], values: Sequence[object]) -> bool:
    return all(0 <= number < len(values) for number in numbers)


def _name(file: File, location: int | None) -> str | None:
    for _ in range(_DEEPEST_LOCATION):
        value = file.decode("attribute", location) if location is not None else None
        if value is None or value.name not in ("name", "callsite", "fused"):
            return None
        if value.name == "name":
            return file.text(value.field("name"))
        held = value.field("locations") if value.name == "fused" else (value.field("callee"),)
        location = held[0] if held else None
    return None
