"""Remove debug information: every location becomes unknown.

The resulting program is that of MLIR's ``strip-debuginfo``.
"""

from __future__ import annotations

from array import array
from typing import Final

from vhlo_tools.bytecode.codec import Value, references
from vhlo_tools.bytecode.entries import Entry, EntryTable
from vhlo_tools.bytecode.file import File, table_of
from vhlo_tools.bytecode.ir import OPTIONAL_LOCATIONS_SINCE
from vhlo_tools.bytecode.program import blocks_in, heads_in
from vhlo_tools.spec import EntryKind, encodings_of

_KNOWN_DIALECTS: Final = frozenset({"builtin", "vhlo"})


def strip_locations(file: File) -> None:
    """Remove the locations; entries and strings that only they used become minimal but keep their indices.

    Entries to which another dialect may refer in unknown ways remain.
    """
    encoding = next(each for each in encodings_of("builtin", "attribute").values() if each.name == "unknown")
    nowhere = file.encode("attribute", Value("builtin", encoding, ()))
    _empty_unused(file, nowhere)
    unknown = _index_of(nowhere, file.attributes)
    implied = None if file.version >= OPTIONAL_LOCATIONS_SINCE else unknown
    for block in blocks_in(file.ir):
        if block.arguments:
            block.arguments = [argument._replace(location=implied) for argument in block.arguments]
        if block.is_columnar:
            block.rows.locations = array("I", [unknown]) * len(block)
        else:
            for op in block.operations:
                op.location = unknown


def _index_of(wanted: Entry, table: EntryTable) -> int:
    """Return the index of the first entry that equals ``wanted``; it is added if there is none."""
    code, codes = wanted.data[0], table.codes
    for dialect, run in table.groups():
        at = codes.find(code, run.start, run.stop) if dialect == wanted.dialect else -1
        while at >= 0:
            if table[at].data == wanted.data:
                return at
            at = codes.find(code, at + 1, run.stop)
    table.append(wanted)
    return len(table) - 1


def _empty_unused(file: File, nowhere: Entry) -> None:
    """Replace the attributes that only locations used by ``nowhere``, and empty their strings."""
    if not {file.dialect(op.dialect) for op in file.dialects.ops} <= _KNOWN_DIALECTS:
        return
    if any(_has_unknown(file, kind) for kind in ("attribute", "type")):
        return
    types = [file.decode("type", index) for index in range(len(file.types))]
    # The properties of any op may use attributes of VHLO, but those of the builtin dialect only through others.
    pending = {
        index for dialect, run in file.attributes.groups() if file.dialect(dialect) != "builtin" for index in run
    }
    pending |= {index for value in types if value for index in references(value, "attribute")}
    pending |= _attributes_of_ops(file)
    used = set[int]()
    strings = {dialect.name for dialect in file.dialects.names} | {op.name for op in file.dialects.ops}
    strings |= {group.owner for group in file.resources if group.external}
    strings |= {resource.key for group in file.resources for resource in group.resources}
    for value in types:
        strings |= references(value, "string") if value else set()
    while pending:
        index = pending.pop()
        used.add(index)
        value = file.decode("attribute", index)
        pending |= (references(value, "attribute") if value else set()) - used
        strings |= references(value, "string") if value else set()
    file.attributes.fill(used, nowhere)
    file.strings[:] = [text if index in strings else b"" for index, text in enumerate(file.strings)]


def _has_unknown(file: File, kind: EntryKind) -> bool:
    table = table_of(file, kind)
    dialects = [file.dialect(index) for index in range(len(file.dialects.names))]
    known = [
        frozenset(code << 1 | 1 for code, each in encodings_of(dialect, kind).items() if not each.opaque)
        for dialect in dialects
    ]
    return any(table[index].custom and file.decode(kind, index) is None for index in table.others(known))


def _attributes_of_ops(file: File) -> set[int]:
    found = set[int]()
    for head in heads_in(file.program):
        found |= set() if head.attributes is None else {head.attributes}
        if head.properties is not None and file.dialect(file.dialects.ops[head.name].dialect) == "builtin":
            # The module op: its name and its visibility, each an index with a flag for its presence.
            reader = file.properties[head.properties].reader()
            while reader.remaining:
                index, present = reader.flagged_index(len(file.attributes), "attributes")
                found |= {index} if present else set()
    return found
