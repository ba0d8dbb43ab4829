"""Groups of devices of a collective, and tables of the place of a device in them.

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
    """Groups are from an explicit tensor, or from the axes of a mesh, whose existence the library verifies."""
    op = rewriter.op
    try:
        groups = [group for group in ids_of(op, "replica_groups", meshes_of(rewriter.module()).get) if group]
    except ValueError as misfit:
        raise MatchFailure("the axes of its groups, or the devices of their mesh, do not fit its sizes") from misfit
    if not groups:
        raise MatchFailure("its groups are empty, so that the number of devices decides them")
    return groups


def identity(rewriter: Rewriter, axis: str) -> Any:
    return rewriter.make(f"stablehlo.{axis}_id", [], rewriter.tensor((), rewriter.integer(32, unsigned=True)))


def id_along_one_axis(rewriter: Rewriter) -> Any:
    """Partitions if there is a channel, otherwise replicas.

    Source: StableHLO specification, ``collective_broadcast`` and ``collective_permute``.
    """
    return identity(rewriter, "partition" if channel_of(rewriter.op) > 0 else "replica")


def with_channel(rewriter: Rewriter) -> Mapping[str, Any]:
    held = rewriter.op.attributes
    return {"channel_handle": held["channel_handle"]} if "channel_handle" in held else {}


def entry(rewriter: Rewriter, number: Any, entries: Mapping[int, int], default: int, bits: int) -> Any:
    """A scalar of ``bits`` bits, one for booleans; ``default`` is the entry of numbers that are not in ``entries``."""
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
