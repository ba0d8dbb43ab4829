"""HLO modules: recognition of protocol buffers, and the name, signature and aliases of buffers and of text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from vhlo_tools.aliasing import (
    ELEMENT_BITS,
    Alias,
    Array,
    Donor,
    Opaque,
    Signature,
    Tuple,
    format_aliases,
    parse_aliases,
    parse_donors,
)
from vhlo_tools.errors import AliasError, MalformedArtifactError
from vhlo_tools.files.protobuf import Message, encode_message
from vhlo_tools.limits import excess_of_shape
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.aliasing import Shape
    from vhlo_tools.files.mapping import View

# Header of an HLO module: the common part of its text and its protocol buffer


@dataclass(frozen=True, slots=True)
class HloHeader:
    """The header of an HLO module."""

    name: str
    aliases: tuple[Alias, ...]
    donors: tuple[Donor, ...]  # donated inputs that are not bound to an output
    signature: Signature | None  # None if the module does not contain the shapes


# XLA shardings in old jax.export files, as text
#
# They are messages ``OpSharding`` of Protocol Buffers (``xla/xla_data.proto`` in openxla/xla), and are printed as by
# ``HloSharding::ToString``.

_REPLICATED, _MAXIMAL, _OTHER = 0, 1, 3
_WORDS: Final = {0: "replicated", 4: "manual", 5: "unknown", 6: "unreduced"}
# Field numbers.
_KIND, _TILES, _DEVICES, _ON_LAST, _LAST, _SHAPE, _ORDER = 1, 3, 4, 6, 8, 9, 10
_MOST_SHOWN: Final = 64


def hlo_sharding_text(message: View) -> str:
    """Return a sharding as XLA prints it, or its size if its kind is unknown."""
    # Numbers by field, packed or not; those in nested messages are omitted.
    fields: dict[int, list[int]] = {}
    try:
        for number, value in Message(message, "sharding").fields():
            if isinstance(value, int):
                fields.setdefault(number, []).append(value)
            elif number in (_TILES, _DEVICES, _LAST, _SHAPE, _ORDER):
                fields.setdefault(number, []).extend(value.numbers())
        text = _text(fields)
    except MalformedArtifactError:
        text = None
    return text or f"an HLO sharding of {len(message)} bytes"


def _text(fields: dict[int, list[int]]) -> str | None:
    kind = fields.get(_KIND, [_REPLICATED])[-1]
    if kind in _WORDS:
        return f"{{{_WORDS[kind]}}}"
    devices = fields.get(_DEVICES, [])
    if kind == _MAXIMAL and len(devices) == 1:
        return f"{{maximal device={devices[0]}}}"
    if kind != _OTHER or _TILES not in fields:
        return None
    text = f"devices=[{_joined(fields[_TILES])}]"
    if _SHAPE in fields:
        shape, order = fields[_SHAPE], fields.get(_ORDER, [])
        text += f"<=[{_joined(shape)}]" + (f"T({_joined(order)})" if len(order) > 1 else "")
    else:
        text += _joined(devices)
    if fields.get(_ON_LAST, [0])[-1]:
        text += " last_tile_dim_replicate"
    elif _LAST in fields:
        text += f" last_tile_dims={{{', '.join(_WORDS.get(each, 'unknown') for each in fields[_LAST])}}}"
    return f"{{{text}}}"


def _joined(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers[:_MOST_SHOWN])) + (",..." if len(numbers) > _MOST_SHOWN else "")


# The first line of HLO text: the name, signature and aliases of a module
#
# ``HloModule NAME, input_output_alias={...}, buffer_donor={...}, entry_computation_layout={(f32[4]{0})->f32[4]{0}}``,
# with more attributes in any order. Source: ``xla/hlo/parser/hlo_parser.cc`` in openxla/xla.

_ALIASES: Final = "input_output_alias"
_DONORS: Final = "buffer_donor"
_LAYOUT: Final = "entry_computation_layout"
_HEAD: Final = re.compile(r"\s*HloModule\s+([^\s,]+)")
_ENTRY: Final = re.compile(r"^[ \t]*ENTRY\b[^\n]*\n", re.MULTILINE)
_INSTRUCTION: Final = re.compile(r"\s*(ROOT\s+)?%?[\w.-]+\s*=")
_PARAMETER: Final = re.compile(r"\s*parameter\(\s*(\d{1,9})\s*\)")
DEEPEST: Final = 100
#: `<=` and a number of 64 bits: Python refuses to convert very long numbers.
_LONGEST_SIZE: Final = 21


def read_hlo_text(text: str) -> HloHeader:
    """Return the header, without XLA.

    The signature is that of ``entry_computation_layout`` or, where that is missing, of the instructions of the entry
    computation; ``None`` if these have an unknown form.
    """
    header = parse_header(text.lstrip().partition("\n")[0])
    return header if header.signature else replace(header, signature=_entry_signature(text))


def parse_header(line: str) -> HloHeader:
    match = _HEAD.match(line)
    if match is None:
        raise AliasError(f"{line[:60]!r} is not the first line of HLO text: expected HloModule NAME, ...")
    aliases, donors, layout = (_attribute(line, name) for name in (_ALIASES, _DONORS, _LAYOUT))
    return HloHeader(
        name=match[1],
        aliases=tuple(parse_aliases(aliases[2])) if aliases else (),
        donors=tuple(parse_donors(donors[2])) if donors else (),
        signature=_signature(layout[2]) if layout else None,
    )


def with_long_aliases(text: str) -> str:
    """Write aliases in the long form, the only one that XLA's own parser reads."""
    end = text.find("\n")
    line = text if end < 0 else text[:end]
    found = _attribute(line, _ALIASES)
    if found is None:
        return text
    start, stop, body = found
    return f"{text[:start]}{format_aliases(parse_aliases(body))}{text[stop:]}"


def _attribute(line: str, name: str) -> tuple[int, int, str] | None:
    """Return the start and the end of the value of an attribute in braces, and the value."""
    match = re.search(rf"[,\s]{name}\s*=\s*(?=\{{)", line)
    if match is None:
        return None
    depth = 0
    for at in range(match.end(), len(line)):
        depth += (line[at] == "{") - (line[at] == "}")
        if depth == 0:
            return match.end(), at + 1, line[match.end() : at + 1]
    raise AliasError(f"the braces of {name} are not closed in the first line of the HLO text")


def _signature(text: str) -> Signature:
    """Parse a signature, as in ``{(f32[4]{0}, s32[])->(f32[4]{0})}``."""
    reader = _Shapes(text[1:-1])
    parameters = reader.shape(0)
    reader.expect("->")
    result = reader.shape(0)
    if not isinstance(parameters, Tuple):
        raise reader.malformed()
    return Signature(parameters.elements, result)


def _entry_signature(text: str) -> Signature | None:
    entry = _ENTRY.search(text)
    if entry is None:
        return None
    parameters: dict[int, Shape] = {}
    result: Shape | None = None
    at = entry.end()
    while at < len(text):
        stop = text.find("\n", at)
        line = text[at : stop if stop >= 0 else len(text)]
        if line.strip() == "}":
            break
        at += len(line) + 1
        if (instruction := _INSTRUCTION.match(line)) is None:
            continue
        reader = _Shapes(line, instruction.end())
        try:
            shape = reader.shape(0)
        except AliasError:
            return None
        if parameter := reader.match(_PARAMETER):
            parameters[int(parameter[1])] = shape
        if instruction[1]:
            result = shape
    if result is None or sorted(parameters) != list(range(len(parameters))):
        return None
    return Signature(tuple(parameters[number] for number in range(len(parameters))), result)


class _Shapes:
    """Reader of consecutive shapes."""

    # A layout may hold a shape with a layout of its own: `f32[2]{0:P(u8[8]{0})}`.
    _ARRAY: Final = re.compile(r"([a-z]\w*)\[([^\]]*)\](\{(?:[^{}]|\{[^{}]*\})*\})?")
    _COMMENT: Final = re.compile(r"\s*(/\*[^*]*\*/\s*)*")

    def __init__(self, text: str, start: int = 0) -> None:
        self._text = text
        self._at = start

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        return pattern.match(self._text, self._at)

    def malformed(self) -> AliasError:
        return AliasError(f"expected an HLO shape, found {self._text[self._at : self._at + 60]!r}")

    def expect(self, sign: str) -> None:
        if not self._skip(sign):
            raise self.malformed()

    def shape(self, depth: int) -> Shape:
        if depth > DEEPEST:
            raise AliasError(f"shapes nest deeper than {DEEPEST}")
        if self._skip("("):
            elements: list[Shape] = []
            while not self._skip(")"):
                if elements:
                    self.expect(",")
                elements.append(self.shape(depth + 1))
            return Tuple(tuple(elements))
        self._skip("")
        match = self._ARRAY.match(self._text, self._at)
        if match is None:
            raise self.malformed()
        # `<=8` and `?` are dynamic sizes.
        sizes = [size.strip() for size in match[2].split(",") if size.strip()]
        if any(len(size) > _LONGEST_SIZE for size in sizes):
            raise self.malformed()
        self._at = match.end()
        if match[1] in ("token", "opaque"):
            return Opaque(f"{match[1]}[]")
        static = (int(size) if size.isdecimal() else None for size in sizes)
        bounds = (int(size[2:]) if size[:2] == "<=" and size[2:].isdecimal() else None for size in sizes)
        return Array.of_hlo(match[1], tuple(static), tuple(bounds))

    def _skip(self, sign: str) -> bool:
        """Skip white space, comments such as ``/*index=5*/``, and ``sign`` if it comes next."""
        space = self._COMMENT.match(self._text, self._at)
        at = space.end() if space else self._at
        if self._text.startswith(sign, at):
            self._at = at + len(sign)
            return True
        return False


# Recognition of HLO protocol buffers, and extraction of the module
#
# A file is an ``HloModuleProto``, an ``HloProto`` that contains one, or a snapshot of either with the arguments and the
# result of a run, which XLA dumps with ``xla_dump_hlo_snapshots``. The field numbers are those of
# ``xla/service/hlo.proto`` in openxla/xla, and never change.

_NAME: Final = 1
_ENTRY_FIELD: Final = 2
_COMPUTATION: Final = 3
_INSTRUCTION_FIELD: Final = 2
_OPCODE: Final = 2
_LONGEST_NAME: Final = 1 << 16
_DEEPEST_MODULE: Final = 3


def find_hlo_module(data: View) -> View | None:
    """Judge by the beginning: names, and a computation with an instruction; in a snapshot, those of its module."""
    try:
        message = Message(data, "HLO")
        for _ in range(_DEEPEST_MODULE):
            if _is_module(message):
                return message.data
            number, value = next(message.fields())
            if number != _NAME or not isinstance(value, Message):
                return None
            message = value
    except (MalformedArtifactError, StopIteration):
        pass
    return None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The values of a run that XLA dumped with its module."""

    constants: bytes  # a module that returns the leaves of the arguments, and behind them those of the result
    arguments: int  # number of leaves
    has_result: bool
    platform: str


_ARGUMENTS, _RESULT, _PLATFORM = 2, 3, 4
_LITERAL_SHAPE, _LITERAL_PARTS = 1, 10


def read_snapshot(data: View) -> Snapshot | None:
    """``None`` if the file has no values: an ``HloSnapshot`` has, and an ``HloUnoptimizedSnapshot`` of one device."""
    whole = Message(data, "HLO snapshot")
    if find_hlo_module(data) is None or _is_module(whole):
        return None
    held = whole.message(next(whole.fields())[1])
    fields = [(number, whole.message(value)) for number, value in whole.fields() if isinstance(value, Message)]
    arguments = [value for number, value in fields if number == _ARGUMENTS]
    results = [value for number, value in fields if number == _RESULT]
    if _is_module(held):
        # Without a result: the arguments of each device, in a message of their own.
        results = []
        arguments = list(_messages(arguments[0])) if len(arguments) == 1 else []
    inputs = [leaf for each in arguments for leaf in _leaves(each, 0)]
    outputs = [leaf for each in results for leaf in _leaves(each, 0)]
    platform = next((value.text() for number, value in fields if number == _PLATFORM), "")
    return (
        Snapshot(_constants([*inputs, *outputs]), len(inputs), bool(results), platform) if inputs or outputs else None
    )


def _leaves(literal: Message, depth: int) -> list[bytes]:
    if depth > DEEPEST:
        raise literal.malformed(f"has literals that nest deeper than {DEEPEST}", 0)
    parts = [literal.message(value) for number, value in literal.fields() if number == _LITERAL_PARTS]
    return [leaf for each in parts for leaf in _leaves(each, depth + 1)] if parts else [bytes(literal.data)]


def _constants(literals: Sequence[bytes]) -> bytes:
    """Return a module of one computation whose result is a tuple of the literals."""
    shapes = [_shape_of_literal(each) for each in literals]
    instructions = [
        encode_message((1, f"c{number}"), (2, "constant"), (3, shape), (8, literal), (35, number + 1))
        for number, (literal, shape) in enumerate(zip(literals, shapes, strict=True))
    ]
    whole = encode_message((2, _TUPLE), *((4, shape) for shape in shapes))
    root, ids = len(literals) + 1, [(36, number + 1) for number in range(len(literals))]
    instructions.append(encode_message((1, "all"), (2, "tuple"), (3, whole), (35, root), *ids))
    program = encode_message((2, whole))
    computation = encode_message((1, "main"), *((2, each) for each in instructions), (4, program), (5, 1), (6, root))
    return encode_message((1, "snapshot"), (2, "main"), (3, computation), (4, program), (5, 1), (6, 1))


_TUPLE: Final = 13


def _shape_of_literal(literal: bytes) -> bytes:
    message = Message(memoryview(literal), "HLO literal")
    shapes = (value for number, value in message.fields() if number == _LITERAL_SHAPE)
    return bytes(message.message(next(shapes, 0)).data)


def _is_module(message: Message) -> bool:
    fields = message.fields()
    for wanted in (_NAME, _ENTRY_FIELD):
        number, value = next(fields, (0, 0))
        if number != wanted or not _is_name(value):
            return False
    number, computation = next(fields, (0, 0))
    if number != _COMPUTATION or not isinstance(computation, Message):
        return False
    for number, value in computation.fields():
        if number == _NAME and not _is_name(value):
            return False
        if number == _INSTRUCTION_FIELD and isinstance(value, Message):
            return any(number == _OPCODE and _is_name(opcode) for number, opcode in value.fields())
    return False


def _is_name(value: int | Message) -> bool:
    if not isinstance(value, Message) or len(value.data) > _LONGEST_NAME:
        return False
    try:
        return bytes(value.data).decode("utf-8").isprintable()
    except UnicodeDecodeError:
        return False


# Reader of the name, signature and aliases of an HLO protocol buffer
#
# The field numbers are those of ``xla/service/hlo.proto`` and ``xla/xla_data.proto`` in openxla/xla, and never change.

_PROGRAM_SHAPE: Final = 4
_ALIASES_FIELD: Final = 8
_DONORS_FIELD: Final = 18
_MUST_ALIAS: Final = 2
_LARGEST: Final = (1 << 63) - 1

#: The enum ``PrimitiveType``, in the syntax of HLO text.
ELEMENT_TYPES: Final = dict(
    enumerate(
        (
            *("pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "tuple", "opaque"),
            *("c64", "bf16", "token", "c128", "f8e5m2", "f8e4m3fn", "s4", "u4", "f8e4m3b11fnuz", "f8e5m2fnuz"),
            *("f8e4m3fnuz", "s2", "u2", "f8e4m3", "f8e3m4", "s1", "u1", "f4e2m1fn", "f8e8m0fnu"),
        ),
        start=1,
    )
)


def read_hlo_module(data: View) -> HloHeader:
    """Return the same facts as the first line of the module's text."""
    module = Message(data, "HLO")
    name, signature = "", None
    aliases: list[Alias] = []
    donors: list[Donor] = []
    for number, value in module.fields():
        if number == _NAME:
            name = module.message(value).text()
        elif number == _PROGRAM_SHAPE:
            shapes: dict[int, list[Shape]] = {1: [], 2: [Opaque()]}
            for side, shape in module.message(value).fields():
                if side in shapes:
                    shapes[side].append(_shape(module.message(shape), 0))
            signature = Signature(tuple(shapes[1]), shapes[2][-1])
        elif number == _ALIASES_FIELD:
            aliases += map(_alias, _messages(module.message(value)))
        elif number == _DONORS_FIELD:
            donors += map(_donor, _messages(module.message(value)))
    return HloHeader(name, tuple(aliases), tuple(donors), signature)


def _messages(message: Message) -> Iterator[Message]:
    """Yield the values of field 1 of a message, one for each entry."""
    for number, value in message.fields():
        if number == 1:
            yield message.message(value)


def _alias(entry: Message) -> Alias:
    output, parameter, index, kind = (_numbers(entry, number) for number in (1, 2, 3, 4))
    must = kind[-1:] == (_MUST_ALIAS,)
    return Alias(output, parameter[-1] if parameter else 0, index, "must-alias" if must else "may-alias")


def _donor(entry: Message) -> Donor:
    parameter, index = (_numbers(entry, number) for number in (1, 2))
    return Donor(parameter[-1] if parameter else 0, index)


def _numbers(message: Message, wanted: int) -> tuple[int, ...]:
    """Return the numbers in a repeated field, packed or not."""
    found: list[int] = []
    for number, value in message.fields():
        if number == wanted:
            found += [value] if isinstance(value, int) else value.numbers()
    return tuple(found)


def _shape(message: Message, depth: int) -> Shape:
    if depth > DEEPEST:
        raise message.malformed(f"has shapes that nest deeper than {DEEPEST}", 0)
    kind = ELEMENT_TYPES.get(sum(_numbers(message, 2)[-1:]), "")
    if kind == "tuple":
        parts = [message.message(value) for number, value in message.fields() if number == 4]
        return Tuple(tuple(_shape(each, depth + 1) for each in parts))
    if kind in ("token", "opaque"):
        return Opaque(f"{kind}[]")
    sizes, dynamic = _numbers(message, 3), _numbers(message, 6)
    padded = read_hlo_layout(message).bytes if any(number == _LAYOUT_FIELD for number, _ in message.fields()) else None
    is_dynamic = [any(dynamic[at : at + 1]) for at in range(len(sizes))]
    static = (None if each else size for size, each in zip(sizes, is_dynamic, strict=True))
    # Of a dynamic dimension the size is its bound; an unbounded one has a negative number.
    bounds = (size if each and size <= _LARGEST else None for size, each in zip(sizes, is_dynamic, strict=True))
    return Array.of_hlo(kind or "unknown", tuple(static), tuple(bounds), padded)


# Layouts with tiles, which TPUs have
#
# Source: ``docs/tiled_layout.md`` and ``LayoutProto`` of ``xla/xla_data.proto`` in openxla/xla.

_LAYOUT_FIELD: Final = 5
_TILES_FIELD: Final = 6
_ELEMENT_BITS_FIELD: Final = 7
_MOST_TILES: Final = 8


@dataclass(frozen=True, slots=True)
class HloLayout:
    """How an array lies in memory."""

    element: int  # the number of its type
    sizes: tuple[int, ...]
    minor_to_major: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...]  # each divides the minor dimensions that the one before leaves
    bits: int | None  # width of an element

    @property
    def bytes(self) -> int | None:
        """Its size, padding included; ``None`` without tiles, or if the width is unknown."""
        if not self.tiles or self.bits is None:
            return None
        minor = [self.sizes[at] for at in self.minor_to_major]
        for tile in self.tiles:
            minor += [1] * (len(tile) - len(minor))
            parts = [-(-size // each) for size, each in zip(minor, tile[::-1], strict=False)]
            minor = [*tile[::-1], *parts, *minor[len(tile) :]]
        return (math.prod(minor) * self.bits + 7) // 8

    def __str__(self) -> str:
        order = ",".join(map(str, self.minor_to_major))
        tiles = "".join(f"({','.join(map(str, each))})" for each in self.tiles)
        sizes = ",".join(map(str, self.sizes))
        return f"{ELEMENT_TYPES.get(self.element, 'unknown')}[{sizes}]{{{order}{':T' if tiles else ''}{tiles}}}"


def read_hlo_layout(shape: Message) -> HloLayout:
    """Return the layout of an array; where none is given, row by row.

    Raises:
        MalformedArtifactError: If it is not a layout of the shape.
    """
    sizes = _numbers(shape, 3)
    element = sum(_numbers(shape, 2)[-1:])
    bits = ELEMENT_BITS.get(ELEMENT_TYPES.get(element, ""))
    order, tiles = tuple(reversed(range(len(sizes)))), []
    for number, value in shape.fields():
        if number != _LAYOUT_FIELD:
            continue
        for part, held in shape.message(value).fields():
            if part == _TILES_FIELD:
                tiles.append(_numbers(shape.message(held), 1))
            elif part == _ELEMENT_BITS_FIELD and held:
                bits = shape.number(held)
        order = _numbers(shape.message(value), 1) or order
    if sorted(order) != list(range(len(sizes))) or len(tiles) > _MOST_TILES:
        raise shape.malformed(f"has a layout that is none of {len(sizes)} dimensions", 0)
    if any(not 0 < each <= _LARGEST for tile in tiles for each in tile) or not all(tiles):
        raise shape.malformed("has a tile whose sizes are not positive", 0)
    # Without tiles a size may be unbounded, and nothing is computed of it.
    if tiles and (excess := excess_of_shape([*sizes, *(each for tile in tiles for each in tile)])):
        raise shape.malformed(f"has tiles with {excess}", 0)
    return HloLayout(element, sizes, order, tuple(tiles), bits)
