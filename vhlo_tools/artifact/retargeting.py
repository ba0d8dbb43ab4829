"""Retargeting: upgrade and downgrade artifacts on their bytes, without MLIR."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from vhlo_tools.bytecode import (
    OPTIONAL_LOCATIONS_SINCE,
    PROPERTIES_SINCE,
    AttributeLayout,
    Attributes,
    File,
    Head,
    Operation,
    Place,
    Tables,
    Value,
    blocks_in,
    collect_garbage,
    encode,
    visit,
)
from vhlo_tools.compat import Structures
from vhlo_tools.errors import InvalidProgramError, UnsupportedFeatureError
from vhlo_tools.findings import Finding
from vhlo_tools.records import dataclass
from vhlo_tools.spec import (
    OpVersion,
    bytecode_version_of,
    downgrade,
    encodings_of,
    find_op,
    find_op_version,
    known_default,
    known_feature,
    property_slots,
    upgrade,
)
from vhlo_tools.version import Version

# Convert locations to forms that readers of a version accept

_RANGE: Final = "file_line_col_range"


def make_locations_plain(file: File, target: Version) -> list[Finding]:
    """Replace every location with a range by its start, for readers without ranges, and return a note about it.

    The entries are changed in place in the table, so that locations and attributes that contain them follow.
    """
    encodings = {each.name: each for each in encodings_of("builtin", "attribute").values()}
    changed = 0
    for index in file.called("attribute", "builtin", _RANGE):
        value = file.decode("attribute", index)
        if value is None:
            continue
        line, column = (*value.field("lines_and_columns"), 0, 0)[:2]
        plain = Value("builtin", encodings["file_line_col"], (value.field("file"), line, column))
        file.attributes[index] = file.encode("attribute", plain)
        changed += 1
    if not changed:
        return []
    ranges = known_feature("range_locations")
    return [
        Finding(
            feature=ranges.id,
            level="note",
            kind=ranges.kind,
            message=f"source locations with a range were reduced to its start: readers older than {ranges.introduced} "
            f"do not support ranges",
            introduced=ranges.introduced,
            target=target,
            count=changed,
        )
    ]


def with_plain_locations(file: File, target: Version) -> bytes | None:
    """Return the bytes of a changed copy; ``None`` if nothing changes."""
    if next(file.called("attribute", "builtin", _RANGE), None) is None:
        return None
    copied = file.copy()
    make_locations_plain(copied, target)
    return encode(copied)


def locate_arguments(file: File, tables: Tables) -> None:
    """Add a location to every block argument without one, if the version of the format requires it."""
    for block in blocks_in(file.ir) if file.version < OPTIONAL_LOCATIONS_SINCE else ():
        for number, argument in enumerate(block.arguments):
            if argument.location is None:
                block.arguments[number] = argument._replace(location=tables.builtin("unknown"))


# Retarget a file: its ops by the steps of the specification, its layout by its bytecode version

_PRODUCER: Final = "StableHLO_v"


def retarget_file(file: File, target: Version) -> list[Finding]:
    """Retarget a decoded artifact in place, and return notes on lost information: only the precision of locations.

    Callers must check first that this is possible: see :meth:`vhlo_tools.compat.Requirements.findings`.
    """
    tables = Tables(file)
    layout = AttributeLayout(file, tables, in_properties=bytecode_version_of(target) >= PROPERTIES_SINCE)
    dropped = _Ops(file, target, tables, layout).move()
    findings = make_locations_plain(file, target) if target < known_feature("range_locations").introduced else []
    file.version = bytecode_version_of(target)
    locate_arguments(file, tables)
    if dropped:
        collect_garbage(file, tables, dropped)
    # Decoded, so that the alignment of resources is restored at their new offsets.
    _ = file.resources
    file.producer = f"{_PRODUCER}{target}"
    return findings


@dataclass(frozen=True, slots=True)
class _Move:
    """The conversion of the ops of one name."""

    version: OpVersion
    to: OpVersion
    computed: bool  # attributes that they gain depend on their operands


class _Ops:
    def __init__(self, file: File, target: Version, tables: Tables, layout: AttributeLayout) -> None:
        self._file = file
        self._target = target
        self._tables = tables
        self._layout = layout
        self._structures = Structures(file)
        self._moves: dict[int, _Move] = {}
        # The new properties and dictionaries of ops with a head; of some ops, they depend on the types of operands too.
        self._alike: dict[Head, tuple[int | None, int | None]] = {}
        self._computed: dict[tuple[Head, tuple[int, ...]], tuple[int | None, int | None]] = {}
        self._dropped: set[int] = set()

    def move(self) -> frozenset[int]:
        """Convert every op, and return the attributes that ops no longer have."""
        file = self._file
        names = range(len(file.dialects.ops))
        self._moves = {index: move for index in names if (move := self._move_of(file.op_name(index))) is not None}
        # Names change afterwards, because they determine how attributes are stored.
        if self._moves or self._layout.moves:
            # Block arguments are the same in all versions.
            visit(file.ir, self._operation, self._is_wanted, once=self._is_alike, for_editing=True)
            self._change_alike()
        for index, move in self._moves.items():
            renamed = replace(file.dialects.ops[index], name=self._tables.string(move.to.name))
            file.dialects.ops[index] = renamed
        self._layout.finish()
        return frozenset(self._dropped)

    def _is_wanted(self, head: Head) -> bool:
        has_attributes = head.attributes is not None or head.properties is not None
        return head.name in self._moves or (self._layout.moves and has_attributes)

    def _is_alike(self, head: Head) -> bool:
        """Return whether the new attributes of an op depend on its head alone."""
        move = self._moves.get(head.name)
        return move is None or not move.computed

    def _move_of(self, name: str) -> _Move | None:
        """Return ``None`` if the ops called ``name`` remain unchanged."""
        dialect, _, short = name.partition(".")
        version = find_op_version(short) if dialect == "vhlo" else None
        op = find_op(version.op) if version else None
        if version is None or op is None or version.is_in(self._target):
            return None
        to = op.at(self._target)
        if to is None:
            gone = f"{version.name} is not in StableHLO {self._target}"
            raise UnsupportedFeatureError(
                gone, [Finding(version.name, "error", "op", gone, op.name, target=self._target)]
            )
        gained = {*(default for step in op.steps for default in (*step.added.values(), *step.removed.values()))}
        return _Move(version, to, any(known_default(each).value is None for each in gained))

    def _operation(self, place: Place, values: list[int]) -> None:
        op, move = place.op, self._moves.get(place.op.name)
        if self._is_alike(op.head):
            self._alike[op.head] = self._attributes(place, move, values)
            return
        key = op.head, tuple([values[index] for index in op.operands])
        if key not in self._computed:
            self._computed[key] = self._attributes(place, move, values)
        op.properties, op.attributes = self._computed[key]

    def _change_alike(self) -> None:
        """Change the attributes of all ops of which one stands for all."""
        done: set[int] = set()
        for block in blocks_in(self._file.ir):
            if not block.is_columnar:
                for op in block.operations:
                    op.properties, op.attributes = self._alike.get(op.head, (op.properties, op.attributes))
            elif id(kinds := block.rows.kinds) not in done:
                done.add(id(kinds))
                for number, head in enumerate(kinds.table):
                    if head in self._alike:
                        properties, attributes = self._alike[head]
                        kinds.replace(number, attributes=attributes, properties=properties)

    def _attributes(self, place: Place, move: _Move | None, values: list[int]) -> tuple[int | None, int | None]:
        """Return the indices of the new properties and the new dictionary of an op."""
        op = place.op
        slots = property_slots(self._file.op_name(op.name))
        inherent, discardable = self._layout.read(op, slots)
        if move is not None:
            inherent = self._moved(op, move, inherent, values)
            slots = property_slots(f"vhlo.{move.to.name}")
            # As in the library, an inherent attribute replaces a discardable attribute of the same name.
            discardable = {name: index for name, index in discardable.items() if name not in inherent}
        return self._layout.write(inherent, discardable, slots, op)

    def _moved(self, op: Operation, move: _Move, inherent: Attributes, values: list[int]) -> Attributes:
        """Return the inherent attributes after the steps; unchanged ones keep their index."""
        operands = [values[index] for index in op.operands]
        before = self._structures.operation(move.version.name, inherent, operands, op.results, len(op.regions))
        step = upgrade if self._target > move.version.min else downgrade
        try:
            after = step(before, self._target).attributes
        except (InvalidProgramError, ValueError) as error:
            raise self._file.attributes[op.location].malformed(f"vhlo.{move.version.name}: {error}") from error
        kept = {name: index for name, index in inherent.items() if after.get(name) is before.attributes[name]}
        self._dropped.update(index for name, index in inherent.items() if name not in kept)
        new = self._tables.structure
        return {name: kept[name] if name in kept else new("attribute", value) for name, value in after.items()}
