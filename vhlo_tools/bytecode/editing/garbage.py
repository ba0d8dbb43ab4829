"""Overwrite table entries that edited ops no longer use, because older readers would not know them.

MLIR reads entries only on use, but tools that look at the tables should not find entries that the program does not use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from vhlo_tools.bytecode import Entry, EntryTable, File, Value, blocks_in, decode_entry, heads_in, references
from vhlo_tools.bytecode.editing.tables import Tables
from vhlo_tools.bytecode.printing import inherent_attributes
from vhlo_tools.dialect import EntryKind, encodings_of, foreign_encodings

_Key = tuple[EntryKind, int]

_KINDS: Final[tuple[EntryKind, EntryKind]] = ("attribute", "type")
# These contain only strings and each other, and are the bulk of a table: references to them are not searched for.
_PLAIN: Final = frozenset({"callsite", "file_line_col", "file_line_col_range", "name", "string", "unknown"})


def collect_garbage(file: File, tables: Tables, dropped: Iterable[int]) -> None:
    """Overwrite attributes that ops have ``dropped``, and entries that only these contain.

    Indices are kept, so nothing is renumbered. All entries stay if another dialect may refer to them in unknown ways.
    """
    closure = _closure(file, {("attribute", index) for index in dropped})
    candidates = {key for key in closure if not _is_plain(file.decode(*key))}
    held = _held_by_others(file, candidates)
    if held is None:
        return
    dead = candidates - _closure(file, candidates & held)
    nothing: dict[EntryKind, Entry] = {
        "attribute": file.attributes[tables.builtin("unknown")],
        "type": file.types[tables.builtin_type("none")],
    }
    for kind, index in dead:
        _table(file, kind)[index] = nothing[kind]


def _closure(file: File, found: set[_Key]) -> set[_Key]:
    pending, closed = list(found), set(found)
    while pending:
        kind, index = pending.pop()
        value = file.decode(kind, index)
        new = _held(value) - closed if value else set()
        closed |= new
        pending += new
    return closed


def _is_plain(value: Value | None) -> bool:
    return value is not None and value.dialect == "builtin" and value.name in _PLAIN


def _held(value: Value) -> set[_Key]:
    return {(kind, index) for kind in _KINDS for index in references(value, kind)}


def _held_by_others(file: File, candidates: set[_Key]) -> set[_Key] | None:
    """Return the entries used by anything other than ``candidates``; ``None`` if unknown."""
    held: set[_Key] = set()
    dialects = [file.dialect(index) for index in range(len(file.dialects.names))]
    plain = frozenset(
        code << 1 | 1 for code, each in encodings_of("builtin", "attribute").items() if each.name in _PLAIN
    )
    for kind in _KINDS:
        skipped = [plain if kind == "attribute" and name == "builtin" else frozenset() for name in dialects]
        table = _table(file, kind)
        for index in table.others(skipped):
            entry = table[index]
            if not entry.custom or (kind, index) in candidates:
                continue
            value = decode_entry(file, kind, entry)
            if value is None and kind == "attribute":
                value = decode_entry(file, kind, entry, foreign_encodings(dialects[entry.dialect]))
            if value is None:
                return None
            held |= _held(value)
    for block in blocks_in(file.program):
        held.update(("type", argument.type) for argument in block.arguments)
    for head in heads_in(file.program):
        held.update(("type", index) for index in head.results)
        if head.attributes is not None:
            held.add(("attribute", head.attributes))
        held.update(("attribute", index) for index in inherent_attributes(file, head).values())
    return held


def _table(file: File, kind: EntryKind) -> EntryTable:
    return file.attributes if kind == "attribute" else file.types
