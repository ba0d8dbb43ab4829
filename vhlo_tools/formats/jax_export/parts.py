"""Parts of a jax.export file that not every release of jax reads, or writes.

Source: ``jax/_src/export/serialization.py`` of the releases. The releases that read each part are data, in
``dialect_specs/jax_export/parts.toml``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vhlo_tools.formats.jax_export.schema import DTYPES, MEMORY_SPACES

if TYPE_CHECKING:
    from vhlo_tools.formats.flatbuffer import Table
    from vhlo_tools.formats.jax_export.export_file import JaxExport

# The kind of a node of a tree that stands for a registered type; the kinds before it are those of Python itself.
_CUSTOM = 5


def parts_of(export: JaxExport) -> dict[tuple[str, str], None]:
    """Return the parts as ids with a value, which is empty where the id says all.

    Only the function is examined: jax reads the derivatives in a file when they are called.
    """
    return dict.fromkeys(_parts(export.table.again(), export))


def _parts(table: Table, export: JaxExport) -> Iterator[tuple[str, str]]:
    yield "serialization_version", str(export.serialization_version)
    yield "calling_convention", str(export.calling_convention_version)
    if export.jax_version is not None:
        yield "jax_version", ""
    wide, short = table.number("nr_devices"), table.number("nr_devices_short")
    if wide or short:
        yield ("both_device_counts" if wide and short else "wide_device_count" if wide else "short_device_count"), ""
    unique = list(table.tables("unique_avals"))
    if unique:
        yield "unique_values", ""
    for aval in (*unique, *table.tables("in_avals"), *table.tables("out_avals")):
        number = aval.number("dtype")
        yield "dtype", DTYPES.get(number, str(number))
        if space := aval.number("memory_space"):
            yield "memory_space", MEMORY_SPACES.get(space, str(space))
    for side in ("in_shardings", "out_shardings"):
        for sharding in table.tables(side):
            named = sharding.place("named_sharding") is not None
            xla = sharding.place("hlo_sharding_proto") is not None
            if named or xla:
                yield ("named_sharding" if not xla else "both_shardings" if named else "xla_sharding"), ""
    for tree in ("in_tree", "out_tree"):
        for name in _types(table.table(tree)):
            yield "registered_type", name


def _types(root: Table | None) -> Iterator[str]:
    """Yield the names of registered types in a tree."""
    waiting = [] if root is None else [root]
    while waiting:
        node = waiting.pop()
        if node.number("kind") >= _CUSTOM:
            yield node.text("custom_name")
        waiting.extend(node.tables("children"))
