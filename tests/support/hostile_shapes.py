"""Files that are nothing but one kind of thing, as many as fit: each kind of entry, and each way to nest or repeat it.

A shape makes a file of about as many bytes as it is asked for. What it says need not be a program that any library
reads: it is what somebody would write who wants much work or memory for few bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, Final

import vhlo_tools as vt
from vhlo_tools.bytecode import Entry, File, decode, inherent_attributes
from vhlo_tools.bytecode.container import (
    MOST_OP_NAMES,
    DialectName,
    OpName,
    Resource,
    ResourceGroup,
    ResourceKind,
    encode_header,
    encode_section,
)
from vhlo_tools.bytecode.entries import LARGEST_TABLE, MOST_ATTRIBUTES, EntryTable, Properties
from vhlo_tools.bytecode.ir import (
    HAS_ATTRIBUTES,
    HAS_OPERANDS,
    HAS_PROPERTIES,
    HAS_REGIONS,
    HAS_RESULTS,
    HAS_SUCCESSORS,
    HAS_USE_LISTS,
    IR,
)
from vhlo_tools.bytecode.primitives import flagged, svarint, varint, varints
from vhlo_tools.files.mapping import Chunk, join, view
from vhlo_tools.spec import Encoding, EntryKind, Field, encodings_of

#: What ops are made of: each is in the tables once, with its properties.
_BASE: Final = """
func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }
func.func @main(%a: tensor<2xf32>, %p: tensor<i1>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = stablehlo.add %a, %c : tensor<2xf32>
  %1 = call @f(%0) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = "stablehlo.if"(%p) ({ stablehlo.return %1 : tensor<2xf32> }, {
    stablehlo.return %a : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<2xf32>
  %3 = stablehlo.custom_call @target(%2) : (tensor<2xf32>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
}
"""
_TARGET: Final = "1.9.0"
#: The dialect of most entries.
_VHLO: Final = "vhlo"


@cache
def _base() -> bytes:
    return bytes(vt.serialize(_BASE, _TARGET))


class Maker:
    """The tables of a program, to which entries are added, and its ops as bytes."""

    def __init__(self) -> None:
        self.file: File = decode(_base())
        self.file.load()
        # The first op of each name: its name, its attributes, properties and types.
        self.heads: dict[str, Any] = {}
        pending = [self.file.program]
        while pending:
            for op in pending.pop().operations:
                self.heads.setdefault(self.file.op_name(op.name).removeprefix("vhlo.").partition("_v")[0], op)
                pending += [block for region in op.regions for block in region.blocks]
        self.location: int = self.heads["add"].location
        self.type: int = self.heads["add"].results[0]
        #: The arguments of the function: one tensor.
        self.arguments = varint(1) + flagged(self.type, False) + b"\0"
        #: What stands in the module beside the function, and how many ops that is.
        self.beside: tuple[bytes, int] = (b"", 0)
        self.module_attributes: int | None = None

    def dialect(self, name: str) -> int:
        names = [self.file.string(each.name) for each in self.file.dialects.names]
        if name not in names:
            self.file.strings.append(name.encode())
            self.file.dialects.names.append(DialectName(len(self.file.strings) - 1))
            names.append(name)
        return names.index(name)

    def string(self, text: str) -> int:
        self.file.strings.append(text.encode())
        return len(self.file.strings) - 1

    def add(self, kind: EntryKind, name: str, *numbers: int, dialect: str = _VHLO, data: bytes = b"") -> int:
        """Add an entry by the numbers that follow its code, and what follows them."""
        code = next(each.code for each in encodings_of(dialect, kind).values() if each.name == name)
        return self.add_bytes(kind, varints((code, *numbers)) + data, dialect)

    def add_bytes(self, kind: EntryKind, data: bytes, dialect: str = _VHLO, *, custom: bool = True) -> int:
        table: EntryTable = self.file.attributes if kind == "attribute" else self.file.types
        table.append(Entry(self.dialect(dialect), custom, data))
        return len(table) - 1

    def text(self, text: str) -> int:
        """Add a string attribute of VHLO."""
        return self.add("attribute", "string_v1", self.string(text))

    def builtin_text(self, text: str) -> int:
        return self.add("attribute", "string", self.string(text), dialect="builtin")

    def dictionary(self, pairs: Iterable[tuple[int, int]]) -> int:
        numbers = [number for pair in pairs for number in pair]
        return self.add("attribute", "dictionary", len(numbers) // 2, *numbers, dialect="builtin")

    def properties(self, *numbers: int) -> int:
        self.file.properties.append(Properties(varints(numbers)))
        return len(self.file.properties) - 1

    def op(
        self,
        name: str,
        *,
        results: Iterable[int] | None = None,
        operands: Iterable[int] = (),
        attributes: int | None = None,
        properties: int | None = None,
        location: int | None = None,
        successors: Iterable[int] = (),
        use_lists: bytes = b"",
        regions: bytes = b"",
    ) -> bytes:
        """Return the bytes of an op; what is not given is that of the first op of its name."""
        head = self.heads[name]
        results = list(head.results if results is None else results)
        operands, successors = list(operands), list(successors)
        properties = head.properties if properties is None else properties
        mask = HAS_PROPERTIES * (properties is not None) | HAS_ATTRIBUTES * (attributes is not None)
        mask |= HAS_RESULTS * bool(results) | HAS_OPERANDS * bool(operands) | HAS_SUCCESSORS * bool(successors)
        mask |= HAS_USE_LISTS * bool(use_lists) | HAS_REGIONS * bool(regions)
        numbers = [each for each in (attributes, properties) if each is not None]
        for several in (results, operands, successors):
            numbers += [len(several), *several] if several else []
        at = self.location if location is None else location
        return b"".join([varint(head.name), bytes([mask]), varint(at), varints(numbers), use_lists, regions])

    def add_resource_sections(self) -> None:
        self.file.order += [each for each in ("resource_offset", "resource") if each not in self.file.order]

    def function(self, name: str, region: bytes, **given: int) -> bytes:
        """Return a function with a region; ``given`` are attributes that it has instead of those of the first one."""
        held = {**inherent_attributes(self.file, self.heads["func"]), "sym_name": self.text(name), **given}
        return self.op("func", properties=self.properties(*held.values()), regions=isolated(region))

    def region(self, ops: bytes, number: int, values: int = 0, *, arguments: bytes | None = None) -> bytes:
        """Return a region of one block of ``number`` ops, which define ``values``; by default of one argument."""
        if arguments is None:
            arguments, values = varint(1) + flagged(self.type, False) + b"\0", values + 1
        return varints((1, values)) + flagged(number, bool(arguments)) + arguments + ops

    def made(self, region: bytes | None = None) -> bytes:
        """Return the file of a module with a function ``main`` of a region, and what is :attr:`beside` it."""
        ops, number = self.beside
        if region is not None:
            ops, number = self.function("main", region) + ops, number + 1
        module = self.op(
            "builtin.module",
            attributes=self.module_attributes,
            regions=isolated(varints((1, 0)) + flagged(number, False) + ops),
        )
        ir: list[Chunk] = [flagged(1, False), module]
        pieces: list[Chunk] = [encode_header(self.file.version, self.file.producer)]
        for name in self.file.order:
            pieces += encode_section(name, ir if name == "ir" else self.file.contents(name)[0])
        return join(pieces)


def isolated(*regions: bytes) -> bytes:
    contents = b"".join(regions)
    return flagged(len(regions), True) + bytes([IR]) + varint(len(contents)) + contents


def within(*regions: bytes) -> bytes:
    return flagged(len(regions), False) + b"".join(regions)


# Tables of nothing but one kind of entry


def _unused(maker: Maker) -> bytes:
    return maker.made(maker.region(maker.op("return", operands=[0]), 1))


def _strings(size: int, length: int) -> bytes:
    maker = Maker()
    maker.file.strings += [b"%0*d" % (length, each) if length else b"" for each in range(size // (length + 2))]
    return _unused(maker)


def _one_string(size: int) -> bytes:
    maker = Maker()
    maker.module_attributes = maker.dictionary([(maker.builtin_text("key"), maker.builtin_text("x" * size))])
    return _unused(maker)


def _dialects(size: int, version: bytes | None) -> bytes:
    maker = Maker()
    each = DialectName(0, version)
    maker.file.dialects.names += [each] * (size // (1 if version is None else 4))
    return _unused(maker)


def _op_names(size: int, *, distinct: bool = False) -> bytes:
    maker = Maker()
    # Those of a dialect are together.
    dialect = maker.file.dialects.ops[-1].dialect
    if distinct:
        maker.file.dialects.ops += [OpName(dialect, maker.string(f"{each}")) for each in range(size // 9)]
    else:
        maker.file.dialects.ops += [OpName(dialect, 0)] * size
    return _unused(maker)


def _entries(size: int, kind: EntryKind, dialect: str, encoding: Encoding) -> bytes:
    maker = Maker()
    # One element of each list: the smallest entries that have one.
    data = varint(encoding.code) + b"".join(
        varint(1) * field.is_list + _field(maker, field) for field in encoding.fields
    )
    _fill(maker, kind, dialect, data, size)
    return _unused(maker)


def _field(maker: Maker, field: Field) -> bytes:
    match field.kind:
        case "pair":
            return varints((0, 0))
        case "blob" if field.name == "data":
            return varint(0)
        case "type":
            return varint(maker.type)
        case _:
            return varint(0)


def _fill(maker: Maker, kind: EntryKind, dialect: str, data: bytes, size: int, *, custom: bool = True) -> None:
    table, most = (maker.file.attributes, MOST_ATTRIBUTES) if kind == "attribute" else (maker.file.types, LARGEST_TABLE)
    each = Entry(maker.dialect(dialect), custom, data)
    for _ in range(min(size // (len(data) + 1), most - 100)):
        table.append(each)


def _text_entries(size: int, kind: EntryKind) -> bytes:
    maker = Maker()
    _fill(maker, kind, "builtin", b"f32\0", size, custom=False)
    return _unused(maker)


def _unknown(size: int, kind: EntryKind) -> bytes:
    """Each code is another."""
    maker = Maker()
    for each in range(size // 4):
        maker.add_bytes(kind, varint(1000 + each))
    return _unused(maker)


def _empty_entries(size: int, kind: EntryKind) -> bytes:
    maker = Maker()
    _fill(maker, kind, _VHLO, b"", size)
    return _unused(maker)


def _properties(size: int, length: int) -> bytes:
    maker = Maker()
    maker.file.properties += [Properties(b"\1" * length)] * min(size // (length + 1), LARGEST_TABLE - 100)
    return _unused(maker)


def _resources(size: int, each: Resource) -> bytes:
    maker = Maker()
    maker.add_resource_sections()
    number = size // (3 + len(each.data) + 4 * (not each.left_out))
    maker.file.resources = [ResourceGroup(0, True, (each,) * number)]
    return _unused(maker)


def _resource_groups(size: int) -> bytes:
    maker = Maker()
    maker.add_resource_sections()
    maker.file.resources = [ResourceGroup(0, True, ())] * (size // 2)
    return _unused(maker)


# Programs of nothing but one thing


def _same_ops(size: int) -> bytes:
    maker = Maker()
    op = maker.op("return")
    number = size // len(op)
    return maker.made(maker.region(op * number, number))


def _ops_of_properties(size: int, name: str) -> bytes:
    """Each op has properties that no other has."""
    maker = Maker()
    held = bytes(maker.file.properties[maker.heads[name].properties].data)
    number = size // (len(held) + 9)
    ops = b"".join(maker.op(name, properties=_added(maker, held), operands=[0]) for _ in range(number))
    return maker.made(maker.region(ops, number, number))


def _added(maker: Maker, properties: bytes) -> int:
    maker.file.properties.append(Properties(properties))
    return len(maker.file.properties) - 1


def _ops_of_attributes(size: int) -> bytes:
    """Each op has a dictionary that no other has."""
    maker = Maker()
    key = maker.builtin_text("key")
    held = [maker.dictionary([(key, maker.text(f"{each}"))]) for each in range(size // 30)]
    ops = b"".join(maker.op("add", attributes=each, operands=[0, 0]) for each in held)
    return maker.made(maker.region(ops, len(held), len(held)))


def _ops_of_one_dictionary(size: int) -> bytes:
    """Half of the bytes are one dictionary, and all ops have it."""
    maker = Maker()
    pairs = [(maker.builtin_text(f"k{each}"), 0) for each in range(size // 40)]
    op = maker.op("add", attributes=maker.dictionary(pairs), operands=[0, 0])
    number = size // 2 // len(op)
    return maker.made(maker.region(op * number, number, number))


def _differing_ops_of_one_dictionary(size: int) -> bytes:
    """Half of the bytes are one dictionary, which ops of a type of their own each have."""
    maker = Maker()
    held = maker.dictionary([(maker.builtin_text(f"k{each}"), 0) for each in range(size // 40)])
    element = maker.add("type", "f32_v1")
    types = [maker.add("type", "tensor_v1", 1, each << 1, element) for each in range(size // 40)]
    ops = b"".join(maker.op("add", results=[each], operands=[0, 0], attributes=held) for each in types)
    return maker.made(maker.region(ops, len(types), len(types)))


def _ops_of_types(size: int) -> bytes:
    """Each op has a type that no other has."""
    maker = Maker()
    element = maker.add("type", "f32_v1")
    types = [maker.add("type", "tensor_v1", 1, each << 1, element) for each in range(size // 16)]
    ops = b"".join(maker.op("add", results=[each], operands=[0, 0]) for each in types)
    return maker.made(maker.region(ops, len(types), len(types)))


def _ops_of_locations(size: int) -> bytes:
    maker = Maker()
    file = maker.builtin_text("file.py")
    lines = range(size // 16)
    ats = [maker.add("attribute", "file_line_col", file, each, 1, dialect="builtin") for each in lines]
    ops = b"".join(maker.op("add", location=each, operands=[0, 0]) for each in ats)
    return maker.made(maker.region(ops, len(ats), len(ats)))


def _many_results(size: int) -> bytes:
    maker = Maker()
    return maker.made(maker.region(maker.op("custom_call", results=[maker.type] * size, operands=[0]), 1, size))


def _many_operands(size: int, number: int = 1) -> bytes:
    maker = Maker()
    op = maker.op("custom_call", results=[], operands=[0] * (size // number))
    return maker.made(maker.region(op * number, number))


def _kinds_of_many_results(size: int) -> bytes:
    """Each op has another number of results."""
    maker = Maker()
    number = int((2 * size) ** 0.5)
    ops = b"".join(maker.op("custom_call", results=[maker.type] * each, operands=[0]) for each in range(number))
    return maker.made(maker.region(ops, number, number * (number - 1) // 2))


def _arguments(size: int, location: int | None = None) -> bytes:
    maker = Maker()
    each = flagged(maker.type, location is not None) + (b"" if location is None else varint(location))
    number = size // len(each)
    ops = maker.op("return")
    return maker.made(maker.region(ops, 1, number, arguments=varint(number) + each * number + b"\0"))


def _arguments_of_function(size: int) -> bytes:
    """The function's type has them too, and each its dictionary."""
    maker = Maker()
    number = size // 5
    types = [maker.type] * number
    kind = maker.add("attribute", "type_v1", maker.add("type", "func_v1", number, *types, 1, maker.type))
    key = maker.text("key")
    held = [maker.add("attribute", "dict_v1", 1, key, key)] * number
    attributes = maker.add("attribute", "array_v1", number, *held)
    arguments = varint(number) + flagged(maker.type, False) * number + b"\0"
    region = maker.region(maker.op("return", operands=[0]), 1, number, arguments=arguments)
    maker.beside = (maker.function("many", region, function_type=kind, arg_attrs=attributes), 1)
    return maker.made()


def _use_lists(size: int) -> bytes:
    maker = Maker()
    number = size // 3
    orders = varint(number) + (varint(0) + flagged(0, False)) * number
    arguments = varint(number) + flagged(maker.type, False) * number + b"\1" + orders
    return maker.made(maker.region(maker.op("return"), 1, number, arguments=arguments))


def _one_use_list(size: int) -> bytes:
    maker = Maker()
    orders = varint(1) + varint(0) + flagged(size, False) + varint(0) * size
    arguments = varint(2) + flagged(maker.type, False) * 2 + b"\1" + orders
    return maker.made(maker.region(maker.op("return"), 1, 2, arguments=arguments))


def _blocks(size: int, ops: int = 0, arguments: int = 0) -> bytes:
    maker = Maker()
    block = flagged(ops, bool(arguments)) + b""
    if arguments:
        block += varint(arguments) + flagged(maker.type, False) * arguments + b"\0"
    block += _bare(maker) * ops
    number = size // len(block)
    return maker.made(varints((number, number * arguments)) + block * number)


def _bare(maker: Maker) -> bytes:
    """Return an op of three bytes."""
    return varint(maker.heads["return"].name) + bytes([0]) + varint(maker.location if maker.location < 128 else 0)


def _regions(size: int, region: bytes = b"\1") -> bytes:
    """One op has them all."""
    maker = Maker()
    number = size // len(region)
    op = maker.op("if", operands=[0], results=[], regions=flagged(number, False) + region * number)
    return maker.made(maker.region(op, 1))


def _ops_of_a_region(size: int, *, isolating: bool = False, ops: int = 1) -> bytes:
    """Ops with one region, of one block, of one op."""
    maker = Maker()
    region = varints((1, 0)) + flagged(ops, False) + _bare(maker) * ops
    op = varint(maker.heads["if"].name) + bytes([HAS_REGIONS]) + varint(0)
    op += isolated(region) if isolating else within(region)
    number = size // len(op)
    return maker.made(maker.region(op * number, number))


def _ops_of_a_use_list(size: int) -> bytes:
    maker = Maker()
    held = maker.heads["add"]
    op = b"".join(
        [varint(held.name), bytes([HAS_RESULTS | HAS_USE_LISTS]), varints((0, 1, maker.type)), flagged(0, False)]
    )
    number = size // len(op)
    return maker.made(maker.region(op * number, number, number))


def _ops_of_a_successor(size: int) -> bytes:
    maker = Maker()
    op = varint(maker.heads["return"].name) + bytes([HAS_SUCCESSORS]) + varints((0, 1, 0))
    number = size // len(op)
    return maker.made(maker.region(op * number, number))


def _nested_regions(size: int, depth: int = 120) -> bytes:
    """Chains of ops within ops, as deep as they may be."""
    maker = Maker()
    op = _bare(maker)
    for _ in range(depth):
        op = (
            varint(maker.heads["if"].name)
            + bytes([HAS_REGIONS])
            + varint(0)
            + within(varints((1, 0)) + flagged(1, False) + op)
        )
    number = max(1, size // len(op))
    return maker.made(maker.region(op * number, number))


def _successors(size: int, each: int) -> bytes:
    """Blocks whose ops can go on at several of them."""
    maker = Maker()
    op = maker.op("return", successors=[0] * each)
    block = flagged(1, False) + op
    number = size // len(block)
    return maker.made(varints((number, 0)) + block * number)


def _functions(size: int, *, alike: bool = False) -> bytes:
    """Functions of their own names, or all of one."""
    maker = Maker()
    region = maker.region(maker.op("return", operands=[0]), 1)
    number = size // 60
    if alike:
        functions = maker.function("f", region) * number
    else:
        functions = b"".join(maker.function(f"f{each}", region) for each in range(number))
    maker.beside = functions, number
    return maker.made(region)


def _one_long_name(size: int) -> bytes:
    """Half of the bytes are the name of each function."""
    maker = Maker()
    region = maker.region(maker.op("return", operands=[0]), 1)
    function = maker.function("x" * (size // 2), region)
    number = size // 2 // len(function)
    maker.beside = function * number, number
    return maker.made()


def _one_long_text(size: int) -> bytes:
    """Half of the bytes are an attribute of each argument."""
    maker = Maker()
    number = size // 8
    kind = maker.add("attribute", "type_v1", maker.add("type", "func_v1", number, *[maker.type] * number, 0))
    held = maker.add("attribute", "dict_v1", 1, maker.text("key"), maker.text("x" * (size // 2)))
    attributes = maker.add("attribute", "array_v1", number, *[held] * number)
    arguments = varint(number) + flagged(maker.type, False) * number + b"\0"
    region = maker.region(maker.op("return", operands=[0]), 1, number, arguments=arguments)
    maker.beside = maker.function("main", region, function_type=kind, arg_attrs=attributes), 1
    return maker.made()


def _one_long_properties(size: int) -> bytes:
    """Half of the bytes are the properties of ops, each of a name of its own that nobody knows."""
    maker = Maker()
    held = maker.properties(*[0] * (size // 2))
    dialect = maker.file.dialects.ops[maker.heads["add"].name].dialect
    number = min(size // 40, MOST_OP_NAMES - 20)
    first = len(maker.file.dialects.ops)
    maker.file.dialects.ops += [OpName(dialect, maker.string(f"op{each}_v1")) for each in range(number)]
    ops = b"".join(
        varint(first + each) + bytes([HAS_PROPERTIES]) + varints((maker.location, held)) for each in range(number)
    )
    return maker.made(maker.region(ops, number))


def _call(maker: Maker, name: str, operand: int) -> bytes:
    held = {**inherent_attributes(maker.file, maker.heads["call"]), "callee": maker.text(name)}
    return maker.op("call", properties=maker.properties(*held.values()), operands=[operand])


def _call_chain(size: int) -> bytes:
    """Each function calls the next."""
    maker = Maker()
    number = size // 100
    functions = [
        maker.function(
            f"f{each}", maker.region(_call(maker, f"f{each + 1}", 0) + maker.op("return", operands=[1]), 2, 1)
        )
        for each in range(number)
    ]
    last = maker.function(f"f{number}", maker.region(maker.op("return", operands=[0]), 1))
    maker.beside = b"".join(functions) + last, number + 1
    return maker.made(maker.region(_call(maker, "f0", 0) + maker.op("return", operands=[1]), 2, 1))


def _calls(size: int) -> bytes:
    """Calls of one function."""
    maker = Maker()
    op = maker.op("call", operands=[0])
    number = size // len(op)
    maker.beside = maker.function("f", maker.region(maker.op("return", operands=[0]), 1)), 1
    return maker.made(maker.region(op * number, number, number))


# Nesting and repetition of attributes, types and locations


def _module_attribute(maker: Maker, index: int) -> bytes:
    maker.module_attributes = maker.dictionary([(maker.builtin_text("key"), index)])
    return _unused(maker)


def _nested(size: int, name: str, width: int = 1, depth: int | None = None) -> bytes:
    maker = Maker()
    index = maker.add("attribute", "array", 0, dialect="builtin")
    for _ in range(depth or size // (width * 3 + 2)):
        if name == "array":
            index = maker.add("attribute", "array", width, *[index] * width, dialect="builtin")
        else:
            index = maker.dictionary([(maker.builtin_text(f"k{each}"), index) for each in range(width)])
    return _module_attribute(maker, index)


def _shared(size: int) -> bytes:
    """A list of many lists that are one."""
    maker = Maker()
    half = size // 3
    inner = maker.add("attribute", "array", half, *[0] * half, dialect="builtin")
    return _module_attribute(maker, maker.add("attribute", "array", half, *[inner] * half, dialect="builtin"))


def _dictionary(size: int) -> bytes:
    maker = Maker()
    value = maker.builtin_text("value")
    maker.module_attributes = maker.dictionary((maker.builtin_text(f"k{each}"), value) for each in range(size // 16))
    return _unused(maker)


def _symbol_ref(size: int) -> bytes:
    maker = Maker()
    root = maker.add("attribute", "symbol_ref", maker.builtin_text("f"), dialect="builtin")
    return _module_attribute(maker, maker.add("attribute", "symbol_ref", root, size, *[root] * size, dialect="builtin"))


def _prefixed_names(size: int) -> bytes:
    """Names of attributes and functions of one long prefix."""
    maker = Maker()
    prefix = "x" * 1000
    value = maker.builtin_text("value")
    number = size // 2060
    pairs = ((maker.builtin_text(f"{prefix}{each}"), value) for each in range(number))
    maker.module_attributes = maker.dictionary(pairs)
    region = maker.region(maker.op("return", operands=[0]), 1)
    maker.beside = b"".join(maker.function(f"{prefix}{each}", region) for each in range(number)), number
    return maker.made(region)


def _locations(size: int, name: str, *, distinct: bool = False) -> bytes:
    """A location that nests, and ops that have it."""
    maker = Maker()
    unit = maker.builtin_text("name")
    line = maker.add("attribute", "file_line_col", unit, 3, 4, dialect="builtin")
    chain = [line]
    for _ in range(size // 16):
        at = chain[-1]
        numbers = {"callsite": (line, at), "callee": (at, line), "name": (unit, at), "fused": (2, at, line)}[name]
        chain.append(maker.add("attribute", "callsite" if name == "callee" else name, *numbers, dialect="builtin"))
    ats = chain if distinct else chain[-1:] * (size // 10)
    ops = b"".join(maker.op("add", location=each, operands=[0, 0]) for each in ats)
    return maker.made(maker.region(ops, len(ats), len(ats)))


def _fused(size: int) -> bytes:
    """A long list of locations, and ops that have it."""
    maker = Maker()
    line = maker.add("attribute", "unknown", dialect="builtin")
    at = maker.add("attribute", "fused", size // 4, *[line] * (size // 4), dialect="builtin")
    op = maker.op("add", location=at, operands=[0, 0])
    number = size // 2 // len(op)
    return maker.made(maker.region(op * number, number, number))


def _nested_types(size: int, name: str) -> bytes:
    """A type within a type, which many ops have."""
    maker = Maker()
    kind = maker.type
    for _ in range(size // 8):
        kind = maker.add("type", "tuple_v1", 1, kind) if name == "tuple" else maker.add("type", "complex_v1", kind)
    op = maker.op("add", results=[kind], operands=[0, 0])
    number = size // 2 // len(op)
    return maker.made(maker.region(op * number, number, number))


def _wide_type(size: int, *, levels: int = 1) -> bytes:
    """A tuple of many, which many ops have, or of tuples of many."""
    maker = Maker()
    kind = maker.type
    width = size // 4 // levels
    for _ in range(levels):
        kind = maker.add("type", "tuple_v1", width, *[kind] * width)
    op = maker.op("add", results=[kind], operands=[0, 0])
    number = size // 2 // len(op)
    return maker.made(maker.region(op * number, number, number))


def _dimensions(size: int, each: int, *, shared: bool = True) -> bytes:
    """A type of many dimensions: of the function's argument, and of its ops."""
    maker = Maker()
    element = maker.add("type", "f32_v1")
    number = size // len(svarint(each)) // 2
    kind = maker.add("type", "tensor_v1", number, data=svarint(each) * number + varint(element))
    attribute = maker.add("attribute", "type_v1", maker.add("type", "func_v1", 1, kind, 1, kind))
    op = maker.op("add", results=[kind], operands=[0, 0])
    ops = size // 2 // len(op) if shared else 1
    arguments = varint(1) + flagged(kind, False) + b"\0"
    region = maker.region(op * ops + maker.op("return", operands=[0]), ops + 1, ops + 1, arguments=arguments)
    maker.beside = maker.function("main", region, function_type=attribute), 1
    return maker.made()


def _constants(size: int, number: int) -> bytes:
    """Constants of bytes of their own."""
    maker = Maker()
    number = number or size // 40
    length = max(1, size // number // 4 - 5)
    element = maker.add("type", "f32_v1")
    kind = maker.add("type", "tensor_v1", 1, length << 1, element)
    ops = []
    for each in range(number):
        data = each.to_bytes(4, "little") * length
        value = maker.add("attribute", "tensor_v1", kind, len(data), data=data)
        ops.append(maker.op("constant", results=[kind], properties=maker.properties(value)))
    return maker.made(maker.region(b"".join(ops), number, number))


def _one_value_used_by_all(size: int) -> bytes:
    maker = Maker()
    op = maker.op("add", operands=[0, 0])
    number = size // len(op)
    return maker.made(maker.region(op * number, number, number))


def _chain(size: int) -> bytes:
    maker = Maker()
    number = size // 12
    ops = b"".join(maker.op("add", operands=[each, each]) for each in range(number))
    return maker.made(maker.region(ops, number, number))


def _aliases(size: int) -> bytes:
    """Arguments and results that are aliased, as many as there are."""
    maker = Maker()
    number = size // 30
    types = [maker.type] * number
    kind = maker.add("attribute", "type_v1", maker.add("type", "func_v1", number, *types, number, *types))
    key = maker.text("tf.aliasing_output")
    i32 = maker.add("type", "i32_v1")
    held = [
        maker.add("attribute", "dict_v1", 1, key, maker.add("attribute", "integer_v1", i32, data=svarint(each)))
        for each in range(number)
    ]
    attributes = maker.add("attribute", "array_v1", number, *held)
    arguments = varint(number) + flagged(maker.type, False) * number + b"\0"
    region = maker.region(maker.op("return", operands=range(number)), 1, number, arguments=arguments)
    maker.beside = maker.function("main", region, function_type=kind, arg_attrs=attributes), 1
    return maker.made()


def _all_entries() -> dict[str, Callable[[int], bytes]]:
    """Return a shape for each layout of an attribute or a type: the first entry of each stands for all that have it."""
    kinds: tuple[EntryKind, ...] = ("attribute", "type")
    found: dict[object, tuple[str, Callable[[int], bytes]]] = {}
    for kind in kinds:
        for dialect in ("builtin", _VHLO):
            for each in encodings_of(dialect, kind).values():
                layout = (kind, dialect, each.opaque, tuple((field.kind, field.is_list) for field in each.fields))
                name = f"{kind} {dialect}.{each.name}, code {each.code}"
                found.setdefault(layout, (name, partial(_entries, kind=kind, dialect=dialect, encoding=each)))
    return dict(found.values())


_BLOB = Resource(0, ResourceKind.BLOB, view(b"abcd"))
_ELIDED = Resource(0, ResourceKind.BLOB, b"", left_out=True)

#: Files of nothing but one kind of entry, by what is said of them.
ENTRIES: Final[dict[str, Callable[[int], bytes]]] = {
    "empty strings": partial(_strings, length=0),
    "short strings": partial(_strings, length=6),
    "one string": _one_string,
    "dialects": partial(_dialects, version=None),
    "versions of dialects": partial(_dialects, version=b""),
    "op names": _op_names,
    "op names of their own": partial(_op_names, distinct=True),
    "attributes of unknown codes": partial(_unknown, kind="attribute"),
    "types of unknown codes": partial(_unknown, kind="type"),
    **_all_entries(),
    "attributes as text": partial(_text_entries, kind="attribute"),
    "types as text": partial(_text_entries, kind="type"),
    "empty attributes": partial(_empty_entries, kind="attribute"),
    "empty types": partial(_empty_entries, kind="type"),
    "empty properties": partial(_properties, length=0),
    "short properties": partial(_properties, length=3),
    "resources": partial(_resources, each=_BLOB),
    "resources of no value": partial(_resources, each=_ELIDED),
    "resource groups": _resource_groups,
    "ops": _same_ops,
    "constants of properties of their own": partial(_ops_of_properties, name="constant"),
    "calls of properties of their own": partial(_ops_of_properties, name="custom_call"),
    "ops of attributes of their own": _ops_of_attributes,
    "ops of types of their own": _ops_of_types,
    "ops of locations of their own": _ops_of_locations,
    "results of one op": _many_results,
    "ops of ever more results": _kinds_of_many_results,
    "operands of one op": _many_operands,
    "operands of a hundred ops": partial(_many_operands, number=100),
    "arguments of a block": _arguments,
    "arguments with locations": partial(_arguments, location=0),
    "arguments of a function": _arguments_of_function,
    "use-list orders": _use_lists,
    "one use-list order": _one_use_list,
    "ops of a use-list order": _ops_of_a_use_list,
    "ops of a successor": _ops_of_a_successor,
    "empty blocks": _blocks,
    "blocks of one op": partial(_blocks, ops=1),
    "blocks of four ops": partial(_blocks, ops=4),
    "blocks of one argument": partial(_blocks, arguments=1),
    "empty regions": _regions,
    "regions of an empty block": partial(_regions, region=varints((1, 0)) + flagged(0, False)),
    "ops of a region": _ops_of_a_region,
    "ops of an isolated region": partial(_ops_of_a_region, isolating=True),
    "nested regions": _nested_regions,
    "successors of one op": partial(_successors, each=1000),
    "blocks of one successor": partial(_successors, each=1),
    "functions": _functions,
    "functions of one name": partial(_functions, alike=True),
}

#: Files that nest or repeat something.
REPETITIONS: Final[dict[str, Callable[[int], bytes]]] = {
    "a long name of all functions": _one_long_name,
    "a long attribute of all arguments": _one_long_text,
    "long properties of all ops": _one_long_properties,
    "ops of one dictionary": _ops_of_one_dictionary,
    "ops that differ, of one dictionary": _differing_ops_of_one_dictionary,
    "functions that call the next": _call_chain,
    "calls of one function": _calls,
    "lists within lists": partial(_nested, name="array"),
    "lists of two of a list, 40 deep": partial(_nested, name="array", width=2, depth=40),
    "dictionaries within dictionaries": partial(_nested, name="dictionary"),
    "a list of a long list": _shared,
    "a long dictionary": _dictionary,
    "a long reference to a symbol": _symbol_ref,
    "names of one prefix": _prefixed_names,
    "nested call sites": partial(_locations, name="callsite"),
    "nested call sites, all": partial(_locations, name="callsite", distinct=True),
    "nested callees": partial(_locations, name="callee"),
    "nested callees, all": partial(_locations, name="callee", distinct=True),
    "nested names": partial(_locations, name="name"),
    "nested names, all": partial(_locations, name="name", distinct=True),
    "nested fused locations": partial(_locations, name="fused"),
    "nested fused locations, all": partial(_locations, name="fused", distinct=True),
    "fused locations": _fused,
    "nested tuples": partial(_nested_types, name="tuple"),
    "nested complex types": partial(_nested_types, name="complex"),
    "a tuple of many": _wide_type,
    "a tuple of tuples of many": partial(_wide_type, levels=2),
    "dimensions of 1": partial(_dimensions, each=1),
    "dimensions of 2^62": partial(_dimensions, each=1 << 62),
    "dimensions of 2^62 of one op": partial(_dimensions, each=1 << 62, shared=False),
    "one constant": partial(_constants, number=1),
    "small constants": partial(_constants, number=0),
    "one value used by all": _one_value_used_by_all,
    "a chain of ops": _chain,
    "aliases": _aliases,
}

SHAPES: Final = ENTRIES | REPETITIONS
