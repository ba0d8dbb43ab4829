"""Ops in bytes as the plain structures of steps and constraints (``dialect_specs/vhlo/defaults.toml``)."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.dialect import OpStructure, find_enum

if TYPE_CHECKING:
    from vhlo_tools.bytecode import File, Value
    from vhlo_tools.dialect import EntryKind, Field, Structure

_DEEPEST: Final = 100
#: No step compares a value of more bytes than this.
_LONGEST: Final = 4096


class Structures:
    """Attributes and types of a file as structures, each converted once."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._made: dict[tuple[EntryKind, int], Structure] = {}
        self._depth = 0

    def operation(
        self,
        name: str,
        attributes: Mapping[str, int],
        operands: Sequence[int],
        results: Sequence[int],
        regions: int,
    ) -> OpStructure:
        return OpStructure(
            name,
            {key: self.of("attribute", index) for key, index in attributes.items()},
            tuple(self.of("type", index) for index in operands),
            tuple(self.of("type", index) for index in results),
            regions,
        )

    def of(self, kind: EntryKind, index: int) -> Structure:
        key = (kind, index)
        if key not in self._made:
            if self._depth > _DEEPEST:
                entry = (self._file.attributes if kind == "attribute" else self._file.types)[index]
                raise entry.malformed(f"{kind}s nest deeper than {_DEEPEST} levels, or in a cycle")
            self._depth += 1
            self._made[key] = self._of(kind, index)
            self._depth -= 1
        return self._made[key]

    def _of(self, kind: EntryKind, index: int) -> Structure:
        value = self._file.decode(kind, index)
        if value is None:
            return {kind: f"unknown {index}"}
        found: dict[str, Any] = {kind: value.name}
        for field, content in zip(value.encoding.fields, value.fields, strict=True):
            name, plain = self._field(value, field, content)
            found[name] = plain
        return found

    def _field(self, value: Value, field: Field, content: Any) -> tuple[str, Any]:
        if field.enum is not None:
            enum = find_enum(field.enum)
            case = enum.case_of(content) if enum else None
            return "case", case.name if case else content
        if value.name == "bool_v1":
            return field.name, bool(content)
        if value.name == "type_v1":
            return "type", self.of("type", content)
        if field.is_list:
            return field.name, [self._plain(field.kind, each) for each in content]
        return field.name, self._plain(field.kind, content)

    def _plain(self, kind: str, content: Any) -> Any:
        match kind:
            case "type":
                return self.of("type", content)
            case "attribute" | "attribute?" | "flagged attribute":
                return None if content is None else self.of("attribute", content)
            case "pair":
                return [self.of("attribute", each) for each in content]
            case "string":
                return self._file.string(content)
            case "f64":
                return struct.unpack("<d", struct.pack("<Q", content & 0xFFFF_FFFF_FFFF_FFFF))[0]
            case "blob":
                # A longer value equals no default, and need not be distinguished from others of its length.
                return bytes(content).hex() if len(content) <= _LONGEST else f"{len(content)} bytes"
        return content
