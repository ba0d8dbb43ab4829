"""Add attributes, types and strings to the tables of a file, each once."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from vhlo_tools.bytecode import Entry, File, Value
from vhlo_tools.dialect import Encoding, EntryKind, Field, Structure, find_enum, spellings_of


class Tables:
    def __init__(self, file: File) -> None:
        self._file = file
        self._strings = {text: index for index, text in reversed(list(enumerate(file.strings)))}
        self._made: dict[tuple[EntryKind, int, bytes], int] = {}
        self._dictionaries: dict[tuple[tuple[str, int], ...], int] = {}

    def string(self, text: str) -> int:
        data = text.encode("utf-8", "surrogateescape")
        if data not in self._strings:
            self._strings[data] = len(self._file.strings)
            self._file.strings.append(data)
        return self._strings[data]

    def dictionary(self, pairs: Mapping[str, int]) -> int | None:
        """Return the index of a dictionary of attribute indices by name; ``None`` if it is empty."""
        if not pairs:
            return None
        key = tuple(sorted(pairs.items(), key=lambda pair: pair[0].encode("utf-8", "surrogateescape")))
        if key not in self._dictionaries:
            elements = tuple((self.builtin("string", self.string(name)), index) for name, index in key)
            self._dictionaries[key] = self.builtin("dictionary", elements)
        return self._dictionaries[key]

    def builtin(self, name: str, *fields: Any) -> int:
        return self.add("attribute", Value("builtin", _encoding("builtin", "attribute", name, len(fields)), fields))

    def vhlo(self, name: str, *fields: Any) -> int:
        return self.add("attribute", Value("vhlo", _encoding("vhlo", "attribute", name, len(fields)), fields))

    def builtin_type(self, name: str, *fields: Any) -> int:
        return self.add("type", Value("builtin", _encoding("builtin", "type", name, len(fields)), fields))

    def structure(self, kind: EntryKind, structure: Structure) -> int:
        """Return the index of an entry of VHLO, given as in ``dialect_specs/vhlo/defaults.toml``."""
        encoding = _encoding("vhlo", kind, str(structure[kind]))
        fields = tuple(self._field(encoding, field, structure) for field in encoding.fields)
        return self.add(kind, Value("vhlo", encoding, fields))

    def add(self, kind: EntryKind, value: Value) -> int:
        entry = self._file.encode(kind, value)
        key = (kind, entry.dialect, bytes(entry.data))
        if key not in self._made:
            table = self._file.attributes if kind == "attribute" else self._file.types
            self._made[key] = len(table)
            table.append(Entry(entry.dialect, entry.custom, entry.data))
        return self._made[key]

    def _field(self, encoding: Encoding, field: Field, structure: Structure) -> Any:
        if field.enum is not None:
            enum = find_enum(field.enum)
            case = enum.case(str(structure["case"])) if enum else None
            if case is None:
                raise ValueError(f"{field.enum} has no case {structure['case']}")
            return case.value
        content = structure["type" if encoding.name == "type_v1" else field.name]
        if field.is_list:
            return tuple(self._plain(field.kind, each) for each in content)
        return self._plain(field.kind, content)

    def _plain(self, kind: str, content: Any) -> Any:
        match kind:
            case "attribute" | "attribute?" | "flagged attribute":
                return None if content is None else self.structure("attribute", content)
            case "pair":
                return tuple(self.structure("attribute", each) for each in content)
            case "type":
                return self.structure("type", content)
            case "string":
                return self.string(content)
            case "f64":
                return struct.unpack("<q", struct.pack("<d", content))[0]
            case "blob":
                return bytes.fromhex(content)
        return int(content)


def _encoding(dialect: str, kind: EntryKind, name: str, fields: int | None = None) -> Encoding:
    """Return the encoding called ``name``; if there are several, the one with ``fields`` fields."""
    named: Iterable[Encoding] = (
        encoding for spelling in spellings_of(dialect, kind) for encoding in spelling.encodings if encoding.name == name
    )
    return next(each for each in named if fields is None or len(each.fields) == fields)
