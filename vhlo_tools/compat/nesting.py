"""What releases do not read because of the depth to which attributes and types nest.

Source: llvm/llvm-project#170993 (December 2025), which made the reader of MLIR set aside what nests deeper than five
levels, to read it afterwards. What stood in properties was lost until #172901, and types until #174874 (January 2026).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from vhlo_tools.bytecode import (
    File,
    Place,
    SourceLocations,
    children,
    codes_beside,
    inherent_attributes,
    table_of,
    visit,
)
from vhlo_tools.findings import Finding, Level
from vhlo_tools.spec import dialects_beside

if TYPE_CHECKING:
    from vhlo_tools.bytecode import Block, Head, Value
    from vhlo_tools.spec import EntryKind, Release

_DEEPEST: Final = 5


def nesting_findings(file: File, consumers: Iterable[Release], name: str, level: Level = "error") -> list[Finding]:
    """Return an error for each of the consumers that does not read the file because its entries nest too deep."""
    found = []
    for each in consumers:
        if not each.loses or (unread := _Reading(file, each.loses == "properties").unread()) is None:
            continue
        place, what = unread
        found.append(
            Finding(
                feature="nested_entries",
                level=level,
                kind="encoding",
                message=f"{each} does not read {what} of {file.op_name(place.op.name)}, which nests deeper than "
                f"{_DEEPEST} levels, though it has StableHLO {each.stablehlo}",
                target=each.stablehlo,
                location=SourceLocations(file, name).source(place.op.location),
                remedy="use a release from before, or after, which reads any depth; or nest less",
            )
        )
    return found


class _Reading:
    """The order in which MLIR resolves the entries of a file: what was resolved once may stand at any depth."""

    def __init__(self, file: File, loses_properties: bool) -> None:
        self._file = file
        self._loses_properties = loses_properties
        self._resolved: set[tuple[EntryKind, int]] = set()
        self._aside = 0
        self._found: tuple[Place, str] | None = None
        self._seen: set[Head] = set()

    def unread(self) -> tuple[Place, str] | None:
        """Return the first op with an attribute that is not read, and which."""
        visit(self._file.program, self._operation, arguments=self._arguments, once=lambda head: True)
        return self._found

    def _arguments(self, block: Block, around: Place | None) -> None:
        for each in block.arguments:
            self._resolve("type", each.type)

    def _operation(self, place: Place, values: list[int]) -> None:
        if self._found:
            return
        op = place.op
        if op.attributes is not None and not self._resolve("attribute", op.attributes):
            self._found = place, "the attributes"
        for name, index in inherent_attributes(self._file, op).items():
            read = self._read("attribute", index, 0) if self._loses_properties else self._resolve("attribute", index)
            if not self._found and not read:
                self._found = place, f"the attribute {name}"
        for each in op.results:
            self._resolve("type", each)

    def _resolve(self, kind: EntryKind, index: int) -> bool:
        """Read an entry, and what is set aside meanwhile before it; return whether that ends."""
        waiting = [(kind, index)]
        while waiting:
            if self._read(*waiting[-1], -1):
                waiting.pop()
                continue
            # Only the index is kept: what was a type is looked for among the attributes, or the reverse.
            aside = (kind, self._aside)
            if aside in self._resolved or aside in waiting or self._aside >= len(table_of(self._file, kind)):
                return False
            waiting.append(aside)
        return True

    def _read(self, kind: EntryKind, index: int, depth: int) -> bool:
        if (kind, index) in self._resolved:
            return True
        if depth > _DEEPEST:
            self._aside = index
            return False
        value = self._file.decode(kind, index) or self._beside(kind, index)
        if value is not None and not all(self._read(*each, depth + 1) for each in children(value)):
            return False
        self._resolved.add((kind, index))
        return True

    def _beside(self, kind: EntryKind, index: int) -> Value | None:
        entry = table_of(self._file, kind)[index]
        dialect = dialects_beside().get(self._file.dialect(entry.dialect))
        return codes_beside(self._file, kind, entry, dialect)[1] if dialect and entry.custom else None
