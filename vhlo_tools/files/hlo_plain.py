"""HLO that a compiler has optimized and scheduled, in the form that XLA converts to StableHLO.

Two things are peculiar to it, and mean nothing in StableHLO:

- Ops that run beside others are pairs: ``copy-start`` and ``copy-done``, ``all-gather-start`` and ``all-gather-done``,
  ``async-start``, ``async-update`` and ``async-done`` of a computation. They become one op, a call of a computation.
- Layouts of TPUs have tiles, into which the elements of the minor dimensions are grouped, padded. Only a bitcast can
  tell: it becomes the ops that move the elements as it does.

Sources: ``xla/service/hlo.proto``, ``xla/hlo/ir/hlo_opcode.h`` and ``docs/tiled_layout.md`` in openxla/xla.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Final

from vhlo_tools.aliasing import Array, leaves
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.files.hlo import DEEPEST, HloHeader, HloLayout, read_hlo_layout
from vhlo_tools.files.mapping import view
from vhlo_tools.files.protobuf import Message, encode_message
from vhlo_tools.records import dataclass

# Fields of modules, computations, instructions and shapes.
_COMPUTATIONS, _PROGRAM_SHAPE, _SCHEDULE = 3, 4, 7
_INSTRUCTIONS, _ROOT, _THREAD = 2, 6, 8
_NAME, _OPCODE, _SHAPE, _ID, _OPERANDS, _CONTROL, _OPERAND_SHAPES = 1, 2, 3, 35, 36, 37, 57
_DIMENSIONS, _SLICES, _PADDING, _BACKEND_CONFIG, _FRONTEND_ATTRIBUTES = 14, 17, 21, 43, 68
_ELEMENT, _SIZES, _PARTS, _LAYOUT, _MINOR_TO_MAJOR = 2, 3, 4, 5, 1
#: What fusions of TPUs do to their results besides.
_REVERSED: Final = re.compile(rb'"output_reverse_dimensions"\s*:\s*\[\s*"')
#: The group, thread and prefetch of what runs beside others.
_ASYNCHRONOUS: Final = (73, 78, 79, 80)
#: What the first halves of pairs become, where that is not the name without its end.
_TOGETHER: Final = {"async": "call"}


def is_plain_hlo(proto: bytes, header: HloHeader) -> bool:
    """Judges by what parameters and results have: tiles of other layouts only are left to XLA."""
    shapes = (header.signature.result, *header.signature.parameters) if header.signature else ()
    arrays = (leaf for each in shapes for _, leaf in leaves(each) if isinstance(leaf, Array))
    return b"-start" not in proto and all(each.padded is None for each in arrays)


def plain_hlo(proto: bytes, name: str) -> bytes:
    """Raises :class:`InvalidProgramError` for what has no such form, and MalformedArtifactError."""
    shapes = _Shapes()

    def parts() -> Iterator[bytes]:
        for number, value, raw in Message(view(proto), "HLO").spans():
            if number == _COMPUTATIONS and isinstance(value, Message):
                yield encode_message((number, _Computation(value, shapes, name).written()))
            elif number == _PROGRAM_SHAPE and isinstance(value, Message):
                yield encode_message((number, shapes.of_program(value)))
            elif number != _SCHEDULE:
                yield bytes(raw)

    return b"".join(parts())


class _Shapes:
    """Shapes without what only devices need; most occur many times."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}

    def plain(self, shape: Message, depth: int = 0) -> bytes:
        data = bytes(shape.data)
        if data not in self._known:
            if depth > DEEPEST:
                raise shape.malformed(f"has shapes that nest deeper than {DEEPEST}", 0)
            self._known[data] = b"".join(self._fields(shape, depth))
        return self._known[data]

    def of_program(self, signature: Message) -> bytes:
        """The shapes of parameters and of a result."""
        return b"".join(
            encode_message((number, self.plain(value)))
            if number in (1, 2) and isinstance(value, Message)
            else bytes(raw)
            for number, value, raw in signature.spans()
        )

    def _fields(self, shape: Message, depth: int) -> Iterator[bytes]:
        for number, value, raw in shape.spans():
            if number == _PARTS and isinstance(value, Message):
                yield encode_message((number, self.plain(value, depth + 1)))
            elif number == _LAYOUT and isinstance(value, Message):
                yield encode_message(
                    (number, b"".join(bytes(part) for at, _, part in value.spans() if at == _MINOR_TO_MAJOR))
                )
            else:
                yield bytes(raw)


class _Instruction:
    """An instruction; what is not an attribute here is written as it was read."""

    def __init__(self, read: Message) -> None:
        self.opcode, self.id = "", 0
        self.shape: Message | None = None
        self.operands: list[int] = []
        self.constrained: list[Message] = []
        self.rest: list[tuple[int, bytes]] = []
        for number, value, raw in read.spans():
            if number == _OPCODE:
                self.opcode = read.message(value).text()
            elif number == _ID:
                self.id = read.number(value)
            elif number == _OPERANDS:
                self.operands += [value] if isinstance(value, int) else value.numbers()
            elif number == _SHAPE:
                self.shape = read.message(value)
            elif number == _OPERAND_SHAPES:
                self.constrained.append(read.message(value))
            elif number not in (_CONTROL, *_ASYNCHRONOUS):
                self.rest.append((number, bytes(raw)))

    def written(self, shapes: _Shapes, id_of: dict[int, int]) -> bytes:
        shape = () if self.shape is None else ((_SHAPE, shapes.plain(self.shape)),)
        operands = ((_OPERANDS, id_of.get(each, each)) for each in self.operands)
        constrained = ((_OPERAND_SHAPES, shapes.plain(each)) for each in self.constrained)
        known = encode_message((_OPCODE, self.opcode), (_ID, self.id), *shape, *operands, *constrained)
        # XLA takes no attributes of parameters that are tuples, and nothing else means anything here.
        rest = (raw for number, raw in self.rest if self.opcode != "parameter" or number != _FRONTEND_ATTRIBUTES)
        return b"".join((known, *rest))


class _Computation:
    """A computation, whose pairs are joined, and whose bitcasts have layouts without tiles."""

    def __init__(self, read: Message, shapes: _Shapes, name: str) -> None:
        self._shapes, self._name = shapes, name
        self._rest: list[bytes] = []
        self._root = 0
        self._by_id: dict[int, _Instruction] = {}
        for number, value, raw in read.spans():
            if number == _INSTRUCTIONS:
                instruction = _Instruction(read.message(value))
                self._by_id[instruction.id] = instruction
            elif number == _ROOT:
                self._root = read.number(value)
            elif number == _PROGRAM_SHAPE:
                self._rest.append(encode_message((number, shapes.of_program(read.message(value)))))
            elif number != _THREAD:
                self._rest.append(bytes(raw))
        self._last = max(self._by_id, default=0)
        # The ids of second halves, and of what is between, with those of the first.
        self._start_of: dict[int, int] = {}

    def written(self) -> bytes:
        for each in list(self._by_id.values()):
            self._join(each)
        parts = [(_INSTRUCTIONS, part) for each in self._by_id.values() for part in self._parts(each)]
        root = self._start_of.get(self._root, self._root)
        return b"".join((*self._rest, encode_message(*parts, (_ROOT, root))))

    def _join(self, each: _Instruction) -> None:
        """Let the first half of a pair be the whole, and remove the others."""
        kind, _, half = each.opcode.rpartition("-")
        if half not in ("update", "done") or len(each.operands) != 1:
            return
        start = self._start_of.get(each.operands[0], each.operands[0])
        first = self._by_id.get(start)
        if first is None or first.opcode != f"{kind}-start":
            return
        self._start_of[each.id] = start
        del self._by_id[each.id]
        if half == "done":
            first.opcode, first.shape = _TOGETHER.get(kind, kind), each.shape

    def _parts(self, each: _Instruction) -> Iterator[bytes]:
        if each.opcode.endswith("-start"):
            raise InvalidProgramError(
                f"{self._name} has an op {each.opcode} whose end is not in the same computation: expected "
                f"{each.opcode.removesuffix('-start')}-done; dump the program before XLA schedules it"
            )
        if any(number == _BACKEND_CONFIG and _REVERSED.search(raw) for number, raw in each.rest):
            raise InvalidProgramError(
                f"{self._name} has an op {each.opcode} whose results the compiler reverses, as only the configuration "
                "of its backend says: dump the program before XLA optimizes it"
            )
        if each.opcode == "bitcast" and len(each.operands) == 1 and each.shape is not None:
            source = self._by_id.get(self._start_of.get(each.operands[0], each.operands[0]))
            if source is not None and source.shape is not None:
                before, after = read_hlo_layout(source.shape), read_hlo_layout(each.shape)
                if not _is_bitcast_without_tiles(before, after):
                    yield from self._moved(each, before, after)
                    return
        yield each.written(self._shapes, self._start_of)

    def _moved(self, each: _Instruction, before: HloLayout, after: HloLayout) -> Iterator[bytes]:
        """The array as it lies in memory, of other elements if so asked, and from memory to what it is to be."""
        forth, back = _to_memory(before), [step.back() for step in reversed(_to_memory(after))]
        held, wanted = (math.prod(steps[at].sizes) for steps, at in ((forth, -1), (back, 0)))
        if not before.bits or not after.bits or held * before.bits != wanted * after.bits:
            raise InvalidProgramError(
                f"{self._name} has a bitcast of {before} to {after}, which differ in the size in memory"
            )
        flat = [held] if before.bits >= after.bits else [wanted, after.bits // before.bits]
        steps = [*forth, _Step("reshape", forth[-1].sizes, flat)]
        if before.element != after.element:
            flat = [wanted] if before.bits <= after.bits else [held, before.bits // after.bits]
            steps.append(_Step("bitcast-convert", flat, flat))
        at, element = self._start_of.get(each.operands[0], each.operands[0]), before.element
        steps += [_Step("reshape", steps[-1].sizes, back[0].before), *back]
        for step in steps:
            if step.is_idle and step is not steps[-1]:
                continue
            operands = [at]
            if step.opcode == "pad":
                # What lies between is not defined: here it is the first element.
                one = _Step("slice", step.before, [1] * len(step.sizes))
                for part in (one, _Step("reshape", one.sizes, [])):
                    yield self._made(part, element, operands[-1:])
                    operands.append(self._last)
                operands = [at, self._last]
            element = after.element if step.opcode == "bitcast-convert" else element
            yield self._made(step, element, operands, each.id if step is steps[-1] else None)
            at = self._last

    def _made(self, step: _Step, element: int, operands: Sequence[int], id_: int | None = None) -> bytes:
        if id_ is None:
            self._last += 1
            id_ = self._last
        order = [(_MINOR_TO_MAJOR, each) for each in reversed(range(len(step.sizes)))]
        shape = encode_message(
            (_ELEMENT, element), *((_SIZES, size) for size in step.sizes), (_LAYOUT, encode_message(*order))
        )
        known = ((_NAME, f"in_memory.{id_}"), (_OPCODE, step.opcode), (_SHAPE, shape), (_ID, id_))
        return encode_message(*known, *((_OPERANDS, each) for each in operands), *step.attributes())


# The order of elements in memory


@dataclass(frozen=True, slots=True)
class _Step:
    """An op that moves elements."""

    opcode: str
    before: Sequence[int]  # the sizes of its operand
    sizes: Sequence[int]  # those of its result
    order: Sequence[int] = field(default=())  # the dimensions of the operand, of a transpose

    @property
    def is_idle(self) -> bool:
        is_in_order = list(self.order) == sorted(self.order)
        return self.opcode != "bitcast-convert" and is_in_order and list(self.before) == list(self.sizes)

    def back(self) -> _Step:
        opcode = {"pad": "slice"}.get(self.opcode, self.opcode)
        return _Step(opcode, self.sizes, self.before, sorted(range(len(self.order)), key=self.order.__getitem__))

    def attributes(self) -> list[tuple[int, int | bytes]]:
        if self.opcode == "transpose":
            return [(_DIMENSIONS, each) for each in self.order]
        if self.opcode == "pad":
            added = (encode_message((2, size - old)) for size, old in zip(self.sizes, self.before, strict=True))
            return [(_PADDING, b"".join(encode_message((1, each)) for each in added))]
        if self.opcode == "slice":
            return [(_SLICES, encode_message((2, size), (3, 1))) for size in self.sizes]
        return []


def _to_memory(layout: HloLayout) -> list[_Step]:
    """The last has the sizes of the array as it lies in memory, row by row."""
    order = layout.minor_to_major[::-1]
    steps = [_Step("transpose", layout.sizes, [layout.sizes[at] for at in order], order)]
    for tile in layout.tiles:
        sizes = steps[-1].sizes
        padded = [1] * (len(tile) - len(sizes)) + list(sizes)
        steps.append(_Step("reshape", sizes, padded))
        outer = padded[: len(padded) - len(tile)]
        tiles = [-(-size // each) for size, each in zip(padded[len(outer) :], tile, strict=True)]
        whole = [number * each for number, each in zip(tiles, tile, strict=True)]
        steps.append(_Step("pad", padded, [*outer, *whole]))
        split = [each for pair in zip(tiles, tile, strict=True) for each in pair]
        steps.append(_Step("reshape", [*outer, *whole], [*outer, *split]))
        inner = range(len(outer), len(outer) + len(split))
        steps.append(
            _Step(
                "transpose", [*outer, *split], [*outer, *tiles, *tile], [*range(len(outer)), *inner[::2], *inner[1::2]]
            )
        )
    return steps


def _is_bitcast_without_tiles(before: HloLayout, after: HloLayout) -> bool:
    """Whether the tiles change nothing: they are the same, and group the same elements, or whole rows of tiles."""
    if before.tiles == after.tiles == () or 0 in before.sizes:
        return True
    if before.bits != after.bits or before.tiles != after.tiles:
        return False
    tile = before.tiles[0]
    one, other = (_minor(each, len(tile)) for each in (before, after))
    first = all(a == b or a % tile[0] == b % tile[0] == 0 for a, b in zip(one[:1], other[:1], strict=True))
    return first and one[1:] == other[1:]


def _minor(layout: HloLayout, number: int) -> list[int]:
    """The sizes of the minor dimensions, from the major one."""
    sizes = [layout.sizes[at] for at in layout.minor_to_major[:number]]
    return [*sizes, *[1] * (number - len(sizes))][::-1]
