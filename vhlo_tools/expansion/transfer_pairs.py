"""The source_target_pairs of send and recv, introduced in 1.12.0.

Older versions have no form of a transfer between devices: without pairs its behaviour is undefined (StableHLO
specification, ``send`` and ``recv``), whatever its channel is. So a send and the only recv on its channel, with the
same pairs and in the same block after it, become a ``collective_permute`` in front of the send, one for each value,
which has the same pairs and forms groups in the same way: of partitions if there is a channel, otherwise of replicas.
Every device must reach it, not only sources and targets (see ``reaching``). What a device receives that is no target is
open for recv, and zeros for ``collective_permute``. Tokens order nothing else then: each is replaced by the one before.

Pairs of a transfer to or from the host mean nothing, and empty pairs mean the same as none: both are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.expansion.collective_operands import OF_ALL_RESULTS
from vhlo_tools.expansion.reaching import require_all_devices
from vhlo_tools.program import channel_of, ids_of
from vhlo_tools.rewriting import Build, MatchFailure, Rewriter

_PAIRS: Final = "source_target_pairs"


def _send(rewriter: Rewriter) -> Sequence[Any] | None:
    op = rewriter.op
    if _PAIRS not in op.attributes:
        return None
    if _means_nothing(op):
        return _without_pairs(rewriter)
    receiver = _receiver(rewriter)
    require_all_devices(rewriter)
    *values, token = op.operands
    for value, result in zip(values, receiver.results, strict=False):
        (sent,) = rewriter.make_like(
            [value], [value.type], name="stablehlo.collective_permute", without=["is_host_transfer", *OF_ALL_RESULTS]
        )
        rewriter.replace_later(result, sent)
    return [token]


def _receive(rewriter: Rewriter) -> Sequence[Any] | None:
    op = rewriter.op
    if _PAIRS not in op.attributes:
        return None
    if _means_nothing(op):
        return _without_pairs(rewriter)
    *results, _ = op.results
    if results and all(map(rewriter.is_converted, results)):
        return [*map(rewriter.converted, results), op.operands[0]]
    if not _transfers(rewriter, "stablehlo.send"):
        raise MatchFailure(f"the program has no send on its channel, {channel_of(op)}")
    # The send was refused.
    return None


def _receiver(rewriter: Rewriter) -> Any:
    op = rewriter.op
    channel = channel_of(op)
    senders, receivers = (_transfers(rewriter, name) for name in ("stablehlo.send", "stablehlo.recv"))
    if len(senders) > 1 or len(receivers) != 1:
        told = f"{len(senders)} send and {len(receivers)} recv"
        raise MatchFailure(f"channel {channel} has {told}, expected one of each, which become a collective_permute")
    (receiver,) = receivers
    if _pairs(receiver) != _pairs(op):
        raise MatchFailure(f"the recv on channel {channel} has other source_target_pairs")
    if [each.type for each in op.operands][:-1] != [each.type for each in receiver.results][:-1]:
        raise MatchFailure(f"the recv on channel {channel} has results of other types than what is sent")
    if len(op.operands) == 1:
        raise MatchFailure("it sends no values")
    # A quantization along an axis has a list of scales.
    if per_axis := [each.type for each in op.operands if "{" in str(each.type)]:
        raise MatchFailure(f"{per_axis[0]} is quantized along an axis, which collective_permute does not support")
    block = [each.operation for each in op.operation.block.operations]
    if receiver not in block or block.index(receiver) < block.index(op.operation):
        raise MatchFailure(f"the recv on channel {channel} does not follow in the same block")
    return receiver


def _transfers(rewriter: Rewriter, name: str) -> list[Any]:
    """Only transfers between devices, on the channel of the rewriter's op."""
    channel = channel_of(rewriter.op)
    return [each.operation for each in rewriter.ops(name) if channel_of(each) == channel and not _is_of_host(each)]


def _is_of_host(op: Any) -> bool:
    return "is_host_transfer" in op.attributes and bool(op.attributes["is_host_transfer"].value)


def _means_nothing(op: Any) -> bool:
    return _is_of_host(op) or not _pairs(op)


def _pairs(op: Any) -> list[tuple[int, ...]]:
    return sorted(ids_of(op, _PAIRS, lambda _: None)) if _PAIRS in op.attributes else []


def _without_pairs(rewriter: Rewriter) -> Sequence[Any]:
    op = rewriter.op
    return rewriter.make_like(op.operands, [each.type for each in op.results], without=[_PAIRS])


EXACT: Final[Mapping[str, Build]] = {"stablehlo.send": _send, "stablehlo.recv": _receive}
