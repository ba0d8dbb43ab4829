"""The groups of devices of a collective, and what a device knows about its place in them.

Replicas, partitions and devices have numbers; a table is a constant with an entry for each number up to the greatest
one in any group, and one entry for all that follow: a start index of ``dynamic_slice`` beyond the end is clamped to
the last one (StableHLO specification, ``dynamic_slice``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vhlo_tools.program import channel_of, ids_of, meshes_of
from vhlo_tools.rewriting import MatchFailure, Rewriter


def groups_of(rewriter: Rewriter) -> list[tuple[int, ...]]:
    """Return the ids of each group of the rewriter's op, which an explicit tensor or the axes of a mesh tell.

    Raises:
        MatchFailure: If there are none, or their axes do not fit the mesh, whose existence the library verifies.
    """
    op = rewriter.op
    try:
        groups = [group for group in ids_of(op, "replica_groups", meshes_of(rewriter.module()).get) if group]
    except ValueError as misfit:
        raise MatchFailure("the axes of its groups, or the devices of their mesh, do not fit its sizes") from misfit
    if not groups:
        raise MatchFailure("its groups are empty, so that the number of devices decides them")
    return groups


def identity(rewriter: Rewriter, axis: str) -> Any:
    """Return the number of the ``replica`` or the ``partition``."""
    return rewriter.make(f"stablehlo.{axis}_id", [], rewriter.tensor((), rewriter.integer(32, unsigned=True)))


def id_along_one_axis(rewriter: Rewriter) -> Any:
    """Return the number that the groups of an op among replicas or among partitions consist of.

    Source: StableHLO specification, ``collective_broadcast`` and ``collective_permute``: partitions if there is a
    channel, otherwise replicas.
    """
    return identity(rewriter, "partition" if channel_of(rewriter.op) > 0 else "replica")


def with_channel(rewriter: Rewriter) -> Mapping[str, Any]:
    """Return the attribute with the channel of the op, if it has one."""
    held = rewriter.op.attributes
    return {"channel_handle": held["channel_handle"]} if "channel_handle" in held else {}


def entry(rewriter: Rewriter, number: Any, entries: Mapping[int, int], default: int, bits: int) -> Any:
    """Return the entry at a number of a table of signless integers, as a scalar.

    Args:
        rewriter: The rewriter that builds ops.
        number: The number, a scalar.
        entries: The entries by number.
        default: The entry of all other numbers.
        bits: The width of an entry; one for booleans.
    """
    element = rewriter.integer(bits)
    table = [entries.get(each, default) for each in range(max(entries, default=-1) + 2)]
    words: Sequence[str] = [str(bool(each)).lower() if bits == 1 else str(each) for each in table]
    type_ = rewriter.tensor((len(table),), element)
    value = rewriter.attribute(f"dense<[{', '.join(words)}]> : {type_}")
    constant = rewriter.make("stablehlo.constant", [], type_, value=value)
    of_one = rewriter.integers([1])
    taken = rewriter.make(
        "stablehlo.dynamic_slice", [constant, number], rewriter.tensor((1,), element), slice_sizes=of_one
    )
    return rewriter.reshape(taken, ())
