"""Removal of debug information: every location becomes unknown.

The resulting program is that of MLIR's ``strip-debuginfo``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from vhlo_tools.bytecode.codec import Value, references
from vhlo_tools.bytecode.entries import Entry
from vhlo_tools.bytecode.file import File
from vhlo_tools.bytecode.ir import OPTIONAL_LOCATIONS_SINCE, Operation, walk
from vhlo_tools.dialect import encodings_of

__all__ = ["strip_locations"]

_KNOWN_DIALECTS: Final = frozenset({"builtin", "vhlo"})


def strip_locations(file: File) -> None:
    """Remove the locations from ``file``, which is edited in place.

    The entries and strings that only locations used become as small as possible; they keep their indices, so that
    nothing has to be renumbered. Entries to which another dialect may refer in unknown ways remain.

    Raises:
        MalformedArtifactError: If the file is damaged.
    """
    encoding = next(each for each in encodings_of("builtin", "attribute").values() if each.name == "unknown")
    nowhere = file.encode("attribute", Value("builtin", encoding, ()))
    _empty_unused(file, nowhere)
    unknown = _index_of(nowhere, file.attributes)
    implied = None if file.version >= OPTIONAL_LOCATIONS_SINCE else unknown
    for item in walk(file.ir):
        if isinstance(item, Operation):
            item.location = unknown
        elif item.arguments:
            item.arguments = [replace(argument, location=implied) for argument in item.arguments]


def _index_of(wanted: Entry, table: list[Entry]) -> int:
    """Return the index of the first entry that equals ``wanted``, which is added if there is none."""
    for index, entry in enumerate(table):
        if (entry.dialect, entry.custom, entry.data) == (wanted.dialect, wanted.custom, wanted.data):
            return index
    table.append(wanted)
    return len(table) - 1


def _empty_unused(file: File, nowhere: Entry) -> None:
    """Replace the attributes that only locations used by ``nowhere``, and empty their strings."""
    if not {file.dialect(op.dialect) for op in file.dialects.ops} <= _KNOWN_DIALECTS:
        return
    attributes = [file.decode("attribute", index) for index in range(len(file.attributes))]
    types = [file.decode("type", index) for index in range(len(file.types))]
    if any(value is None and entry.custom for value, entry in zip(attributes, file.attributes, strict=True)):
        return
    if any(value is None and entry.custom for value, entry in zip(types, file.types, strict=True)):
        return
    # The properties of any op may use attributes of VHLO, but those of the builtin dialect only through others.
    pending = {index for index, value in enumerate(attributes) if value is None or value.dialect != "builtin"}
    pending |= {index for value in types if value for index in references(value, "attribute")}
    for op in walk(file.ir):
        if isinstance(op, Operation):
            pending |= _attributes_of(file, op)
    used = set[int]()
    while pending:
        index = pending.pop()
        used.add(index)
        value = attributes[index]
        pending |= (references(value, "attribute") if value else set()) - used
    strings = {dialect.name for dialect in file.dialects.names} | {op.name for op in file.dialects.ops}
    strings |= {group.owner for group in file.resources if group.external}
    strings |= {resource.key for group in file.resources for resource in group.resources}
    for value in [attributes[index] for index in used] + types:
        strings |= references(value, "string") if value else set()
    file.attributes[:] = [entry if index in used else nowhere for index, entry in enumerate(file.attributes)]
    file.strings[:] = [text if index in strings else b"" for index, text in enumerate(file.strings)]


def _attributes_of(file: File, op: Operation) -> set[int]:
    """Return the builtin attributes to which ``op`` refers."""
    found = set() if op.attributes is None else {op.attributes}
    if op.properties is not None and file.dialect(file.dialects.ops[op.name].dialect) == "builtin":
        # The module op: its name and its visibility, each an index with a flag for its presence.
        reader = file.properties[op.properties].reader()
        while reader.remaining:
            index, present = reader.flagged_index(len(file.attributes), "attributes")
            found |= {index} if present else set()
    return found
