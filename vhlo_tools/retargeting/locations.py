"""Convert locations to forms that readers of a version accept."""

from __future__ import annotations

from typing import Final

from vhlo_tools.bytecode import OPTIONAL_LOCATIONS_SINCE, File, Tables, Value, blocks_in, encode
from vhlo_tools.findings import Finding
from vhlo_tools.spec import encodings_of, known_feature
from vhlo_tools.version import Version

_RANGE: Final = "file_line_col_range"


def make_locations_plain(file: File, target: Version) -> list[Finding]:
    """Replace every location with a range by its start, for readers without ranges, and return a note about it.

    The entries are changed in place in the table, so that locations and attributes that contain them follow.
    """
    encodings = {each.name: each for each in encodings_of("builtin", "attribute").values()}
    changed = 0
    for index in file.called("attribute", "builtin", _RANGE):
        value = file.decode("attribute", index)
        if value is None:
            continue
        line, column = (*value.field("lines_and_columns"), 0, 0)[:2]
        plain = Value("builtin", encodings["file_line_col"], (value.field("file"), line, column))
        file.attributes[index] = file.encode("attribute", plain)
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


def with_plain_locations(file: File, target: Version) -> bytes | None:
    """Return the bytes of a changed copy; ``None`` if nothing changes."""
    if next(file.called("attribute", "builtin", _RANGE), None) is None:
        return None
    copied = file.copy()
    make_locations_plain(copied, target)
    return encode(copied)


def locate_arguments(file: File, tables: Tables) -> None:
    """Add a location to every block argument without one, if the version of the format requires it."""
    if file.version >= OPTIONAL_LOCATIONS_SINCE:
        return
    for block in blocks_in(file.ir):
        if any(argument.location is None for argument in block.arguments):
            unknown = tables.builtin("unknown")
            block.arguments = [
                argument._replace(location=unknown) if argument.location is None else argument
                for argument in block.arguments
            ]
