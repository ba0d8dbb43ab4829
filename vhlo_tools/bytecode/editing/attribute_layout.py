"""Location of the attributes of ops: inherent ones in properties since MLIR bytecode 5, earlier in one dictionary.

Source: ``BytecodeWriter.cpp`` and ``BytecodeReader.cpp`` in llvm/llvm-project, for the bit of an op's mask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vhlo_tools.bytecode import File, Operation, Properties, attributes_in
from vhlo_tools.bytecode.editing.tables import Tables
from vhlo_tools.bytecode.writer import flagged, varint
from vhlo_tools.dialect import PropertySlot, property_slots
from vhlo_tools.errors import MalformedArtifactError, UnsupportedFeatureError
from vhlo_tools.findings import OPAQUE_PROPERTIES, Finding

#: Indices of attributes, by name.
Attributes = Mapping[str, int]


def change_attributes(file: File, tables: Tables, op: Operation, changed: Attributes) -> set[int]:
    """Change inherent attributes of an op, wherever it stores them, and return the attributes that it no longer has."""
    # Some producers put all attributes into dictionaries, whatever the version of the format.
    layout = AttributeLayout(file, tables, in_properties=op.properties is not None)
    slots = property_slots(file.op_name(op.name))
    inherent, discardable = layout.read(op, slots)
    lost = {inherent[name] for name, index in changed.items() if name in inherent and inherent[name] != index}
    if op.attributes is not None:
        # The dictionary is written anew, even if its attributes are unchanged.
        lost.add(op.attributes)
    op.properties, op.attributes = layout.write({**inherent, **changed}, discardable, slots, op)
    return lost


class AttributeLayout:
    """Reader of attributes as stored in a file, and writer in the layout chosen by ``in_properties``."""

    def __init__(self, file: File, tables: Tables, *, in_properties: bool) -> None:
        self._file = file
        self._tables = tables
        self._was = file.has_properties
        self._is = in_properties
        self.moves: bool = self._was != self._is
        self._made: dict[bytes, int] = {}
        self._new: list[Properties] = [] if self.moves else file.properties

    def read(self, op: Operation, slots: Sequence[PropertySlot] | None) -> tuple[Attributes, Attributes]:
        """Return the inherent and the discardable attributes; ``slots`` of ``None``: the inherent ones are unknown."""
        held = self._dictionary(op.attributes)
        # Producers without properties put all attributes into the dictionary, also in newer versions of the format.
        names = {slot.name for slot in slots or ()}
        inherent = {name: index for name, index in held.items() if name in names}
        discardable = {name: index for name, index in held.items() if name not in names}
        return {**inherent, **(self._properties(op, slots) if self._was else {})}, discardable

    def write(
        self, inherent: Attributes, discardable: Attributes, slots: Sequence[PropertySlot] | None, op: Operation
    ) -> tuple[int | None, int | None]:
        """Return the indices of properties and of a dictionary; ``op`` is for messages only."""
        if not self._is:
            return None, self._tables.dictionary({**discardable, **inherent})
        if slots is None or not self._name(op).startswith("vhlo."):
            # MLIR also accepts inherent attributes in the dictionary, and the properties of ops of other dialects
            # differ between releases.
            return None, self._tables.dictionary({**discardable, **inherent})
        pieces = []
        for slot in slots:
            index = inherent.get(slot.name)
            if index is None and not slot.optional:
                raise self._malformed(op, f"an op of {self._name(op)} has no attribute {slot.name}")
            pieces.append(
                varint(index or 0) if not slot.optional else varint(0) if index is None else flagged(index, True)
            )
        return self._add(b"".join(pieces)) if pieces else None, self._tables.dictionary(discardable)

    def finish(self) -> None:
        self._file.properties = self._new
        self._file.has_properties = self._is

    def _add(self, data: bytes) -> int:
        if data not in self._made:
            self._made[data] = len(self._new)
            self._new.append(Properties(data))
        return self._made[data]

    def _dictionary(self, index: int | None) -> dict[str, int]:
        if index is None:
            return {}
        # A name need not be UTF-8, and must be written back unchanged.
        held = self._file.dictionary(index, errors="surrogateescape")
        if held is None:
            raise self._file.attributes[index].malformed(
                f"attribute {index} is used as the dictionary of an op, but is not a dictionary"
            )
        return dict(held)

    def _properties(self, op: Operation, slots: Sequence[PropertySlot] | None) -> Attributes:
        if op.properties is None:
            return {}
        if slots is None:
            return self._default(op)
        try:
            return attributes_in(self._file.properties[op.properties], slots, len(self._file.attributes))
        except MalformedArtifactError:
            if self._name(op).startswith("vhlo."):
                raise
            # Other dialects have no compatibility guarantee: releases differ in the properties of their ops.
            return self._default(op)

    def _default(self, op: Operation) -> Attributes:
        """Read properties in the default form, of ops that define none: a dictionary."""
        properties, slot = self._file.properties[op.properties or 0], PropertySlot("", optional=False)
        try:
            return self._dictionary(attributes_in(properties, [slot], len(self._file.attributes))[""])
        except MalformedArtifactError:
            pass
        name = self._name(op)
        finding = Finding(
            feature=OPAQUE_PROPERTIES,
            level="error",
            kind="dialect",
            message=f"the properties of {name} have an unknown encoding and cannot be moved to a dictionary, which "
            f"StableHLO below 0.15.0 requires",
            op=name,
            remedy="choose 0.15.0 or later, or the engine mlir",
        )
        raise UnsupportedFeatureError(f"the attributes of {name} cannot be moved", [finding])

    def _name(self, op: Operation) -> str:
        return self._file.op_name(op.name)

    def _malformed(self, op: Operation, message: str) -> MalformedArtifactError:
        return self._file.attributes[op.attributes or op.location].malformed(message)
