"""Versions that introduced the types, attributes and cases in the tables of a file.

VHLO's conversion between versions checks most types and attributes inside others, but not all (``isLegalType`` and
``isLegalAttribute`` in ``stablehlo/transforms/VhloToVersion.cpp``). Entries that it does not check are written even for
consumers that reject them; so checked and unchecked entries are distinguished here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from vhlo_tools.bytecode import decode_entry, entry_name, heads_in
from vhlo_tools.dialect import encodings_of, find_enum, known_feature, known_versions, spellings_of

if TYPE_CHECKING:
    from vhlo_tools.bytecode import Entry, File, Value
    from vhlo_tools.dialect import EntryKind, Field
    from vhlo_tools.findings import FindingKind
    from vhlo_tools.version import Version

#: Types and attributes whose contents the conversion does not check.
_NOT_LOOKED_INTO: Final = frozenset({"future_v1", "quant_per_axis_v1", "mesh_v1", "mesh_axis_v1"})
_DEEPEST: Final = 100


class Name(NamedTuple):
    """A type, attribute, case or feature of the encoding that a version introduced."""

    name: str  # a case is ``comparison_type_v1.WEAKORDER``
    kind: FindingKind
    since: Version
    known: bool = True  # if the specification lacks it, ``since`` is the newest version that may have introduced it


class Needs(NamedTuple):
    """The needs of an attribute or a type, including everything that it contains."""

    checked: frozenset[Name] = frozenset()  # by the conversion between versions
    unchecked: frozenset[Name] = frozenset()  # overlooked by the conversion between versions


_NOTHING: Final = Needs()


class Introductions:
    """The needs of the entries of a file; ``future`` is the introduction of anything unspecified."""

    def __init__(self, file: File, future: Version) -> None:
        self._file = file
        self._future = future
        self._needs: dict[tuple[EntryKind, int], Needs] = {}
        self._depth = 0

    def of_tables(self) -> frozenset[Name]:
        """Return the needs of all entries; only entries that may be newer than the first version are decoded."""
        found: set[Name] = set()
        dialects = [self._file.dialect(index) for index in range(len(self._file.dialects.names))]
        kinds: tuple[EntryKind, EntryKind] = ("attribute", "type")
        for kind in kinds:
            table = self._file.attributes if kind == "attribute" else self._file.types
            seen: set[tuple[int, bytes]] = set()
            for index in table.others([_old_bytes(dialect, kind) for dialect in dialects]):
                entry = table[index]
                # For VHLO the contents decide; for the builtin dialect the code does; for other dialects the dialect
                # alone.
                length = {"vhlo": 64, "builtin": 1}.get(dialects[entry.dialect], 0)
                key = (entry.dialect, bytes(entry.data[:length]))
                if key not in seen:
                    seen.add(key)
                    found.update(self._own(kind, entry, decode_entry(self._file, kind, entry)))
        return frozenset(found)

    def is_type_of_results(self, name: str) -> bool:
        """Whether some op has a result of the VHLO type ``name``."""
        types = self._types_called((name,))
        return bool(types) and any(not types.isdisjoint(head.results) for head in heads_in(self._file.program))

    def has_types(self, names: tuple[str, ...]) -> bool:
        return bool(self._types_called(names))

    def has_integers_of(self, names: tuple[str, ...]) -> bool:
        """Whether there is an integer attribute of one of the VHLO types ``names``."""
        types = self._types_called(names)
        if not types:
            return False
        found = (
            self._file.decode("attribute", index) for index in self._file.called("attribute", "vhlo", "integer_v1")
        )
        return any(value.field("type") in types for value in found if value is not None)

    def _types_called(self, names: tuple[str, ...]) -> frozenset[int]:
        return frozenset(self._file.called("type", "vhlo", *names))

    def of(self, kind: EntryKind, index: int) -> Needs:
        """Return the needs of an entry, including everything that it contains."""
        key = (kind, index)
        known = self._needs.get(key)
        if known is None:
            if self._depth > _DEEPEST:
                entry = (self._file.attributes if kind == "attribute" else self._file.types)[index]
                raise entry.malformed(f"{kind}s nest deeper than {_DEEPEST} levels, or in a cycle")
            self._depth += 1
            known = self._needs[key] = self._of(kind, index)
            self._depth -= 1
        return known

    def all_of(self, kind: EntryKind, indices: Iterable[int]) -> Needs:
        found = [needs for index in indices if (needs := self.of(kind, index)) is not _NOTHING]
        if not found:
            return _NOTHING
        return Needs(
            frozenset().union(*(each.checked for each in found)), frozenset().union(*(each.unchecked for each in found))
        )

    def _of(self, kind: EntryKind, index: int) -> Needs:
        entry = (self._file.attributes if kind == "attribute" else self._file.types)[index]
        value = decode_entry(self._file, kind, entry)
        own = frozenset(self._own(kind, entry, value))
        if value is None or value.dialect != "vhlo":
            # The conversion does not change entries of other dialects, or anything that they contain.
            inner = [self.of(*each) for each in _held(value)] if value else []
            return _joined(frozenset(), own, inner, seen=False)
        inner = [self.of(*each) for each in _held(value)]
        return _joined(own, frozenset(), inner, seen=value.name not in _NOT_LOOKED_INTO)

    def _own(self, kind: EntryKind, entry: Entry, value: Value | None) -> Iterator[Name]:
        dialect = self._file.dialect(entry.dialect)
        if dialect not in ("vhlo", "builtin"):
            mixed = known_feature("mixed_dialects")
            yield Name(f"{mixed.id} {dialect}", mixed.kind, mixed.introduced)
            return
        if dialect == "builtin":
            if value is not None and value.name == "file_line_col_range":
                ranges = known_feature("range_locations")
                yield Name(ranges.id, ranges.kind, ranges.introduced)
            return
        if value is None:
            # Text of VHLO needs a parser that knows it; of an unknown code, the code is all that a file says.
            yield Name(entry_name(self._file, kind, entry), kind, self._future, known=False)
            return
        since = _lives(kind)[value.name]
        if since > _oldest():
            yield Name(value.name, kind, since)
        for field, content in zip(value.encoding.fields, value.fields, strict=True):
            if field.enum is None:
                continue
            enum = find_enum(field.enum)
            case = enum.case_of(content) if enum else None
            if case is None:
                yield Name(f"{field.enum}.{content}", kind, self._future, known=False)
            elif case.min > _oldest():
                yield Name(f"{field.enum}.{case.name}", kind, case.min)


def _joined(checked: frozenset[Name], unchecked: frozenset[Name], inner: list[Needs], *, seen: bool) -> Needs:
    for needs in inner:
        if needs is _NOTHING:
            continue
        if seen:
            checked |= needs.checked
            unchecked |= needs.unchecked
        else:
            unchecked |= needs.checked | needs.unchecked
    return Needs(checked, unchecked) if checked or unchecked else _NOTHING


def _held(value: Value) -> Iterator[tuple[EntryKind, int]]:
    for field, content in zip(value.encoding.fields, value.fields, strict=True):
        yield from _references(field, content)


def _references(field: Field, content: object) -> Iterator[tuple[EntryKind, int]]:
    kind = _REFERENCES.get(field.kind)
    if kind is None:
        return
    for each in content if isinstance(content, tuple) and field.is_list else (content,):
        for index in each if isinstance(each, tuple) else (each,):
            if isinstance(index, int):
                yield kind, index


_REFERENCES: Final[dict[str, EntryKind]] = {
    "attribute": "attribute",
    "attribute?": "attribute",
    "flagged attribute": "attribute",
    "pair": "attribute",
    "type": "type",
}


@cache
def _oldest() -> Version:
    return known_versions()[0].version


@cache
def _lives(kind: EntryKind) -> dict[str, Version]:
    return {each.name: each.min or _oldest() for each in spellings_of("vhlo", kind)}


@cache
def _old_bytes(dialect: str, kind: EntryKind) -> frozenset[int]:
    """Return the first bytes of the entries that are as old as VHLO, whatever they contain.

    An entry begins with its code, which is small and so takes one byte, with its lowest bit set.
    """
    old: set[int] = set()
    for code, encoding in encodings_of(dialect, kind).items():
        if dialect == "builtin":
            young = encoding.name == "file_line_col_range"
        else:
            # Which case it is, the first byte does not say: it may be one that nobody here knows.
            young = _lives(kind)[encoding.name] > _oldest() or any(field.enum for field in encoding.fields)
        if not young:
            old.add(code << 1 | 1)
    return frozenset(old)
