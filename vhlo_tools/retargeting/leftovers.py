"""What ops have lost, taken out of the tables where nothing else holds it: older readers would not know it.

MLIR reads entries only where they are used; but whoever looks at the tables should not find what the program has not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from vhlo_tools.bytecode import Block, Entry, File, Value, decode_entry, references, walk
from vhlo_tools.bytecode.printing import inherent_attributes
from vhlo_tools.dialect import EntryKind, encodings_of, foreign_encodings
from vhlo_tools.retargeting.tables import Tables

__all__ = ["clear_leftovers"]

_Key = tuple[EntryKind, int]

_KINDS: Final[tuple[EntryKind, EntryKind]] = ("attribute", "type")
# They hold no more than strings and each other, and are the bulk of a table: who holds them is not looked for.
_PLAIN: Final = frozenset({"callsite", "file_line_col", "file_line_col_range", "name", "string", "unknown"})


def clear_leftovers(file: File, tables: Tables, dropped: Iterable[int]) -> None:
    """Empty the places of attributes that ops have ``dropped``, and of what only these hold.

    Places stay, so that nothing has to be numbered anew. Where another dialect may refer to them in ways that are not
    known, all stays as it is.

    Raises:
        MalformedArtifactError: If the file is damaged.
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
    """Return entries with all that they hold."""
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
    """Return what ops, block arguments and entries beside the ``candidates`` hold; ``None`` if that cannot be told."""
    held: set[_Key] = set()
    dialects = [file.dialect(index) for index in range(len(file.dialects.names))]
    plain = frozenset(
        code << 1 | 1 for code, each in encodings_of("builtin", "attribute").items() if each.name in _PLAIN
    )
    for kind in _KINDS:
        skipped = [plain if kind == "attribute" and name == "builtin" else frozenset() for name in dialects]
        for index, entry in enumerate(_table(file, kind)):
            is_plain = not entry.custom or (entry.data and entry.data[0] in skipped[entry.dialect])
            if is_plain or (kind, index) in candidates:
                continue
            value = decode_entry(file, kind, entry)
            if value is None and kind == "attribute":
                value = decode_entry(file, kind, entry, foreign_encodings(dialects[entry.dialect]))
            if value is None:
                return None
            held |= _held(value)
    seen: set[tuple[int, int | None, int | None]] = set()
    for item in walk(file.ir):
        if isinstance(item, Block):
            held.update(("type", argument.type) for argument in item.arguments)
            continue
        held.update(("type", index) for index in item.results)
        key = (item.name, item.properties, item.attributes)
        if key in seen:
            continue
        seen.add(key)
        if item.attributes is not None:
            held.add(("attribute", item.attributes))
        held.update(("attribute", index) for _, index in inherent_attributes(file, item))
    return held


def _table(file: File, kind: EntryKind) -> list[Entry]:
    return file.attributes if kind == "attribute" else file.types
