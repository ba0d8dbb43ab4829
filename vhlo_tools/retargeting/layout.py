"""Where ops keep their attributes: inherent ones in properties since MLIR bytecode 5, earlier in one dictionary.

Source: ``BytecodeWriter.cpp`` and ``BytecodeReader.cpp`` in llvm/llvm-project, for the bit of an op's mask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from vhlo_tools.bytecode import File, Operation, Properties, attributes_in
from vhlo_tools.bytecode.writer import flagged, varint
from vhlo_tools.dialect.properties import PropertySlot
from vhlo_tools.errors import MalformedArtifactError, UnsupportedFeatureError
from vhlo_tools.findings import OPAQUE_PROPERTIES, Finding
from vhlo_tools.retargeting.tables import Tables

__all__ = ["AttributeLayout", "Attributes"]

#: Indices of attributes by name.
Attributes = Mapping[str, int]

_DICTIONARIES: Final = ("dictionary", "dict_v1")


class AttributeLayout:
    """Reads the attributes of ops as a file keeps them, and writes them as it shall.

    Args:
        file: The file; its properties grow.
        tables: Its tables.
        in_properties: Whether inherent attributes shall stand in properties.

    Attributes:
        moves: Whether that is another place than they have.
    """

    def __init__(self, file: File, tables: Tables, *, in_properties: bool) -> None:
        self._file = file
        self._tables = tables
        self._was = file.has_properties
        self._is = in_properties
        self.moves = self._was != self._is
        self._made: dict[bytes, int] = {}
        self._new: list[Properties] = [] if self.moves else file.properties

    def read(self, op: Operation, slots: Sequence[PropertySlot] | None) -> tuple[Attributes, Attributes]:
        """Return the inherent and the discardable attributes of ``op``.

        Args:
            op: The op, as it stands in the file.
            slots: Its inherent attributes; ``None`` if they are not known.

        Raises:
            UnsupportedFeatureError: If they are not known, and have to be moved.
            MalformedArtifactError: If they are damaged.
        """
        held = self._dictionary(op.attributes)
        # Producers whose ops had no properties yet left all in the dictionary, also in newer versions of the format.
        names = {slot.name for slot in slots or ()}
        inherent = {name: index for name, index in held.items() if name in names}
        discardable = {name: index for name, index in held.items() if name not in names}
        return {**inherent, **(self._properties(op, slots) if self._was else {})}, discardable

    def write(
        self, inherent: Attributes, discardable: Attributes, slots: Sequence[PropertySlot] | None, op: Operation
    ) -> tuple[int | None, int | None]:
        """Return the indices of properties and of a dictionary that hold the attributes of an op.

        Args:
            inherent: Its inherent attributes.
            discardable: The others.
            slots: The inherent attributes that it has by definition, in order; ``None`` if they are not known.
            op: The op, for messages.

        Raises:
            MalformedArtifactError: If one is missing.
        """
        if not self._is:
            return None, self._tables.dictionary({**discardable, **inherent})
        if slots is None or not self._name(op).startswith("vhlo."):
            # MLIR takes inherent attributes from the dictionary, too; and which properties ops of other dialects have
            # differs between releases.
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
        """Tell the file where its attributes stand."""
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
        value = self._file.decode("attribute", index)
        if value is None or value.name not in _DICTIONARIES:
            raise self._file.attributes[index].malformed(
                f"attribute {index} is no dictionary, although an op has it as one"
            )
        return {self._text(key): held for key, held in value.field("elements")}

    def _text(self, index: int) -> str:
        value = self._file.decode("attribute", index)
        if value is None or value.name not in ("string", "string_v1"):
            raise self._file.attributes[index].malformed(f"attribute {index} is no string, although it is a name")
        # Not as text: a name need not be UTF-8, and has to come back as it was.
        data: bytes = self._file.strings[value.field("value")]
        return data.decode("utf-8", "surrogateescape")

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
            # Other dialects promise nothing: releases differ in what their ops keep.
            return self._default(op)

    def _default(self, op: Operation) -> Attributes:
        """Return properties in the form of ops that define none: a dictionary."""
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
            message=f"how {name} keeps its attributes in bytes is not known, and below 0.15.0 they stand elsewhere",
            op=name,
            remedy="choose 0.15.0 or later, or the engine mlir",
        )
        raise UnsupportedFeatureError(f"the attributes of {name} cannot be moved", [finding])

    def _name(self, op: Operation) -> str:
        return self._file.op_name(op.name)

    def _malformed(self, op: Operation, message: str) -> MalformedArtifactError:
        return self._file.attributes[op.attributes or op.location].malformed(message)
