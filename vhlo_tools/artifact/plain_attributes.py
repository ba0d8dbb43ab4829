"""Conversion of attributes of a file to plain values and back, and of its types to shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from vhlo_tools.aliasing import Array, Opaque, Other, Tuple, Unit
from vhlo_tools.bytecode import Printer

if TYPE_CHECKING:
    from vhlo_tools.aliasing import Plain, Shape
    from vhlo_tools.bytecode import File, Tables, Value
    from vhlo_tools.spec import EntryKind

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
            table = self._file.attributes if kind == "attribute" else self._file.types
            raise table[index].malformed(
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
        element = self._element(value.field("element"))
        sizes = tuple(None if size == _DYNAMIC else size for size in value.field("shape"))
        # Only one of the two encodings of tensors has such an attribute.
        fields = {field.name for field in value.encoding.fields}
        held = self._file.decode("attribute", value.field("encoding")) if "encoding" in fields else None
        bounds = held.field("bounds") if held is not None and held.name == "type_extensions_v1" else ()
        return Array.of_stablehlo(element, sizes, tuple(None if size == _DYNAMIC else size for size in bounds))

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
        bits = min(_bits(text), 8 * _WORD)
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


def _bits(element: str) -> int:
    digits = element.lstrip("usi")
    return int(digits) if digits.isdigit() else 64


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
