"""Printer of attributes and types as MLIR text, without MLIR.

The syntax of VHLO is that of ``stablehlo/dialect/VhloAttrs.td`` and ``VhloTypes.td``; that of the builtin dialect, and
of numbers, strings and names, is in the MLIR language reference (``mlir/docs/LangRef.md``) and
``mlir/lib/AsmParser/Lexer.cpp``. Entries that remain bytes are printed by name, and cannot be parsed again.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Sequence
from typing import Final

from vhlo_tools.bytecode.codec import Value, bits_of, entry_name
from vhlo_tools.bytecode.entries import Entry
from vhlo_tools.bytecode.file import File, table_of
from vhlo_tools.lazy import pattern
from vhlo_tools.spec import EntryKind, find_enum

_BARE: Final = pattern(r"[A-Za-z_][\w$.]*", re.ASCII)


def escaped(text: bytes) -> str:
    parts = [
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else "\\\\" if byte == ord("\\") else f"\\{byte:02X}"
        for byte in text
    ]
    return f'"{"".join(parts)}"'


def bare_or_quoted(name: bytes) -> str:
    text = name.decode("utf-8", "replace")
    return text if _BARE.fullmatch(text) else escaped(name)


def double(value: float) -> str:
    """The lexer requires a point before an exponent."""
    text = repr(value)
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent}"


# The struct formats for converting bits to a float, for the types that Python has.
_LAYOUTS: Final = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}


def float_of_bits(bits: int, name: str, width: int) -> str:
    """Return a float as a decimal if that is exact, else as hexadecimal."""
    bits &= (1 << width) - 1
    if name == "bf16":
        name, bits = "f32", bits << 16
    if name in _LAYOUTS:
        store, load = _LAYOUTS[name]
        value: float = struct.unpack(load, struct.pack(store, bits))[0]
        if math.isfinite(value):
            return double(value)
    return f"0x{bits:0{(width + 3) // 4}X}"


_DYNAMIC: Final = -(1 << 63)
_DEEPEST: Final = 100
_LONGEST_STACK: Final = 10_000
# Text that is longer than this, and than all strings and constants of the file, results from repeated nesting.
_LONGEST: Final = 1 << 24
# The limit on the text joined for one attribute or type, as a multiple: each part counts at every level of nesting.
_LEVELS: Final = 8
#: The types of tensors that are kept, which are larger than what they are read from.
_MOST_KEPT: Final = 4096

# VHLO's scalar types with another name in the builtin dialect.
_BUILTIN_NAMES: Final = {"bool_v1": "i1", "index_v1": "index", "tf31_v1": "tf32"}


class Printer:
    """Printer of attributes and types, each of which is printed once."""

    def __init__(self, file: File) -> None:
        self.file = file
        self._texts: dict[tuple[EntryKind, int], str] = {}
        self._short_types: dict[int, str] = {}
        self._builtin_tensors: dict[int, tuple[str, tuple[int, ...], str]] = {}
        self._depth = 0
        # A byte of a string or a constant is printed as up to three characters.
        self._longest = _LONGEST + 4 * sum(section.size for section in file.sections)
        self._unfolded = 0

    def attribute(self, index: int) -> str:
        return self._entry("attribute", index)

    def type(self, index: int) -> str:
        return self._entry("type", index)

    def location(self, index: int) -> str:
        """Return a location as within ``loc(...)``."""
        # Call stacks are long in real programs; they are printed from the outermost caller on, without recursion.
        chain: list[int] = []
        while ("attribute", index) not in self._texts and index not in chain[-_DEEPEST:]:
            value = self.file.decode("attribute", index)
            if value is None or value.name != "callsite" or len(chain) > _LONGEST_STACK:
                break
            chain.append(index)
            index = value.field("caller")
        texts = [self.attribute(each) for each in (index, *reversed(chain))]
        return texts[-1]

    def string(self, index: int) -> bytes:
        text = self.file.raw_text(index)
        if text is None:
            raise self._at("attribute", index).malformed(f"attribute {index} is used as a string, but is not a string")
        return text

    def _entry(self, kind: EntryKind, index: int) -> str:
        key = (kind, index)
        if self._depth == 0:
            self._unfolded = 0
        if key not in self._texts:
            if self._depth > _DEEPEST:
                raise self._at(kind, index).malformed(f"{kind}s nest deeper than {_DEEPEST} levels, or in a cycle")
            self._depth += 1
            text = self._print(kind, index)
            self._depth -= 1
            if len(text) > self._longest:
                raise self._at(kind, index).malformed(f"a nested {kind} expands to {len(text)} characters")
            self._texts[key] = text
        # Checked before joining: a list of many long texts would not fit into memory.
        self._unfolded += len(self._texts[key])
        if self._depth and self._unfolded > _LEVELS * self._longest:
            raise self._at(kind, index).malformed(f"a nested {kind} expands to {self._unfolded} characters or more")
        return self._texts[key]

    def _at(self, kind: EntryKind, index: int) -> Entry:
        return table_of(self.file, kind)[index]

    def _print(self, kind: EntryKind, index: int) -> str:
        entry = self._at(kind, index)
        if not entry.custom:
            return bytes(entry.data).rstrip(b"\0").decode("utf-8", "replace")
        value = self.file.decode(kind, index)
        if value is None:
            return f"<{entry_name(self.file, kind, entry)}: 0x{bytes(entry.data).hex()}>"
        if value.dialect == "vhlo":
            return self._vhlo_type(value) if kind == "type" else self._vhlo_attribute(value)
        return self._builtin_type(value) if kind == "type" else self._builtin_attribute(value)

    def _types(self, indices: Sequence[int]) -> str:
        return ", ".join(map(self.type, indices))

    def _attributes(self, indices: Sequence[int]) -> str:
        return f"[{', '.join(map(self.attribute, indices))}]"

    def _shaped(self, value: Value) -> str:
        return f"{_shape(value.field('shape'))}{self.type(value.field('element'))}"

    # VHLO

    def _vhlo_type(self, value: Value) -> str:
        match value.name:
            case "buffer_v1":
                body = self._shaped(value)
            case "complex_v1" | "unranked_tensor_v1":
                body = self.type(value.field("element"))
            case "func_v1":
                inputs, outputs = self._types(value.field("inputs")), self._types(value.field("outputs"))
                body = f"({inputs or '()'}) -> {outputs or '()'}"
            case "future_v1" | "tuple_v1":
                body = self._types(value.field("elements"))
            case "quant_v1" | "quant_per_axis_v1":
                body = self._quantized(value)
            case "tensor_v1":
                encoding = f", {self.attribute(value.field('encoding'))}" if value.encoding.code == 21 else ""
                body = f"{self._shaped(value)}{encoding}"
            case _:
                return f"!vhlo.{value.name}"
        return f"!vhlo.{value.name}<{body}>"

    def _quantized(self, value: Value) -> str:
        types = f"{self.type(value.field('storage'))}:{self.type(value.field('expressed'))}"
        limits = f"{value.field('storage_min')}:{value.field('storage_max')}, {value.field('flags')}"
        if value.name == "quant_v1":
            return f"{types}, {_f64(value.field('scale'))}:{value.field('zero_point')}, {limits}"
        scales = ", ".join(map(_f64, value.field("scales")))
        points = ", ".join(map(str, value.field("zero_points")))
        return f"{types}, {value.field('dimension')}, [{scales}], [{points}], {limits}"

    def _vhlo_attribute(self, value: Value) -> str:
        field = value.encoding.fields[0]
        if field.enum is not None:
            enum, number = find_enum(field.enum), value.fields[0]
            case = next((each.name for each in enum.cases if each.value == number), None) if enum else None
            return f"#vhlo<{value.name} {number if case is None else case}>"
        match value.name:
            case "array_v1":
                body = self._attributes(value.field("elements"))
            case "bool_v1":
                body = str(bool(value.field("value"))).lower()
            case "dict_v1":
                pairs = (f"{self.attribute(key)} = {self.attribute(each)}" for key, each in value.field("elements"))
                body = f"{{{', '.join(pairs)}}}"
            case "float_v1":
                body = f"{self.number(value)} : {self.type(value.field('type'))}"
            case "integer_v1":
                body = f"{self.number(value)} : {self.builtin_element(value.field('type'))}"
            case "string_v1":
                body = escaped(self.file.strings[value.field("value")])
            case "tensor_v1":
                body = self._dense(value)
            case "type_v1":
                body = self.type(value.field("value"))
            case _:
                body = ", ".join(self._fields(value))
        return f"#vhlo.{value.name}<{body}>"

    def _fields(self, value: Value) -> Iterator[str]:
        """Absent fields are omitted."""
        for field, content in zip(value.encoding.fields, value.fields, strict=True):
            if content is None:
                continue
            if "attribute" in field.kind:
                text = self.attribute(content)
            elif field.kind == "f64":
                text = _f64(content)
            elif field.is_list:
                text = f"[{', '.join('?' if each == _DYNAMIC else str(each) for each in content)}]"
            else:
                text = str(content)
            yield f"{field.name} = {text}"

    # Builtin

    def _builtin_type(self, value: Value) -> str:
        match value.name:
            case "complex":
                return f"complex<{self.type(value.field('element'))}>"
            case "function":
                return f"({self._types(value.field('inputs'))}) -> ({self._types(value.field('results'))})"
            case "integer":
                width, sign = value.fields[0] >> 2, value.fields[0] & 3
                return f"{('i', 'si', 'ui', '?')[sign]}{width}"
            case "memref" | "tensor" | "vector":
                extra = f", {self.attribute(value.field('encoding'))}" if value.encoding.code == 14 else ""
                return f"{value.name}<{self._shaped(value)}{extra}>"
            case "tuple":
                return f"tuple<{self._types(value.field('elements'))}>"
            case "unranked_memref" | "unranked_tensor":
                return f"{value.name.removeprefix('unranked_')}<*x{self.type(value.field('element'))}>"
        # Types without parameters are printed by name.
        return value.name

    def _builtin_attribute(self, value: Value) -> str:
        match value.name:
            case "array":
                return self._attributes(value.field("elements"))
            case "callsite":
                return f"callsite({self.location(value.field('callee'))} at {self.location(value.field('caller'))})"
            case "dense":
                return self._dense(value)
            case "dense_array":
                return self._dense_array(value)
            case "dense_resource":
                return f"<resource {value.field('key')}> : {self.type(value.field('type'))}"
            case "dictionary":
                names = ((bare_or_quoted(self.string(key)), each) for key, each in value.field("elements"))
                return f"{{{', '.join(f'{name} = {self.attribute(each)}' for name, each in names)}}}"
            case "distinct":
                return f"distinct[0]<{self.attribute(value.field('referenced'))}>"
            case "file_line_col":
                file = escaped(self.string(value.field("file")))
                return f"{file}:{value.field('line')}:{value.field('column')}"
            case "file_line_col_range":
                file, numbers = escaped(self.string(value.field("file"))), value.field("lines_and_columns")
                line, column = (*numbers, 0, 0)[:2]
                ends = {3: f" to :{numbers[-1]}", 4: f" to {':'.join(map(str, numbers[2:]))}"} if numbers[2:] else {}
                return f"{file}:{line}:{column}{ends.get(len(numbers), '')}"
            case "float" | "integer":
                kind, text = self.type(value.field("type")), self.number(value)
                return ("true" if text != "0" else "false") if kind == "i1" else f"{text} : {kind}"
            case "fused":
                metadata = f"<{self.attribute(value.field('metadata'))}>" if value.encoding.code == 13 else ""
                return f"fused{metadata}[{', '.join(map(self.location, value.field('locations')))}]"
            case "name":
                child = self.location(value.field("child"))
                return escaped(self.string(value.field("name"))) + ("" if child == "unknown" else f"({child})")
            case "sparse":
                return f"<sparse : {self.type(value.field('type'))}>"
            case "string":
                text = escaped(self.file.strings[value.field("value")])
                return f"{text} : {self.type(value.field('type'))}" if value.encoding.code == 3 else text
            case "symbol_ref":
                nested = value.field("nested") if value.encoding.code == 5 else ()
                root = bare_or_quoted(self.string(value.field("root")))
                return "::".join([f"@{root}", *map(self.attribute, nested)])
            case "type":
                return self.type(value.field("value"))
        # ``unit`` and ``unknown``.
        return value.name

    def _dense_array(self, value: Value) -> str:
        element = self.type(value.field("element"))
        data, size = bytes(value.field("data")), value.field("size")
        layout = {"i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "f32": "f", "f64": "d"}.get(element)
        if layout is None or struct.calcsize(layout) * size != len(data):
            return f"<array of {size} {element}: 0x{data.hex()}>"
        numbers = struct.unpack(f"<{size}{layout}", data)
        words = [double(x) if isinstance(x, float) else str(x).lower() for x in numbers]
        return f"array<{element}: {', '.join(words)}>" if words else f"array<{element}>"

    def builtin_element(self, index: int) -> str:
        """Return an element type of VHLO in the syntax of the builtin dialect."""
        value = self.file.decode("type", index)
        if value is None or value.dialect != "vhlo":
            return self.type(index)
        if value.name == "complex_v1":
            part = self.file.decode("type", value.field("element"))
            if part is None or part.encoding.fields:
                raise self._at("type", index).malformed("the element of a complex type is not a number type")
            return f"complex<{self.builtin_element(value.field('element'))}>"
        if value.encoding.fields:
            return self.type(index)
        return _BUILTIN_NAMES.get(value.name, value.name.removesuffix("_v1"))

    def builtin_tensor(self, index: int) -> tuple[str, tuple[int, ...], str]:
        """Return a tensor type in builtin syntax, its shape and element type; both are empty for other types."""
        if index not in self._builtin_tensors:
            if len(self._builtin_tensors) >= _MOST_KEPT:
                self._builtin_tensors.clear()
            self._builtin_tensors[index] = self._builtin_tensor(index)
        return self._builtin_tensors[index]

    def _builtin_tensor(self, index: int) -> tuple[str, tuple[int, ...], str]:
        value = self.file.decode("type", index)
        if value is None or value.name not in ("tensor_v1", "tensor"):
            return self.type(index), (), ""
        element = self.builtin_element(value.field("element"))
        shape = value.field("shape")
        return f"tensor<{_shape(shape)}{element}>", shape, element

    def short_type(self, index: int) -> str:
        """Return a type in StableHLO syntax, or in VHLO syntax if that has no short form."""
        # Few types have many arguments: of a thousand functions of 600 arguments, in 1.3 MB, each was printed anew.
        if index not in self._short_types:
            value = self.file.decode("type", index)
            is_short = value is not None and value.name == "tensor_v1" and value.encoding.code == 20
            self._short_types[index] = self.builtin_tensor(index)[0] if is_short else self.type(index)
        return self._short_types[index]

    def _dense(self, value: Value) -> str:
        text, shape, element = self.builtin_tensor(value.field("type"))
        data = value.field("data")
        number = math.prod(shape)
        if number <= 0:
            return f"dense<> : {text}"
        # Brackets nest as deep as the shape.
        if len(shape) <= _DEEPEST and element == "i1" and (booleans := _booleans(bytes(data), number)):
            return f"dense<{_nested(booleans, shape)}> : {text}"
        return f'dense<"0x{bytes(data).hex().upper()}"> : {text}'

    def number(self, value: Value) -> str:
        index, content = value.field("type"), value.field("value")
        bits, name = bits_of(self.file, index), self.builtin_element(index)
        if value.name.startswith("float"):
            return float_of_bits(content, name, bits) if isinstance(content, int) else str(content)
        if bits <= 8 and isinstance(content, int) and not name.startswith("ui"):
            content = content - (1 << bits) if bits > 1 and content >> (bits - 1) else content
        return str(content)


def _shape(sizes: Sequence[int]) -> str:
    return "".join(f"{'?' if size == _DYNAMIC else size}x" for size in sizes)


def _f64(bits: int) -> str:
    return double(struct.unpack("<d", struct.pack("<q", bits))[0])


def _booleans(data: bytes, number: int) -> list[str] | str:
    """Return an i1 tensor: packed eight to a byte, a byte each in old files, or one for all; ``[]`` if none fits."""
    words = ("false", "true")
    if len(data) == 1 and number > 1 and (number > 8 or data[0] in (0x00, 0xFF)):
        return words[bool(data[0])]
    if len(data) == (number + 7) // 8 and len(data) != number:
        return [words[data[i // 8] >> i % 8 & 1] for i in range(number)]
    return [words[bool(byte)] for byte in data] if len(data) == number else []


def _nested(elements: list[str] | str, shape: Sequence[int]) -> str:
    if isinstance(elements, str):
        return elements
    if not shape:
        return elements[0]
    step = len(elements) // shape[0]
    return f"[{', '.join(_nested(elements[i : i + step], shape[1:]) for i in range(0, len(elements), step))}]"
