"""Entries of a specification as TOML text, and edits of a TOML file that preserve all other content."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final

from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.records import dataclass

# A TOML file edited as text, so that all existing content is kept, comments included
#
# A TOML library would keep the comments too, but detach comments between two entries from the entry that they describe.

_HEADER = re.compile(r"\s*\[\[?\s*([A-Za-z_][\w.]*)\s*\]\]?\s*(#.*)?")
_IDENTITY = re.compile(r"\s*(?:name|id|version)\s*=\s*[\"'](.*?)[\"']")
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Edit:
    path: Path
    before: str | None  # None if the file does not exist
    after: str

    def diff(self, name: str) -> str:
        old = "/dev/null" if self.before is None else name
        lines = unified_diff((self.before or "").splitlines(True), self.after.splitlines(True), old, name)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


@dataclass(frozen=True, slots=True)
class TableSpan:
    header: str  # ``op.version``
    entry: str  # the name of the array entry that contains the table
    begin: int  # the index of the line with its header
    end: int  # the index after its last own line


class Document:
    def __init__(self, path: Path, text: str = "") -> None:
        self.path = path
        self._before = path.read_text(encoding="utf-8") if path.is_file() else None
        self.text: str = text if self._before is None else self._before

    @property
    def edit(self) -> Edit | None:
        return None if self.text == self._before else Edit(self.path, self._before, self.text)

    @property
    def _lines(self) -> list[str]:
        return self.text.splitlines(keepends=True)

    def sections(self, header: str, entry: str) -> list[TableSpan]:
        """Return the tables ``header``, and their subtables, of the entry."""
        inside = f"{header}."
        return [
            section
            for section in self._sections()
            if section.entry == entry and (section.header == header or section.header.startswith(inside))
        ]

    def entries(self, header: str) -> list[str]:
        return [section.entry for section in self._sections() if section.header == header]

    def section(self, header: str, entry: str) -> TableSpan:
        """Return the last table ``header`` of the entry."""
        found = [section for section in self._sections() if (section.header, section.entry) == (header, entry)]
        if not found:
            raise InvalidSpecificationError(f"{self.path}: no [[{header}]] of {entry} was found")
        return found[-1]

    def line_of(self, section: TableSpan, wanted: str = "") -> int:
        """Return the number, from 1, of the line with the key or the text ``wanted``; by default of the header."""
        place = self._place(section, wanted)
        if place is None:
            lines = enumerate(self._lines[section.begin : section.end], section.begin)
            place = next((index for index, line in lines if wanted in line), section.begin)
        return place + 1

    def text_of(self, section: TableSpan) -> str:
        return "".join(self._lines[section.begin : section.end])

    def append(self, entry: str) -> None:
        self.text = f"{self.text.rstrip()}\n\n{entry}" if self.text.strip() else entry

    def add_in_order(self, header: str, name: str, entry: str) -> None:
        """Add an entry of the array ``header`` before the first entry with a greater name, or at the end."""
        names = self.entries(header)
        place = next((index for index, each in enumerate(names) if each > name), None)
        if place is None:
            self.append(entry)
        elif place:
            self.insert(self.sections(header, names[place - 1])[-1].end, f"\n{entry}")
        else:
            lines, begin = self._lines, self.section(header, names[0]).begin
            above = begin
            while above and lines[above - 1].startswith("#"):
                above -= 1
            # A comment at the head of the file does not belong to the first entry.
            self.insert(above or begin, f"{entry}\n")

    def insert(self, place: int, inserted: str) -> None:
        lines = self._lines
        if place and not lines[place - 1].endswith("\n"):
            lines[place - 1] += "\n"
        self.text = "".join([*lines[:place], inserted, *lines[place:]])

    def add_key(self, section: TableSpan, key: str, value: str, *, before: str | None = None) -> None:
        place = self._place(section, before) if before else None
        self.insert(section.end if place is None else place, f"{key} = {value}\n")

    def replace(self, section: TableSpan, key: str, value: str) -> None:
        start, end = self._span(section, key)
        self.text = self.text[:start] + value + self.text[end:]

    def extend(self, section: TableSpan, key: str, items: Sequence[str]) -> None:
        start, end = self._span(section, key)
        self.text = self.text[:start] + _extended(self.text[start:end], items) + self.text[end:]

    def has(self, section: TableSpan, key: str) -> bool:
        return self._place(section, key) is not None

    def _sections(self) -> list[TableSpan]:
        lines = self._lines
        starts = [(match[1], index) for index, line in enumerate(lines) if (match := _HEADER.fullmatch(line.rstrip()))]
        ends = [index for _, index in starts[1:]] + [len(lines)]
        sections: list[TableSpan] = []
        entry = ""
        for (header, begin), end in zip(starts, ends, strict=False):
            body = lines[begin:end]
            if "." not in header:
                entry = next((match[1] for line in body if (match := _IDENTITY.match(line))), "")
            sections.append(TableSpan(header, entry, begin, begin + _length(body)))
        return sections

    def _place(self, section: TableSpan, key: str) -> int | None:
        lines = self._lines[section.begin : section.end]
        form = re.compile(rf"\s*{re.escape(key)}\s*=")
        return next((section.begin + index for index, line in enumerate(lines) if form.match(line)), None)

    def _span(self, section: TableSpan, key: str) -> tuple[int, int]:
        lines, place = self._lines, self._place(section, key)
        if place is None:
            raise InvalidSpecificationError(f"{self.path}: [{section.header}] of {section.entry} has no {key}")
        start = sum(map(len, lines[:place])) + lines[place].index("=") + 1
        start += len(self.text[start:]) - len(self.text[start:].lstrip())
        depth, end = 0, start
        for position, character in _outside_of_comments(self.text, start):
            depth += (character in "[{") - (character in "]}")
            if character == "\n" and not depth:
                break
            end = end if character.isspace() else position + 1
        return start, end


def _length(body: Sequence[str]) -> int:
    """Count a table's own lines: comments after a blank line belong to the next table."""
    own = len(body)
    while own and (not body[own - 1].strip() or body[own - 1].lstrip().startswith("#")):
        own -= 1
    while own < len(body) and body[own].lstrip().startswith("#"):
        own += 1
    return own


_TEXT = re.compile(r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\])*"|' r"'''.*?'''|'[^']*'", re.DOTALL)


def _outside_of_comments(text: str, position: int) -> Iterator[tuple[int, str]]:
    """Yield the characters outside of comments, with positions; of a string, only its last one."""
    while position < len(text):
        if text[position] == "#":
            position = text.find("\n", position) % (len(text) + 1)
        elif match := _TEXT.match(text, position):
            position = match.end()
            yield position - 1, '"'
        else:
            yield position, text[position]
            position += 1


def _extended(value: str, items: Sequence[str]) -> str:
    """Append items, each on its own line if the value has several lines."""
    inner = [place for place, character in _outside_of_comments(value[:-1], 0) if not character.isspace()]
    head, rest, closing = value[: inner[-1] + 1], value[inner[-1] + 1 : -1], value[-1]
    comma = "" if len(inner) == 1 or head.endswith(",") else ","
    if "\n" not in value:
        padding = " " if comma or value[0] == "{" else ""
        return f"{head}{comma}{padding}{', '.join(items)}{rest or (padding if value[0] == '{' else '')}{closing}"
    above, newline, indent = rest.rpartition("\n")
    lines = "".join(f"  {item},\n" for item in items)
    return f"{head}{comma}{above}{newline or chr(10)}{lines}{indent if newline else ''}{closing}"


def quoted(text: str) -> str:
    """Unlike JSON, TOML has no surrogate pairs and no bare DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def array(values: Sequence[object]) -> str:
    items = [quoted(str(value)) for value in values]
    line = f"[{', '.join(items)}]"
    if len(line) <= _WIDTH:
        return line
    lines = [" "]
    for item in items:
        if len(lines[-1]) > 1 and len(lines[-1]) + len(item) > _WIDTH:
            lines.append(" ")
        lines[-1] += f" {item},"
    return "\n".join(["[", *lines, "]"])


# Entries of a specification as TOML text, in the layout of ``dialect_specs/``

# Which arrays of tables have headers of their own, such as [[op.version]]; others are written in line.
_TABLES: Final = frozenset({"version", "step", "constraint", "encoding", "expansion"})


def document_text(table: str, entries: Sequence[Mapping[str, Any]]) -> str:
    """A blank line separates two entries."""
    return "\n".join(entry_text(table, entry) for entry in entries)


def entry_text(table: str, entry: Mapping[str, Any]) -> str:
    return "".join(_lines(table, entry))


def _lines(header: str, entry: Mapping[str, Any]) -> Iterator[str]:
    yield f"[[{header}]]\n"
    inner = {key for key, value in entry.items() if key in _TABLES and isinstance(value, list)}
    for key, value in entry.items():
        if key not in inner:
            yield f"{key} = {_cases(value) if key == 'cases' else value_text(value)}\n"
    for key in (key for key in entry if key in inner):
        for each in entry[key]:
            # An encoding belongs to its type as closely as a key.
            yield "" if key == "encoding" else "\n"
            yield from _lines(f"{header}.{key}", each)


def _cases(values: Sequence[Any]) -> str:
    return "\n".join(["[", *(f"  {value_text(value)}," for value in values), "]"])


def value_text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return quoted(value)
        case date():
            return value.isoformat()
        case Mapping():
            return f"{{ {', '.join(f'{_key(key)} = {value_text(each)}' for key, each in value.items())} }}"
        case list() if all(isinstance(each, str) for each in value):
            return array(value)
        case list():
            return f"[{', '.join(map(value_text, value))}]"
    return str(value)


def _key(key: str) -> str:
    return key if key.isascii() and key.replace("_", "a").replace("-", "a").isalnum() else quoted(key)
