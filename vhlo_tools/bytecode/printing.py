"""Printer of a file as MLIR text in the generic form, without MLIR."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Final

from vhlo_tools.bytecode.codec import Value, bits_of, entry_name
from vhlo_tools.bytecode.entries import Entry, Properties
from vhlo_tools.bytecode.file import File
from vhlo_tools.bytecode.primitives import ByteReader
from vhlo_tools.bytecode.program import Block, Head, Operation, Region
from vhlo_tools.spec import EntryKind, find_enum, find_op_version, spellings_of

# Numbers, strings and names in the syntax of MLIR text
#
# Source: the MLIR language reference (``mlir/docs/LangRef.md``) and ``mlir/lib/AsmParser/Lexer.cpp``.

_BARE: Final = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)


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


# Print attributes and types as MLIR text
#
# The syntax of VHLO is that of ``stablehlo/dialect/VhloAttrs.td`` and ``VhloTypes.td``; that of the builtin dialect is
# in the MLIR language reference. Entries that remain bytes are printed by name, and cannot be parsed again.

_DYNAMIC: Final = -(1 << 63)
_DEEPEST: Final = 100
_LONGEST_STACK: Final = 10_000
# Text that is longer than this, and than all strings and constants of the file, results from repeated nesting.
_LONGEST: Final = 1 << 24
# The limit on the text joined for one attribute or type, as a multiple: each part counts at every level of nesting.
_LEVELS: Final = 8

# VHLO's scalar types with another name in the builtin dialect.
_BUILTIN_NAMES: Final = {"bool_v1": "i1", "index_v1": "index", "tf31_v1": "tf32"}


class Printer:
    """Printer of attributes and types, each of which is printed once."""

    def __init__(self, file: File) -> None:
        self.file = file
        self._texts: dict[tuple[EntryKind, int], str] = {}
        self._short_types: dict[int, str] = {}
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
        return (self.file.attributes if kind == "attribute" else self.file.types)[index]

    def _print(self, kind: EntryKind, index: int) -> str:
        entry = self._at(kind, index)
        if not entry.custom:
            return bytes(entry.data).rstrip(b"\0").decode("utf-8", "replace")
        value = self.file.decode(kind, index)
        if value is None:
            return f"<{entry_name(self.file, kind, entry)}: 0x{bytes(entry.data).hex()}>"
        if value.dialect == "vhlo":
            return self._vhlo_type(value) if kind == "type" else self._vhlo_attribute(value)
        table = _BUILTIN_TYPES if kind == "type" else _BUILTIN_ATTRIBUTES
        return table[value.name](self, value)

    # VHLO

    def _vhlo_type(self, value: Value) -> str:
        print_body = _VHLO_TYPES.get(value.name)
        body = f"<{print_body(self, value)}>" if print_body else ""
        return f"!vhlo.{value.name}{body}"

    def _vhlo_attribute(self, value: Value) -> str:
        field = value.encoding.fields[0]
        if field.kind == "enum":
            return f"#vhlo<{value.name} {_case(field.enum or '', value.fields[0])}>"
        print_body = _VHLO_ATTRIBUTES.get(value.name, Printer.struct)
        return f"#vhlo.{value.name}<{print_body(self, value)}>"

    def struct(self, value: Value) -> str:
        """Absent fields are omitted."""
        parts = []
        for field, content in zip(value.encoding.fields, value.fields, strict=True):
            if content is None:
                continue
            if "attribute" in field.kind:
                text = self.attribute(content)
            elif field.kind == "f64":
                text = _f64(content)
            else:
                text = _numbers(content) if field.is_list else str(content)
            parts.append(f"{field.name} = {text}")
        return ", ".join(parts)

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

    def dense(self, value: Value) -> str:
        text, shape, element = self.builtin_tensor(value.field("type"))
        data = value.field("data")
        if len(shape) > _DEEPEST:
            # The product of hostile sizes takes extremely long to compute, and brackets nest as deep as the shape.
            return f'dense<"0x{bytes(data).hex().upper()}"> : {text}'
        number = math.prod(shape)
        if number <= 0:
            return f"dense<> : {text}"
        if element == "i1" and (booleans := _booleans(bytes(data), number)):
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


def _case(enum: str, number: int) -> str:
    known = find_enum(enum)
    for case in known.cases if known else ():
        if case.value == number:
            return case.name
    return str(number)


def _shape(sizes: Sequence[int]) -> str:
    return "".join(f"{'?' if size == _DYNAMIC else size}x" for size in sizes)


def _numbers(values: Sequence[int]) -> str:
    return f"[{', '.join('?' if value == _DYNAMIC else str(value) for value in values)}]"


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


Print = Callable[[Printer, Value], str]


def _types(printer: Printer, indices: Sequence[int]) -> str:
    return ", ".join(map(printer.type, indices))


def _tensor_body(printer: Printer, value: Value) -> str:
    encoding = [f", {printer.attribute(value.field('encoding'))}"] if value.encoding.code == 21 else []
    return f"{_shape(value.field('shape'))}{printer.type(value.field('element'))}{''.join(encoding)}"


def _quantized(printer: Printer, value: Value) -> str:
    storage, expressed = printer.type(value.field("storage")), printer.type(value.field("expressed"))
    limits = f"{value.field('storage_min')}:{value.field('storage_max')}, {value.field('flags')}"
    if value.name == "quant_v1":
        return f"{storage}:{expressed}, {_f64(value.field('scale'))}:{value.field('zero_point')}, {limits}"
    scales = ", ".join(map(_f64, value.field("scales")))
    points = ", ".join(map(str, value.field("zero_points")))
    return f"{storage}:{expressed}, {value.field('dimension')}, [{scales}], [{points}], {limits}"


_VHLO_TYPES: Final[dict[str, Print]] = {
    "buffer_v1": lambda printer, value: f"{_shape(value.field('shape'))}{printer.type(value.field('element'))}",
    "complex_v1": lambda printer, value: printer.type(value.field("element")),
    "func_v1": lambda printer, value: (
        f"({_types(printer, value.field('inputs')) or '()'}) -> {_types(printer, value.field('outputs')) or '()'}"
    ),
    "future_v1": lambda printer, value: _types(printer, value.field("elements")),
    "quant_per_axis_v1": _quantized,
    "quant_v1": _quantized,
    "tensor_v1": _tensor_body,
    "tuple_v1": lambda printer, value: _types(printer, value.field("elements")),
    "unranked_tensor_v1": lambda printer, value: printer.type(value.field("element")),
}

_VHLO_ATTRIBUTES: Final[dict[str, Print]] = {
    "array_v1": lambda printer, value: f"[{', '.join(map(printer.attribute, value.field('elements')))}]",
    "bool_v1": lambda printer, value: str(bool(value.field("value"))).lower(),
    "dict_v1": lambda printer, value: (
        "{" + ", ".join(f"{printer.attribute(k)} = {printer.attribute(v)}" for k, v in value.field("elements")) + "}"
    ),
    "float_v1": lambda printer, value: f"{printer.number(value)} : {printer.type(value.field('type'))}",
    "integer_v1": lambda printer, value: f"{printer.number(value)} : {printer.builtin_element(value.field('type'))}",
    "string_v1": lambda printer, value: escaped(printer.file.strings[value.field("value")]),
    "tensor_v1": Printer.dense,
    "type_v1": lambda printer, value: printer.type(value.field("value")),
}


def _integer_type(printer: Printer, value: Value) -> str:
    width, sign = value.fields[0] >> 2, value.fields[0] & 3
    return f"{('i', 'si', 'ui', '?')[sign]}{width}"


def _plain(printer: Printer, value: Value) -> str:
    return value.name


def _builtin_shaped(printer: Printer, value: Value) -> str:
    extra = [printer.attribute(value.field("encoding"))] if value.encoding.code == 14 else []
    body = f"{_shape(value.field('shape'))}{printer.type(value.field('element'))}"
    return f"{value.name}<{', '.join([body, *extra])}>"


def _function_type(printer: Printer, value: Value) -> str:
    return f"({_types(printer, value.field('inputs'))}) -> ({_types(printer, value.field('results'))})"


_BUILTIN_TYPES: Final[dict[str, Print]] = {
    # Types without parameters are printed by name.
    **{each.name: _plain for each in spellings_of("builtin", "type") if not each.encodings[0].fields},
    "complex": lambda printer, value: f"complex<{printer.type(value.field('element'))}>",
    "function": _function_type,
    "integer": _integer_type,
    "memref": _builtin_shaped,
    "tensor": _builtin_shaped,
    "tuple": lambda printer, value: f"tuple<{_types(printer, value.field('elements'))}>",
    "unranked_memref": lambda printer, value: f"memref<*x{printer.type(value.field('element'))}>",
    "unranked_tensor": lambda printer, value: f"tensor<*x{printer.type(value.field('element'))}>",
    "vector": _builtin_shaped,
}


def _dictionary(printer: Printer, value: Value) -> str:
    pairs = [f"{bare_or_quoted(printer.string(k))} = {printer.attribute(v)}" for k, v in value.field("elements")]
    return "{" + ", ".join(pairs) + "}"


def _string(printer: Printer, value: Value) -> str:
    text = escaped(printer.file.strings[value.field("value")])
    return f"{text} : {printer.type(value.field('type'))}" if value.encoding.code == 3 else text


def _symbol(printer: Printer, value: Value) -> str:
    nested = value.field("nested") if value.encoding.code == 5 else ()
    return "::".join([f"@{bare_or_quoted(printer.string(value.field('root')))}", *map(printer.attribute, nested)])


def _builtin_number(printer: Printer, value: Value) -> str:
    kind = printer.type(value.field("type"))
    text = printer.number(value)
    if kind == "i1":
        return "true" if text != "0" else "false"
    return f"{text} : {kind}"


def _dense_array(printer: Printer, value: Value) -> str:
    element = printer.type(value.field("element"))
    data, size = bytes(value.field("data")), value.field("size")
    layout = {"i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "f32": "f", "f64": "d"}.get(element)
    if layout is None or struct.calcsize(layout) * size != len(data):
        return f"<array of {size} {element}: 0x{data.hex()}>"
    numbers = struct.unpack(f"<{size}{layout}", data)
    words = [double(x) if isinstance(x, float) else str(x).lower() for x in numbers]
    return f"array<{element}: {', '.join(words)}>" if words else f"array<{element}>"


def _line_and_column(printer: Printer, value: Value) -> str:
    return f"{escaped(printer.string(value.field('file')))}:{value.field('line')}:{value.field('column')}"


def _range(printer: Printer, value: Value) -> str:
    file, numbers = escaped(printer.string(value.field("file"))), value.field("lines_and_columns")
    line, column = (*numbers, 0, 0)[:2]
    ends = {3: f" to :{numbers[-1]}", 4: f" to {':'.join(map(str, numbers[2:]))}"} if len(numbers) > 2 else {}
    return f"{file}:{line}:{column}{ends.get(len(numbers), '')}"


def _fused(printer: Printer, value: Value) -> str:
    metadata = f"<{printer.attribute(value.field('metadata'))}>" if value.encoding.code == 13 else ""
    return f"fused{metadata}[{', '.join(map(printer.location, value.field('locations')))}]"


def _named(printer: Printer, value: Value) -> str:
    child = printer.location(value.field("child"))
    return escaped(printer.string(value.field("name"))) + ("" if child == "unknown" else f"({child})")


def _resource(printer: Printer, value: Value) -> str:
    return f"<resource {value.field('key')}> : {printer.type(value.field('type'))}"


_BUILTIN_ATTRIBUTES: Final[dict[str, Print]] = {
    "array": lambda printer, value: f"[{', '.join(map(printer.attribute, value.field('elements')))}]",
    "callsite": lambda printer, value: (
        f"callsite({printer.location(value.field('callee'))} at {printer.location(value.field('caller'))})"
    ),
    "dense": Printer.dense,
    "dense_array": _dense_array,
    "dense_resource": _resource,
    "dictionary": _dictionary,
    "distinct": lambda printer, value: f"distinct[0]<{printer.attribute(value.field('referenced'))}>",
    "file_line_col": _line_and_column,
    "file_line_col_range": _range,
    "float": _builtin_number,
    "fused": _fused,
    "integer": _builtin_number,
    "name": _named,
    "sparse": lambda printer, value: f"<sparse : {printer.type(value.field('type'))}>",
    "string": _string,
    "symbol_ref": _symbol,
    "type": lambda printer, value: printer.type(value.field("value")),
    "unit": lambda printer, value: "unit",
    "unknown": lambda printer, value: "unknown",
}


def flagged_indices(reader: ByteReader, size: int) -> list[int | None]:
    indices: list[int | None] = []
    while reader.remaining:
        index, present = reader.flagged_index(size, "attributes")
        indices.append(index if present else None)
    return indices


def indices(reader: ByteReader, size: int) -> list[Any]:
    found: list[Any] = []
    while reader.remaining:
        found.append(reader.index(size, "attributes"))
    return found


# Print ops as MLIR text in the generic form
#
# Source: «Generic form» in the MLIR language reference. Names of values are unique in the whole program, because the
# bytes mark more ops as isolated than the parser treats as such.

KNOWN: Final = ("builtin", "vhlo")


def print_program(file: File, *, debug_info: bool = False) -> str:
    """Entries that remain bytes, such as attributes of other dialects, are printed by name: not to be parsed again."""
    printer = _Program(file, debug_info)
    for op in file.program.operations:
        printer.operation(op, [], "")
    return "".join(printer.out)


def inherent_attributes(file: File, op: Operation | Head) -> Mapping[str, int]:
    """Return the inherent attributes in the properties of ``op``; none for ops of other dialects, whose format differs.

    Those of an unspecified VHLO op are named by number: ``0``, ``1`` and so on.
    """
    if op.properties is None:
        return {}
    name, properties = file.op_name(op.name), file.properties[op.properties]
    known, found = file.decoded_properties.get((name, op.properties), (None, {}))
    if known is not properties:
        found = _inherent(file, name, properties)
        # Kept, because many ops may refer to the same large ones.
        file.decoded_properties[name, op.properties] = properties, found
    return found


def _inherent(file: File, op: str, properties: Properties) -> dict[str, int]:
    dialect, _, name = op.partition(".")
    if dialect not in KNOWN:
        return {}
    reader = properties.reader()
    if dialect == "builtin":
        found = zip(("sym_name", "sym_visibility"), flagged_indices(reader, len(file.attributes)), strict=False)
        return {each: index for each, index in found if index is not None}
    values = indices(reader, len(file.attributes))
    known = find_op_version(name) if dialect == "vhlo" else None
    names = known.attributes if known and len(known.attributes) == len(values) else map(str, range(len(values)))
    return dict(zip(names, values, strict=True))


class _Program:
    def __init__(self, file: File, debug_info: bool) -> None:
        self.file = file
        self.debug_info = debug_info
        self.entries = Printer(file)
        self.out: list[str] = []
        self.numbers = count()
        self.labels = count()

    def location(self, index: int | None) -> str:
        if not self.debug_info:
            return ""
        return f" loc({'unknown' if index is None else self.entries.location(index)})"

    def operation(self, op: Operation, values: list[tuple[str, int]], indent: str, results: str = "") -> None:
        out = self.out
        out.append(f"{indent}{results}{bare_name(self.file.op_name(op.name))}")
        out.append(f"({', '.join(values[index][0] for index in op.operands)})")
        if op.successors:
            out.append(f"[{', '.join(f'^{self.block_names[index]}' for index in op.successors)}]")
        if op.properties is not None and self.file.dialect(self.file.dialects.ops[op.name].dialect) not in KNOWN:
            out.append(f" <properties: 0x{bytes(self.file.properties[op.properties].data).hex()}>")
        if inherent := inherent_attributes(self.file, op):
            texts = (f"{name} = {self.entries.attribute(index)}" for name, index in inherent.items())
            out.append(f" <{{{', '.join(texts)}}}>")
        if op.regions:
            out.append(" (")
            for number, region in enumerate(op.regions):
                out.append(", " if number else "")
                self.region(region, [] if op.isolated else values, indent)
            out.append(")")
        if op.attributes is not None:
            text = self.entries.attribute(op.attributes)
            out.append(f" {text}" if text != "{}" else "")
        operands = ", ".join(self.entries.type(values[index][1]) for index in op.operands)
        types = ", ".join(map(self.entries.type, op.results))
        out.append(f" : ({operands}) -> ({types}){self.location(op.location)}\n")

    def region(self, region: Region, outer: list[tuple[str, int]], indent: str) -> None:
        if not region.blocks:
            self.out.append("{}")
            return
        # Every value of the region is named before its use, because blocks may use each other's values. The names are
        # removed again at the end: copying those from outside would make many small regions quadratic.
        values, position = outer, len(outer)
        values += self.named(region)
        names = [f"bb{next(self.labels)}" for _ in region.blocks]
        saved, self.block_names = getattr(self, "block_names", []), names
        self.out.append("{\n")
        start = position
        for name, block in zip(names, region.blocks, strict=True):
            position = self.block(name, block, values, position, indent)
        self.out.append(f"{indent}}}")
        del values[start:]
        self.block_names = saved

    def named(self, region: Region) -> list[tuple[str, int]]:
        named: list[tuple[str, int]] = []
        for block in region.blocks:
            named += [(f"%{next(self.numbers)}", argument.type) for argument in block.arguments]
            for op in block.operations:
                if len(op.results) == 1:
                    named.append((f"%{next(self.numbers)}", op.results[0]))
                elif op.results:
                    name = f"%{next(self.numbers)}"
                    named += [(f"{name}#{number}", kind) for number, kind in enumerate(op.results)]
        return named

    def block(self, name: str, block: Block, values: list[tuple[str, int]], position: int, indent: str) -> int:
        """Print a block whose first value is ``values[position]``; return the position after its last."""
        arguments = [
            f"{values[position + i][0]}: {self.entries.type(argument.type)}{self.location(argument.location)}"
            for i, argument in enumerate(block.arguments)
        ]
        self.out.append(f"{indent}^{name}{'(' + ', '.join(arguments) + ')' if arguments else ''}:\n")
        position += len(block.arguments)
        for op in block.operations:
            results = ""
            if op.results:
                first = values[position][0].partition("#")[0]
                results = f"{first} = " if len(op.results) == 1 else f"{first}:{len(op.results)} = "
            self.operation(op, values, indent + "  ", results)
            position += len(op.results)
        return position


def bare_name(name: str) -> str:
    return f'"{name}"' if bare_or_quoted(name.encode()) == name else bare_or_quoted(name.encode())
