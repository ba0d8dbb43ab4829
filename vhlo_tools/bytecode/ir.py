"""IR section: the program, in the order of its text (:mod:`vhlo_tools.bytecode.program`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from vhlo_tools.bytecode.container import SECTION_NAMES
from vhlo_tools.bytecode.primitives import SMALL, ByteReader, flagged, varint, varints
from vhlo_tools.bytecode.program import (
    Block,
    BlockArgument,
    Extra,
    Head,
    Heads,
    Region,
    Rows,
    UseListOrder,
)
from vhlo_tools.errors import MalformedArtifactError

# Constants of the IR section: bits of the op mask, and the versions of the format that have each part
#
# Source: «IR Section» in ``mlir/docs/BytecodeFormat.md``, and ``BytecodeReader.cpp`` for dependencies on the version of
# the format: sections around isolated regions since 2, use-list orders since 3, optional locations of block arguments
# since 4, properties since 5.

SECTIONS_SINCE: Final = 2
USE_LISTS_SINCE: Final = 3
OPTIONAL_LOCATIONS_SINCE: Final = 4

#: The bits of an op's mask.
HAS_ATTRIBUTES: Final = 0x01
HAS_RESULTS: Final = 0x02
HAS_OPERANDS: Final = 0x04
HAS_SUCCESSORS: Final = 0x08
HAS_REGIONS: Final = 0x10
HAS_USE_LISTS: Final = 0x20
HAS_PROPERTIES: Final = 0x40
KNOWN: Final = 0x7F

#: The mark of a section with regions.
IR: Final = SECTION_NAMES.index("ir")

#: The limit on regions, and that on blocks: each takes some 500 bytes of memory, and as little as one of the file.
#: Programs of 300,000 ops have some 30,000.
MOST_BLOCKS: Final = 1 << 18
#: Before each so many regions or blocks, memory is asked for that is not used: where it is missing, that is an error
#: here. Where small objects have none, CPython can end the process, because errors are objects too.
_ASKING: Final = 1 << 8
_ASKED: Final = 4 << 20

#: So many ops are read, and operands written, at once: their numbers are objects until they are in a column.
AT_ONCE: Final = 1 << 15


# Decode the IR section: the program, in the order of its text (:mod:`vhlo_tools.bytecode.ir`)

# What ops have beside their head, location and operands.
_EXTRA: Final = HAS_SUCCESSORS | HAS_REGIONS | HAS_USE_LISTS

# Real programs nest about a dozen levels deep. Python's stack ends near a thousand frames; a level takes four of them,
# and callers may have used some already.
_DEEPEST: Final = 128

# Ops are read in bulk where they have at most this number of operands, of at most four bytes each, and so many bytes
# between their location and these; and where as many bytes as that is at the most follow.
_MOST_USUAL: Final = 32
_LONGEST_TAIL: Final = 64
_LONGEST_USUAL: Final = 2 + 4 + _LONGEST_TAIL + 4 * _MOST_USUAL
# Of the forms of ops of one name, those of the last so many sizes are found.
_TRIED: Final = 8
# So many different arguments of blocks, rare parts of ops, and forms of ops of one name are remembered.
_MOST_ALIKE: Final = 1 << 12


class TableSizes(NamedTuple):
    op_names: int
    attributes: int
    types: int
    properties: int


def decode_ir(reader: ByteReader, version: int, tables: TableSizes, *, bodies: bool = True) -> Block:
    """Decode the top level: a block that contains the module.

    Without ``bodies``, isolated regions of ops in the module are skipped where the format gives their sizes: no
    regions.
    """
    decoder = _Decoder(reader, version, tables, _DEEPEST if bodies else 1)
    block = decoder.block(0, 0)
    if decoder.position != len(decoder.data):
        raise decoder.malformed(f"{len(decoder.data) - decoder.position} bytes follow the program")
    return block


class _Kind(NamedTuple):
    """What ops of a form have in common. A form is a name, a mask, and the bytes between location and operands."""

    head: int  # number of the head
    operands: int  # number of operands
    ordered: int  # number of results if use-list orders follow the operands, else 0


class _Forms(NamedTuple):
    """The kinds of the ops that begin with the same name and mask."""

    kinds: dict[bytes, _Kind]  # by the bytes between location and operands
    sizes: list[int]  # the numbers of these bytes


class _Decoder:
    """Decoder with copies of the primitives of :class:`ByteReader` for speed: a file of many ops is mostly IR."""

    def __init__(self, reader: ByteReader, version: int, tables: TableSizes, deepest: int) -> None:
        self.start = reader.position
        # Indexing bytes is faster than indexing a view, and an IR section holds no constants.
        self.data = bytes(reader.take(reader.remaining))
        self.position = 0
        # The number of blocks in the region, and of all regions and blocks so far.
        self.blocks = 0
        self.seen = {"regions": 0, "blocks": 0}
        self.version = version
        self.tables = tables
        # Isolated regions below this level are passed over.
        self.deepest = deepest
        self.locations_optional = version >= OPTIONAL_LOCATIONS_SINCE
        self.heads = Heads()
        # What stands for each region without blocks, and for each block without arguments and ops: nothing is edited
        # in them.
        self.no_region = Region()
        self.no_block = Block(rows=Rows(self.heads))
        # Those that are alike are one object each, because the shortest take one byte of the file, or five.
        self.argument: Callable[[int, int | None], BlockArgument] = lru_cache(_MOST_ALIKE)(BlockArgument)
        self.shared: Callable[..., Extra] = lru_cache(_MOST_ALIKE)(Extra)
        # By the bytes with which an op begins, its name and its mask.
        self.forms: dict[bytes, _Forms] = {}
        self.is_damaged = False

    def malformed(self, message: str) -> MalformedArtifactError:
        return MalformedArtifactError(message, offset=self.start + self.position, section="ir")

    def varint(self) -> int:
        data, position = self.data, self.position
        if position >= len(data):
            raise self.malformed("the bytes end where another byte was expected")
        first = data[position]
        if first & 1:
            self.position = position + 1
            return first >> 1
        size = 9 if first == 0 else (first & -first).bit_length()
        if position + size > len(data):
            raise self.malformed("a number is cut short")
        self.position = position + size
        if first == 0:
            return int.from_bytes(data[position + 1 : position + 9], "little")
        return int.from_bytes(data[position : position + size], "little") >> size

    def index(self, size: int, things: str) -> int:
        value = self.varint()
        if value >= size:
            raise self.malformed(f"index {value} is outside the table of {size} {things}")
        return value

    def count(self, things: str) -> int:
        value = self.varint()
        if value > len(self.data) - self.position:
            raise self.malformed(
                f"{value} {things} were announced, but only {len(self.data) - self.position} bytes remain"
            )
        return value

    def indices(self, number: int, size: int, things: str) -> list[int]:
        if number > len(self.data) - self.position:
            raise self.malformed(f"{number} {things} where {len(self.data) - self.position} bytes remain")
        values = self.varints(number)
        if values and max(values) >= size:
            raise self.malformed(f"index {max(values)} is outside the table of {size} {things}")
        return values

    def varints(self, number: int) -> list[int]:
        data, position, last = self.data, self.position, len(self.data) - 3
        values: list[int] = []
        for _ in range(number):
            first = data[position] if position < last else 0
            if first & 1:
                values.append(first >> 1)
                position += 1
            elif first & 2:
                values.append((data[position + 1] << 8 | first) >> 2)
                position += 2
            elif first & 4:
                values.append((data[position + 2] << 16 | data[position + 1] << 8 | first) >> 3)
                position += 3
            else:
                self.position = position
                values.append(self.varint())
                position = self.position
        self.position = position
        return values

    def block(self, values: int, depth: int) -> Block:
        head = self.varint()
        if not head:
            return self.no_block
        rows = Rows(self.heads)
        block = Block(rows=rows)
        if head & 1:
            self.arguments(block)
        number = head >> 1
        if number > len(self.data) - self.position:
            raise self.malformed(f"{number} ops were announced, but only {len(self.data) - self.position} bytes remain")
        while len(rows.heads) < number:
            self.usual_operations(rows, min(number - len(rows.heads), AT_ONCE), values)
            if len(rows.heads) < number:
                self.operation(rows, values, depth)
        return block

    def usual_operations(self, rows: Rows, number: int, values: int) -> None:
        """Read up to ``number`` ops of names seen before; stop before another op or damage, for :meth:`operation`.

        As no number is the beginning of another, bytes that begin with those of a form are of this form.
        """
        data, position, forms = self.data, self.position, self.forms
        start, end = position, len(data) - _LONGEST_USUAL
        heads: list[int] = []
        locations: list[int] = []
        operands: list[int] = []
        extras: dict[int, Extra] = {}
        while len(heads) < number and position < end:
            at = position + 2
            known = forms.get(data[position:at])
            if known is None:
                break
            first = data[at]
            if first & 1:
                location = first >> 1
                at += 1
            elif first & 2:
                location = (data[at + 1] << 8 | first) >> 2
                at += 2
            elif first & 4:
                location = (data[at + 2] << 16 | data[at + 1] << 8 | first) >> 3
                at += 3
            elif first & 8:
                location = (data[at + 3] << 24 | data[at + 2] << 16 | data[at + 1] << 8 | first) >> 4
                at += 4
            else:
                break
            for size in known.sizes:
                kind = known.kinds.get(data[at : at + size])
                if kind is not None:
                    at += size
                    break
            else:
                kind = self.kind(known, data[position + 1], data[position] >> 1, at)
                if kind is None:
                    break
                at = self.position
            head, wanted, ordered = kind
            for done in range(wanted):
                first = data[at]
                if first & 1:
                    operands.append(first >> 1)
                    at += 1
                elif first & 2:
                    operands.append((data[at + 1] << 8 | first) >> 2)
                    at += 2
                elif first & 4:
                    operands.append((data[at + 2] << 16 | data[at + 1] << 8 | first) >> 3)
                    at += 3
                elif first & 8:
                    operands.append((data[at + 3] << 24 | data[at + 2] << 16 | data[at + 1] << 8 | first) >> 4)
                    at += 4
                else:
                    del operands[len(operands) - done :]
                    number = 0
                    break
            else:
                if ordered:
                    self.position = at
                    extras[len(heads)] = self.shared((), self.use_lists(ordered))
                    at = self.position
                heads.append(head)
                locations.append(location)
                position = at
        if max(locations, default=-1) >= self.tables.attributes or max(operands, default=-1) >= values:
            # Which op is damaged matters for the message only: from here on they are read one by one.
            self.forms.clear()
            self.is_damaged, self.position = True, start
            return
        for place, extra in extras.items():
            rows.extras[len(rows.heads) + place] = extra
        rows.heads.extend(heads)
        rows.locations.extend(locations)
        rows.operands.extend(operands)
        self.position = position

    def kind(self, forms: _Forms, mask: int, name: int, at: int) -> _Kind | None:
        """Read what stands between location and operands, and keep it; ``None`` if it is not usual, or damaged."""
        self.position = at
        try:
            head = self.head(mask, name)
        except MalformedArtifactError:
            return None
        ordered = len(head.results) if mask & HAS_USE_LISTS else 0
        tail = self.data[at : self.position]
        if len(tail) > _LONGEST_TAIL or head.operands > _MOST_USUAL or (mask & HAS_USE_LISTS and not ordered):
            return None
        if len(forms.kinds) >= _MOST_ALIKE:
            forms.kinds.clear()
        if len(tail) not in forms.sizes:
            forms.sizes.insert(0, len(tail))
            del forms.sizes[_TRIED:]
        kind = forms.kinds[tail] = _Kind(self.heads.number(head), head.operands, ordered)
        return kind

    def head(self, mask: int, name: int) -> Head:
        tables = self.tables
        has_attributes, has_properties = mask & HAS_ATTRIBUTES, mask & HAS_PROPERTIES
        first = self.varints(bool(has_attributes) + bool(has_properties) + bool(mask & HAS_RESULTS))
        attributes = first[0] if has_attributes else None
        properties = first[bool(has_attributes)] if has_properties else None
        if attributes is not None and attributes >= tables.attributes:
            raise self.malformed(f"index {attributes} is outside the table of {tables.attributes} attributes")
        if properties is not None and properties >= tables.properties:
            raise self.malformed(f"index {properties} is outside the table of {tables.properties} properties")
        results = tuple(self.indices(first[-1], tables.types, "types")) if mask & HAS_RESULTS else ()
        return Head(name, attributes, properties, results, self.varint() if mask & HAS_OPERANDS else 0)

    def operation(self, rows: Rows, values: int, depth: int) -> None:
        tables, start = self.tables, self.position
        name = self.index(tables.op_names, "op names")
        mask = self.byte()
        if mask & ~KNOWN:
            raise self.malformed(f"op mask 0x{mask:02x} has unknown bits")
        location = self.index(tables.attributes, "attributes")
        head = self.head(mask, name)
        operands = self.indices(head.operands, values, "values")
        if not mask & _EXTRA:
            rows.add(head, location, operands)
        else:
            successors = self.indices(self.varint(), self.blocks, "blocks") if mask & HAS_SUCCESSORS else []
            use_lists = self.use_lists(len(head.results)) if mask & HAS_USE_LISTS else ()
            regions, isolated = self.regions(values, depth + 1) if mask & HAS_REGIONS else ((), False)
            make = Extra if mask & HAS_REGIONS else self.shared
            rows.add(head, location, operands, make(tuple(successors), use_lists, regions, isolated))
        # Ops of this name and mask are usual from the next one on.
        if not mask & (HAS_SUCCESSORS | HAS_REGIONS) and self.data[start] & 1 and not self.is_damaged:
            self.forms.setdefault(self.data[start : start + 2], _Forms({}, []))

    def arguments(self, block: Block) -> None:
        types, attributes = self.tables.types, self.tables.attributes
        for _ in range(self.count("block arguments")):
            if self.locations_optional:
                head = self.varint()
                if head >> 1 >= types:
                    raise self.malformed(f"index {head >> 1} is outside the table of {types} types")
                location = self.index(attributes, "attributes") if head & 1 else None
                block.arguments.append(self.argument(head >> 1, location))
            else:
                block.arguments.append(self.argument(self.index(types, "types"), self.index(attributes, "attributes")))
        if self.version >= USE_LISTS_SINCE:
            block.use_list_mark = self.byte()
            if block.use_list_mark:
                block.use_lists = self.use_lists(len(block.arguments))
                if not block.use_lists:
                    raise self.malformed("a block announces use-list orders, but has none")

    def byte(self) -> int:
        if self.position >= len(self.data):
            raise self.malformed("the bytes end where another byte was expected")
        self.position += 1
        return self.data[self.position - 1]

    def use_lists(self, values: int) -> tuple[UseListOrder, ...]:
        orders = []
        for _ in range(self.count("use-list orders") if values > 1 else 1):
            value = self.index(values, "values") if values > 1 else None
            head = self.varint()
            if head >> 1 > len(self.data) - self.position:
                raise self.malformed(f"a use-list order of {head >> 1} where {len(self.data)} bytes remain")
            orders.append(UseListOrder(value, bool(head & 1), tuple([self.varint() for _ in range(head >> 1)])))
        return tuple(orders)

    def regions(self, values: int, depth: int) -> tuple[Sequence[Region], bool]:
        if depth > _DEEPEST:
            raise self.malformed(f"ops nest deeper than {_DEEPEST} levels")
        head = self.varint()
        number, isolated = head >> 1, bool(head & 1)
        if number > len(self.data) - self.position:
            raise self.malformed(f"{number} regions where {len(self.data) - self.position} bytes remain")
        self.more(number, "regions")
        end = self.enter_section() if isolated and self.version >= SECTIONS_SINCE else None
        if end is not None and depth > self.deepest:
            self.position = end
            return (), isolated
        # A list that grows takes twice the memory.
        regions = [self.no_region] * number
        # No comprehension here and in `region`, because it takes a stack frame of its own before Python 3.12.
        for each in range(number):
            regions[each] = self.region(0 if isolated else values, depth)
        if end is not None and self.position != end:
            raise self.malformed(f"a section of regions ends at {self.start + end}, but its regions end here")
        return regions, isolated

    def more(self, number: int, things: str) -> None:
        before = self.seen[things]
        self.seen[things] = after = before + number
        if after > MOST_BLOCKS:
            raise self.malformed(f"the file has {after} {things} or more; the limit is {MOST_BLOCKS}")
        if before // _ASKING != after // _ASKING:
            bytes(_ASKED)

    def enter_section(self) -> int:
        mark = self.byte()
        if mark != IR:
            raise self.malformed(f"expected a section with regions, found a section with mark {mark}")
        size = self.count("bytes")
        return self.position + size

    def region(self, values: int, depth: int) -> Region:
        number = self.count("blocks")
        if number == 0:
            return self.no_region
        self.more(number, "blocks")
        defined = self.count("values")
        around, self.blocks = self.blocks, number
        blocks = [self.no_block] * number
        for each in range(number):
            blocks[each] = self.block(values + defined, depth)
        self.blocks = around
        region = Region(blocks)
        if region.values != defined:
            raise self.malformed(f"a region announces {defined} values, but defines {region.values}")
        return region


# Encode the IR section: the program, in the order of its text (:mod:`vhlo_tools.bytecode.ir`)

# A program that was made by hand. A level takes three frames; and where this module is compiled, Python does not count
# them, and the process would end with its stack.
_DEEPEST_WRITTEN: Final = 256


def encode_ir(block: Block, version: int) -> bytes:
    """Raise ``ValueError`` for a number out of range, more than 256 levels, or a part that the version lacks."""
    encoder = _Encoder(version)
    out = bytearray()
    encoder.block(block, out)
    return bytes(out)


class _Encoder:
    def __init__(self, version: int) -> None:
        self.version = version
        # The bytes of the heads of a program: before and after the location.
        self.kinds: Heads | None = None
        self.coded: list[tuple[bytes, bytes, int] | None] = []
        # The number of regions around what is being encoded.
        self.depth = 0

    def block(self, block: Block, out: bytearray) -> None:
        rows = block.rows
        out += flagged(len(rows), bool(block.arguments))
        if block.arguments:
            self.arguments(block, out)
        table, coded = rows.kinds.table, self.coded
        if rows.kinds is not self.kinds:
            coded = []
            if block.is_columnar:
                self.kinds, self.coded = rows.kinds, coded
        if len(coded) < len(table):
            coded += [None] * (len(table) - len(coded))
        # Operands become objects some at a time; `window` are those from `at` on.
        window = rows.operands[:AT_ONCE].tolist()
        at = used = 0
        stops = iter([*rows.extras, len(rows)])
        stop = next(stops)
        small, most = SMALL, len(SMALL)
        locations = rows.locations
        for position, head in enumerate(rows.heads):
            found = coded[head]
            if found is None:
                found = coded[head] = _of_head(table[head])
            before, after, number = found
            extra = None
            if position == stop:
                extra = rows.extras[position]
                stop = next(stops)
                before = before[:-1] + bytes([before[-1] | self.mask(extra)])
            location = locations[position]
            out += before
            # Numbers of three bytes, nearly all in a program of very many ops, are written inline.
            if location < most:
                out += small[location]
            elif 1 << 14 <= location < 1 << 21:
                out += (location << 3 | 4).to_bytes(3, "little")
            else:
                out += varint(location)
            out += after
            if number:
                if used + number > len(window):
                    at += used
                    used, window = 0, rows.operands[at : at + max(number, AT_ONCE)].tolist()
                for operand in window[used : used + number]:
                    if operand < most:
                        out += small[operand]
                    elif 1 << 14 <= operand < 1 << 21:
                        out += (operand << 3 | 4).to_bytes(3, "little")
                    else:
                        out += varint(operand)
                used += number
            if extra is not None:
                self.extra(extra, rows.kinds.result_counts[head], out)

    def arguments(self, block: Block, out: bytearray) -> None:
        out += varint(len(block.arguments))
        for argument in block.arguments:
            if self.version >= OPTIONAL_LOCATIONS_SINCE:
                out += flagged(argument.type, argument.location is not None)
            elif argument.location is None:
                raise ValueError(
                    f"a block argument has no location, which version {self.version} of the format requires"
                )
            else:
                out += varint(argument.type)
            if argument.location is not None:
                out += varint(argument.location)
        if self.version >= USE_LISTS_SINCE:
            out.append((block.use_list_mark or 1) if block.use_lists else 0)
            self.use_lists(block.use_lists, len(block.arguments), out)

    def use_lists(self, orders: tuple[UseListOrder, ...], values: int, out: bytearray) -> None:
        if not orders:
            return
        if values > 1:
            out += varint(len(orders))
        for order in orders:
            if order.value is not None:
                out += varint(order.value)
            out += flagged(len(order.indices), order.pairs)
            out += varints(order.indices)

    def mask(self, extra: Extra) -> int:
        # Older versions cannot store the orders; the program is the same without them.
        use_lists = extra.use_lists and self.version >= USE_LISTS_SINCE
        return (
            (HAS_SUCCESSORS if extra.successors else 0)
            | (HAS_USE_LISTS if use_lists else 0)
            | (HAS_REGIONS if extra.regions else 0)
        )

    def extra(self, extra: Extra, results: int, out: bytearray) -> None:
        if extra.successors:
            out += varint(len(extra.successors))
            out += varints(extra.successors)
        if self.version >= USE_LISTS_SINCE:
            self.use_lists(extra.use_lists, results, out)
        if not extra.regions:
            return
        out += flagged(len(extra.regions), extra.isolated)
        if extra.isolated and self.version >= SECTIONS_SINCE:
            out.append(IR)
            start = len(out)
            for region in extra.regions:
                self.region(region, out)
            # A program stands in two such sections, and a copy of each would take as much memory again.
            out[start:start] = varint(len(out) - start)
            return
        for region in extra.regions:
            self.region(region, out)

    def region(self, region: Region, out: bytearray) -> None:
        self.depth += 1
        if self.depth > _DEEPEST_WRITTEN:
            raise ValueError(f"ops nest deeper than {_DEEPEST_WRITTEN} levels")
        out += varint(len(region.blocks))
        if region.blocks:
            out += varint(region.values)
            for block in region.blocks:
                self.block(block, out)
        self.depth -= 1


def _of_head(head: Head) -> tuple[bytes, bytes, int]:
    """Return the bytes of ops before and after their location, and the number of their operands."""
    mask = (
        (HAS_ATTRIBUTES if head.attributes is not None else 0)
        | (HAS_PROPERTIES if head.properties is not None else 0)
        | (HAS_RESULTS if head.results else 0)
        | (HAS_OPERANDS if head.operands else 0)
    )
    after = [each for each in (head.attributes, head.properties) if each is not None]
    if head.results:
        after += [len(head.results), *head.results]
    if head.operands:
        after.append(head.operands)
    return varint(head.name) + bytes([mask]), varints(after), head.operands
