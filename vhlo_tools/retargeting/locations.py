"""Locations as readers of a version take them."""

from __future__ import annotations

from dataclasses import replace

from vhlo_tools.bytecode import Entry, File, Value, decode, encode
from vhlo_tools.bytecode.ir import OPTIONAL_LOCATIONS_SINCE, Block, walk
from vhlo_tools.dialect import encodings_of, known_feature
from vhlo_tools.findings import Finding
from vhlo_tools.retargeting.tables import Tables
from vhlo_tools.version import Version

__all__ = ["locate_arguments", "make_locations_plain", "with_plain_locations"]


def make_locations_plain(file: File, target: Version) -> list[Finding]:
    """Turn every location with a range into its start, for readers that know no ranges; and say so.

    They are changed where they stand in the table, so that those around them, and attributes, follow.
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
            message=f"source locations that span a range became those of its start: readers older than "
            f"{ranges.introduced} know no ranges",
            introduced=ranges.introduced,
            target=target,
            count=changed,
        )
    ]


def with_plain_locations(data: bytes, target: Version) -> bytes:
    """Return an artifact as :func:`make_locations_plain` leaves it; the very same where that has nothing to do."""
    file = decode(data)
    return encode(file) if make_locations_plain(file, target) else data


def locate_arguments(file: File, tables: Tables) -> None:
    """Give every block argument a location, if the version of the format asks for one."""
    if file.version >= OPTIONAL_LOCATIONS_SINCE:
        return
    for item in walk(file.ir):
        if isinstance(item, Block) and any(argument.location is None for argument in item.arguments):
            unknown = tables.builtin("unknown")
            item.arguments = [
                replace(argument, location=unknown) if argument.location is None else argument
                for argument in item.arguments
            ]
