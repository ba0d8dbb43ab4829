"""The op collective_broadcast, introduced in 0.16.0, as permutations in rounds.

A device sends to one other device at most in a ``collective_permute``, so that the number of devices with the value
doubles in each round. A permutation from the first device of each group to itself comes before: it leaves zeros on all
other devices, as on devices that belong to no group. In a round a device that is sent the value takes it, and all
others keep what they have. So values are only moved and selected: every bit of them remains, whatever their type is
(negative zeros, NaN, quantized values), and sizes may be dynamic. A masked ``all_reduce`` would need a reduction that
keeps all bits, which XLA for the CPU lacks (``or``), and it has no groups of partitions.

Both ops form groups in the same way: of partitions if there is a channel, otherwise of replicas.

Source: StableHLO specification, ``collective_broadcast`` and ``collective_permute``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.expansion.device_ids import entry, groups_of, id_along_one_axis, with_channel
from vhlo_tools.expansion.reaching import require_all_devices
from vhlo_tools.rewriting import Build, MatchFailure, Rewriter


def permuted(rewriter: Rewriter, value: Any, pairs: Sequence[tuple[int, int]]) -> Any:
    """Zeros on devices that are no target."""
    held = with_channel(rewriter)
    return rewriter.make(
        "stablehlo.collective_permute", [value], value.type, source_target_pairs=rewriter.rows(pairs), **held
    )


def _broadcast(rewriter: Rewriter) -> Sequence[Any]:
    if "has_dynamic_root" in rewriter.op.attributes:
        raise MatchFailure("its root is only known at run time")
    groups = groups_of(rewriter)
    require_all_devices(rewriter)
    values = [permuted(rewriter, value, [(group[0], group[0]) for group in groups]) for value in rewriter.op.operands]
    have = 1
    while pairs := [pair for group in groups for pair in zip(group[:have], group[have : 2 * have], strict=False)]:
        own = id_along_one_axis(rewriter)
        is_target = entry(rewriter, own, dict.fromkeys((target for _, target in pairs), 1), 0, 1)
        values = [
            rewriter.make("stablehlo.select", [is_target, permuted(rewriter, value, pairs), value], value.type)
            for value in values
        ]
        have *= 2
    return values


EXACT: Final[Mapping[str, Build]] = {"stablehlo.collective_broadcast": _broadcast}
