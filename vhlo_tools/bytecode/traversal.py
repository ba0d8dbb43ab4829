"""Traversal of a program: each op with its place, the types of its operands, and its location in the user's source."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from vhlo_tools.bytecode.codec import Value
from vhlo_tools.bytecode.entries import Properties
from vhlo_tools.bytecode.file import File
from vhlo_tools.bytecode.program import Block, Head, Operation, Rows
from vhlo_tools.findings import SourceLocation
from vhlo_tools.spec import find_op_version

# Traverse a program, passing each op with its place and the types of its operands


#: The dialects whose ops have known properties.
KNOWN_DIALECTS: Final = ("builtin", "vhlo")
_OF_MODULE: Final[tuple[str, ...]] = ("sym_name", "sym_visibility")
_LONGEST_NUMBER: Final = 9
# Of the inherent attributes of an op: those of StableHLO have some dozen.
_MOST_INHERENT: Final = 64
_MOST_KEPT: Final = 1 << 14


class Place(NamedTuple):
    op: Operation
    number: int  # position in the block, from 0
    region: int  # number of the region in the parent op
    around: Place | None  # place of the parent op; None at the top


def visit(
    block: Block,
    operation: Callable[[Place, list[int]], None],
    wanted: Callable[[Head], bool] = lambda head: True,
    *,
    arguments: Callable[[Block, Place | None], None] | None = None,
    once: Callable[[Head], bool] = lambda head: False,
    for_editing: bool = False,
) -> None:
    """Visit the ops of ``block`` and of all its regions, in the order of the text.

    ``operation`` gets the types of all values in scope, which ``operands`` index, in a list that changes later. An op
    that ``once`` selects stands for all with its head. With ``for_editing`` (of :attr:`File.ir`), attributes may be
    changed.
    """
    _PlaceWalk(operation, arguments, wanted, once, for_editing).block(block, [], 0, None)


class _PlaceWalk:
    def __init__(
        self,
        operation: Callable[[Place, list[int]], None],
        arguments: Callable[[Block, Place | None], None] | None,
        wanted: Callable[[Head], bool],
        once: Callable[[Head], bool],
        for_editing: bool,
    ) -> None:
        self._operation = operation
        self._arguments = arguments
        self._wanted = wanted
        self._once = once
        self._for_editing = for_editing
        # The answers of `wanted`, each asked for once.
        self._answers: dict[Head, bool] = {}

    def block(self, block: Block, values: list[int], region: int, around: Place | None) -> None:
        if block.arguments and self._arguments is not None:
            self._arguments(block, around)
        rows = block.rows
        called = self._called(rows)
        holders = [number for number, extra in rows.extras.items() if extra.regions]
        numbers: Sequence[int] = sorted({*called, *holders}) if holders else called
        wanted = {*called} if holders else called
        for number in numbers:
            op = rows.operation(number) if block.is_columnar else block.operations[number]
            place = Place(op, number, region, around)
            if not holders or number in wanted:
                self._operation(place, values)
                if self._for_editing and block.is_columnar:
                    rows.heads[number] = rows.kinds.number(op.head)
            for inner_number, inner in enumerate(op.regions):
                outer = [] if op.isolated else values
                start = len(outer)
                # All values of a region are numbered before those in the regions of its ops.
                for each in inner.blocks:
                    outer += [argument.type for argument in each.arguments]
                    outer += each.rows.results
                for each in inner.blocks:
                    self.block(each, outer, inner_number, place)
                del outer[start:]

    def _called(self, rows: Rows) -> list[int]:
        heads, table = rows.heads, rows.kinds.table
        kinds = {head for head in {*heads} if self._is_wanted(table[head])}
        if not kinds:
            return []
        single = {head for head in kinds if self._once(table[head])}
        several = kinds - single
        found = [number for number, head in enumerate(heads) if head in several] if several else []
        if single:
            # Searching for each would take the square of the number of heads.
            firsts = dict(zip(reversed(heads), range(len(heads) - 1, -1, -1), strict=True))
            found += [firsts[head] for head in single]
            self._answers.update(dict.fromkeys([table[head] for head in single], False))
        return sorted(found) if single else found

    def _is_wanted(self, head: Head) -> bool:
        if head not in self._answers:
            self._answers[head] = self._wanted(head)
        return self._answers[head]


# Location of an op in the program and in the user's source

_DEEPEST: Final = 1000
# Of the frames of a stack, of names and stacks within one another, and of locations fused into one.
_MOST_FRAMES: Final = 100
_MOST_NESTED: Final = 16
_MOST_FUSED: Final = 16
# Functions are ops of another dialect in StableHLO programs.
_PROGRAM_NAMES: Final = {"func": "func.func", "call": "func.call", "return": "func.return"}
_LINES: Final = ("file_line_col", "file_line_col_range")
# The parts of a location in the order in which MLIR prints them: for a call site, the callee comes first.
_PARTS: Final = {"callsite": ("callee", "caller"), "fused": ("locations",), "name": ("child",)}


class Frame(NamedTuple):
    """One call on the way to an op, in the user's source."""

    location: SourceLocation
    function: str = ""  # as the producer recorded it; empty if it did not


def inherent_attributes(file: File, op: Operation | Head) -> Mapping[str, int]:
    """Return the inherent attributes in the properties of ``op``; none for ops of other dialects, whose format differs.

    Those of an unspecified VHLO op are named by number: ``0``, ``1`` and so on.
    """
    if op.properties is None:
        return {}
    names = _inherent_names(file.op_name(op.name))
    if names is None:
        return {}
    properties = file.properties[op.properties]
    if names is not _OF_MODULE and len(properties.data) > _LONGEST_NUMBER * len(names):
        # What is too long for them is read once for all ops, whatever their names.
        names = ()
    kept, found = file.decoded_properties.get((names, op.properties), (None, {}))
    if kept is not properties:
        found = _inherent(file, names, properties)
        # Kept, because many ops may refer to the same large ones; but what is kept is larger than what it is read from.
        if len(file.decoded_properties) >= _MOST_KEPT:
            file.decoded_properties.clear()
        file.decoded_properties[names, op.properties] = properties, found
    return found


# Asked for each op, of some hundred names.
@lru_cache(maxsize=1024)
def _inherent_names(op: str) -> tuple[str, ...] | None:
    dialect, _, name = op.partition(".")
    if dialect not in KNOWN_DIALECTS:
        return None
    if dialect == "builtin":
        return _OF_MODULE
    known = find_op_version(name)
    return tuple(known.attributes) if known is not None else ()


def _inherent(file: File, names: tuple[str, ...], properties: Properties) -> dict[str, int]:
    reader, size = properties.reader(), len(file.attributes)
    if names is _OF_MODULE:
        flagged: list[tuple[int, bool]] = []
        while reader.remaining:
            flagged.append(reader.flagged_index(size, "attributes"))
        found = zip(names, flagged, strict=False)
        return {each: index for each, (index, present) in found if present}
    if reader.remaining > _LONGEST_NUMBER * _MOST_INHERENT:
        # One entry could be that of all ops, each of which is looked at with all of its attributes.
        raise reader.malformed(
            f"an op has properties of {reader.remaining} bytes; the limit is {_LONGEST_NUMBER * _MOST_INHERENT}"
        )
    values: list[int] = []
    while reader.remaining:
        values.append(reader.index(size, "attributes"))
    return dict(zip(names if len(names) == len(values) else map(str, range(len(values))), values, strict=True))


def attributes_of(file: File, op: Operation | Head) -> Mapping[str, int]:
    """Return all attributes of ``op``, whether they are in properties or in the dictionary."""
    inherent = inherent_attributes(file, op)
    if op.attributes is None:
        return inherent
    held = file.dictionary(op.attributes)
    if held is None and (value := file.decode("attribute", op.attributes)) is not None:
        raise file.attributes[op.attributes].malformed(
            f"expected the dictionary of an op, found {value.dialect}.{value.name}"
        )
    if not held or not inherent:
        return held or inherent
    # Not a copy, because many ops may refer to one large dictionary.
    both: Mapping[str, int] = ChainMap(held, inherent)  # type: ignore[arg-type]  # nothing is assigned
    return both


def function_types(file: File, index: int | None) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the types of arguments and results in the attribute ``function_type``; ``None`` if it has none."""
    holder = file.decode("attribute", index) if index is not None else None
    if holder is None or holder.name != "type_v1":
        return None
    type_ = file.decode("type", holder.field("value"))
    return (type_.field("inputs"), type_.field("outputs")) if type_ and type_.name == "func_v1" else None


def program_name(name: str) -> str:
    """Return the name of an op without the version that it has in an artifact."""
    dialect, _, op = name.partition(".")
    if dialect != "vhlo":
        return name
    base = op.rpartition("_v")[0] or op
    return _PROGRAM_NAMES.get(base, f"stablehlo.{base}")


class SourceLocations:
    def __init__(self, file: File, name: str) -> None:
        self._file = file
        self._name = name
        self._sources: dict[int, SourceLocation | None] = {}
        self._stacks: dict[int, tuple[Frame, ...]] = {}
        # The locations that are nothing but a line.
        self._single: set[int] = set()
        self._texts: dict[int, str] = {}
        self._names: dict[int, str] = {}
        # An op, and the beginning of the paths of all ops in its region.
        self._region: tuple[Place | None, str] = (None, "")
        # By the properties and the dictionary of functions.
        self._symbols: dict[tuple[int | None, int | None], str | None] = {}
        # For each function: its callers, and the locations of the calls.
        self._calls: dict[str, list[tuple[str | None, int]]] = {}

    @cached_property
    def _function_ops(self) -> frozenset[int]:
        names = map(self._file.op_name, range(len(self._file.dialects.ops)))
        return frozenset(index for index, name in enumerate(names) if name.startswith("vhlo.func_v"))

    def source(self, location: int) -> SourceLocation | None:
        """Return the first source location with a line, in the order in which MLIR prints a location."""
        if location not in self._sources:
            self._sources[location] = self._first(location)
        return self._sources[location]

    def _first(self, location: int) -> SourceLocation | None:
        pending, seen = [location], set[int]()
        while pending and len(seen) < _DEEPEST:
            index = pending.pop()
            value = self._file.decode("attribute", index)
            if value is None or index in seen:
                continue
            seen.add(index)
            if value.name in _LINES and (source := self._line(value)) is not None:
                return source
            for part in reversed(_PARTS.get(value.name, ())):
                held = value.field(part)
                pending += reversed(held) if isinstance(held, tuple) else (held,)
        return None

    def _line(self, value: Value) -> SourceLocation | None:
        """Return the line of a plain line location."""
        if value.name == "file_line_col":
            line, column = value.field("line"), value.field("column")
        else:
            line, column = (*value.field("lines_and_columns"), 0, 0)[:2]
        file = self._text(value.field("file"))
        return SourceLocation(self._name if file in ("-", "<stdin>", "") else file, line, column) if line else None

    def _text(self, index: int) -> str:
        if index not in self._texts:
            self._texts[index] = self._file.text(index) or ""
        return self._texts[index]

    def frames(self, location: int) -> tuple[Frame, ...]:
        """Return the stack of calls in a location, the op's own line first; empty if it has no lines.

        Of fused locations the first with lines counts. Very deep stacks are cut at their outer end.
        """
        return self._frames(location, 0)

    def _frames(self, location: int, depth: int) -> tuple[Frame, ...]:
        # Callers are shared by many locations, and stacks are long: from one to the next without recursion.
        chain: list[tuple[int, int]] = []
        while location not in self._stacks and len(chain) < _MOST_FRAMES:
            value = self._file.decode("attribute", location)
            if value is None or value.name != "callsite":
                self._stacks[location] = self._own_frames(location, value, depth)
                break
            chain.append((location, value.field("callee")))
            location = value.field("caller")
        found = self._stacks.get(location, ())
        for call, callee in reversed(chain):
            inner = self._frames(callee, depth + 1) if depth < _MOST_NESTED else ()
            found = self._stacks[call] = (*inner, *found)[:_MOST_FRAMES]
        return found

    def _own_frames(self, location: int, value: Value | None, depth: int) -> tuple[Frame, ...]:
        if value is None or depth > _MOST_NESTED:
            return ()
        if value.name == "name":
            child = value.field("child")
            found = self._frames(child, depth + 1)
            if len(found) == 1 and child in self._single:
                # What a line is of: frameworks write the function.
                return (Frame(found[0].location, self._text(value.field("name"))),)
            return found
        if value.name == "fused":
            stacks = (self._frames(each, depth + 1) for each in value.field("locations")[:_MOST_FUSED])
            return next((stack for stack in stacks if stack), ())
        source = self._line(value) if value.name in _LINES else None
        if source is None:
            return ()
        self._single.add(location)
        return (Frame(source),)

    def label(self, location: int) -> str | None:
        """Return the name that a location gives to the op, such as JAX's stack of names."""
        value = self._file.decode("attribute", location)
        if value is not None and value.name == "fused" and value.field("locations"):
            value = self._file.decode("attribute", value.field("locations")[0])
        return self._text(value.field("name")) if value is not None and value.name == "name" else None

    def path(self, place: Place) -> str:
        if place.around is None or place.op.name in self._function_ops:
            return "/".join(reversed(self._steps(place)))
        # The next op is often of the same region.
        region, start = self._region
        if region is None or place.around is not region.around or place.region != region.region:
            start = "/".join([*reversed(self._steps(place)[1:]), ""])
            self._region = place, start
        return f"{start}{place.number}:{self._program_name(place.op.name)}"

    def _steps(self, place: Place) -> list[str]:
        steps: list[str] = []
        at: Place | None = place
        while at is not None:
            function = self._symbol(at.op)
            if function is not None:
                steps.append(f"@{function}")
                break
            if at.around is not None:
                steps.append(f"{at.number}:{self._program_name(at.op.name)}")
                if self._symbol(at.around.op) is None and at.around.around is not None:
                    steps.append(str(at.region))
            at = at.around
        return steps

    def _program_name(self, op: int) -> str:
        if op not in self._names:
            self._names[op] = program_name(self._file.op_name(op))
        return self._names[op]

    def function(self, place: Place) -> str | None:
        """Return the name of the function that contains an op or that it is; ``None`` outside of functions."""
        at: Place | None = place
        while at is not None:
            found = self._symbol(at.op)
            if found is not None:
                return found
            at = at.around
        return None

    def called(self, place: Place) -> None:
        attributes = attributes_of(self._file, place.op)
        for key in ("callee", "decomposition"):
            callee = self._file.text(attributes.get(key))
            if callee is not None:
                self._calls.setdefault(callee, []).append((self.function(place), place.op.location))

    def call_of(self, function: str | None) -> SourceLocation | None:
        """Return the source location of a call of a function, through other functions where necessary.

        Ops in frameworks' private functions have no location in the user's source; their calls, recorded before, do.
        """
        pending, seen = [function], set[str | None]()
        while pending:
            name = pending.pop(0)
            if name is None or name in seen:
                continue
            seen.add(name)
            for caller, location in self._calls.get(name, ()):
                source = self.source(location)
                if source is not None:
                    return source
                pending.append(caller)
        return None

    def _symbol(self, op: Operation) -> str | None:
        if op.name not in self._function_ops:
            return None
        key = op.properties, op.attributes
        if key not in self._symbols:
            self._symbols[key] = self._file.text(attributes_of(self._file, op).get("sym_name"))
        return self._symbols[key]
