"""Conversion of locations to forms that readers of a version accept."""

from __future__ import annotations

from dataclasses import replace

from vhlo_tools.bytecode import OPTIONAL_LOCATIONS_SINCE, Block, Entry, File, Tables, Value, decode, encode, walk
from vhlo_tools.dialect import encodings_of, known_feature
from vhlo_tools.findings import Finding
from vhlo_tools.version import Version

__all__ = ["locate_arguments", "make_locations_plain", "with_plain_locations"]


def make_locations_plain(file: File, target: Version) -> list[Finding]:
    """Replace every location with a range by its start, for readers without ranges, and return a note about it.

    The entries are changed in place in the table, so that locations and attributes that contain them follow.
    """
    encodings = {each.name: each for each in encodings_of("builtin", "attribute").values()}
    old = frozenset(code << 1 | 1 for code in encodings_of("builtin", "attribute")) - {
        encodings["file_line_col_range"].code << 1 | 1
    }
    builtin = [file.dialect(index) == "builtin" for index in range(len(file.dialects.names))]
    changed = 0
    for index, entry in enumerate(file.attributes):
        if not builtin[entry.dialect] or not entry.custom or (len(entry.data) and entry.data[0] in old):
            continue
        value = file.decode("attribute", index)
        if value is None or value.name != "file_line_col_range":
            continue
        line, column = (*value.field("lines_and_columns"), 0, 0)[:2]
        plain = Value("builtin", encodings["file_line_col"], (value.field("file"), line, column))
        file.attributes[index] = Entry(entry.dialect, True, file.encode("attribute", plain).data)
        changed += 1
    if not changed:
        return []
    ranges = known_feature("range_locations")
    return [
        Finding(
            feature=ranges.id,
            level="note",
            kind=ranges.kind,
            message=f"source locations with a range were reduced to its start: readers older than {ranges.introduced} "
            f"do not support ranges",
            introduced=ranges.introduced,
            target=target,
            count=changed,
        )
    ]


def with_plain_locations(data: bytes, target: Version) -> bytes:
    """Return an artifact after :func:`make_locations_plain`; the same object if nothing changes."""
    file = decode(data)
    return encode(file) if make_locations_plain(file, target) else data


def locate_arguments(file: File, tables: Tables) -> None:
    """Add a location to every block argument without one, if the version of the format requires it."""
    if file.version >= OPTIONAL_LOCATIONS_SINCE:
        return
    for item in walk(file.ir):
        if isinstance(item, Block) and any(argument.location is None for argument in item.arguments):
            unknown = tables.builtin("unknown")
            item.arguments = [
                replace(argument, location=unknown) if argument.location is None else argument
                for argument in item.arguments
            ]
