"""Features of collectives, as older collectives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from vhlo_tools.bindings import argument_number, result_number
from vhlo_tools.conversion.patterns import Build
from vhlo_tools.conversion.rewriter import MatchFailure, Rewriter
from vhlo_tools.conversion.tensor import Tensor, constant_like
from vhlo_tools.program import channel_of, ids_of, meshes_of

# Groups of devices of a collective, and tables of the place of a device in them
#
# Replicas, partitions and devices have numbers; a table is a constant with an entry for each number up to the greatest
# one in any group, and one entry for all that follow: a start index of ``dynamic_slice`` beyond the end is clamped to
# the last one (StableHLO specification, ``dynamic_slice``).


def groups_of(rewriter: Rewriter) -> list[tuple[int, ...]]:
    """Groups are from an explicit tensor, or from the axes of a mesh."""
    op = rewriter.op
    try:
        groups = [group for group in ids_of(op, "replica_groups", meshes_of(rewriter.module()).get) if group]
    except LookupError as missing:
        raise MatchFailure(str(missing)) from missing
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
    table = [entries.get(each, default) for each in range(max(entries, default=-1) + 2)]
    words: Sequence[str] = [str(bool(each)).lower() if bits == 1 else str(each) for each in table]
    type_ = rewriter.tensor((len(table),), rewriter.integer(bits))
    value = rewriter.attribute(f"dense<[{', '.join(words)}]> : {type_}")
    constant = rewriter.make("stablehlo.constant", [], type_, value=value)
    return rewriter.reshape(rewriter.dynamic_slice(constant, [number], [1]), ())


# Check that all devices reach an op, the same number of times
#
# A collective needs the devices of its groups only. An expansion that puts exchanges among all devices in its place
# applies if all of them get there: where the op is in a branch or a loop, its condition must be equal on all devices.
# Such are the values that are computed from constants alone, with the ops of loops that count among them.
#
# Source: StableHLO specification, section "Collective ops": it leaves open what happens if processes do not arrive.

#: Ops whose regions run once, where the op itself runs.
_TRANSPARENT: Final = ("sdy.manual_computation", "stablehlo.async_start")
#: The attribute of each op that calls a function.
_CALLS: Final = {"func.call": "callee", "stablehlo.composite": "decomposition"}
#: Ops without regions whose results may differ between devices although their operands do not.
_OF_DEVICE: Final = {
    *("stablehlo.all_gather", "stablehlo.all_to_all", "stablehlo.collective_broadcast", "stablehlo.collective_permute"),
    *("stablehlo.composite", "stablehlo.custom_call", "stablehlo.infeed", "stablehlo.partition_id", "stablehlo.recv"),
    *("stablehlo.replica_id", "stablehlo.rng", "stablehlo.rng_bit_generator"),
}


def require_all_devices(rewriter: Rewriter, op: Any = None, callers: frozenset[str] = frozenset()) -> None:
    """``callers`` are functions whose calls are being checked."""
    op = op or rewriter.op.operation
    while (parent := op.parent) is not None and parent.operation.parent is not None:
        op, name = parent.operation, str(parent.operation.name)
        if name == "func.func":
            function = str(op.attributes["sym_name"].value)
            for caller, callee in _CALLS.items() if function not in callers else ():
                for call in rewriter.ops(caller):
                    if str(call.attributes[callee].value) == function:
                        require_all_devices(rewriter, call.operation, callers | {function})
        elif name == "stablehlo.while":
            _check(name, _condition(op))
        elif name in ("stablehlo.if", "stablehlo.case"):
            _check(name, op.operands[0])
        elif name not in _TRANSPARENT:
            raise MatchFailure(f"it is in a region of {name}")


def _check(name: str, condition: Any) -> None:
    if not _is_uniform(condition, set()):
        raise MatchFailure(
            f"it is in a region of {name} whose condition may differ between devices, and all devices must reach the "
            "ops that would replace it"
        )


def _is_uniform(value: Any, assumed: set[Any]) -> bool:
    """Computed from constants alone, if the values in ``assumed`` are."""
    if value in assumed:
        return True
    assumed.add(value)
    owner = value.owner
    holder = getattr(owner, "name", None)
    if holder is None:
        # The argument of a block.
        loop = owner.owner.operation
        return str(loop.name) == "stablehlo.while" and _is_carried(loop, argument_number(value), assumed)
    if str(holder) == "stablehlo.while":
        return _is_carried(owner, result_number(value), assumed) and _is_uniform(_condition(owner), assumed)
    if len(owner.regions) or str(holder) in _OF_DEVICE or not str(holder).startswith("stablehlo."):
        return False
    return all(_is_uniform(each, assumed) for each in owner.operands)


def _condition(loop: Any) -> Any:
    return list(loop.regions[0].blocks[0].operations)[-1].operands[0]


def _is_carried(loop: Any, number: int, assumed: set[Any]) -> bool:
    """Uniform before the loop, and after each of its steps."""
    after = list(loop.regions[1].blocks[0].operations)[-1].operands[number]
    return _is_uniform(loop.operands[number], assumed) and _is_uniform(after, assumed)


# Several operands of all_gather, all_reduce and all_to_all, introduced in 1.5.0, as one op for each operand
#
# Each result depends on the operand of the same number only, and each op has the groups, the channel and the reduction
# of the original op; so results are equal bit by bit, wherever an engine reduces each operand in the same order. Ops of
# one kind may share a channel: the specification numbers channels to tell groups across partitions from others (section
# "Collective ops") and leaves open what else they mean, and JAX gives all collectives of a program one channel
# (``COLLECTIVE_CHANNEL_ID`` in ``jax/_src/interpreters/mlir.py``). Every device reaches the ops in the same order.
#
# Source: StableHLO specification, ``all_gather``, ``all_reduce`` and ``all_to_all``, inputs (I1).

#: Attributes that tell something about each result in order, and so fit no op with one of the results.
OF_ALL_RESULTS: Final = ("mhlo.sharding", "sdy.sharding")


def one_for_each(rewriter: Rewriter) -> Sequence[Any] | None:
    op = rewriter.op
    if len(op.operands) == 1:
        return None
    return [
        rewriter.make_like([operand], [result.type], without=OF_ALL_RESULTS)[0]
        for operand, result in zip(op.operands, op.results, strict=True)
    ]


COLLECTIVE_OPERANDS_EXACT: Final[Mapping[str, Build]] = {
    f"stablehlo.{name}": one_for_each for name in ("all_gather", "all_reduce", "all_to_all")
}


# The op collective_broadcast, introduced in 0.16.0, as permutations in rounds
#
# A device sends to one other device at most in a ``collective_permute``, so that the number of devices with the value
# doubles in each round. A permutation from the first device of each group to itself comes before: it leaves zeros on
# all other devices, as on devices that belong to no group. In a round a device that is sent the value takes it, and all
# others keep what they have. So values are only moved and selected: every bit of them remains, whatever their type is
# (negative zeros, NaN, quantized values), and sizes may be dynamic. A masked ``all_reduce`` would need a reduction that
# keeps all bits, which XLA for the CPU lacks (``or``), and it has no groups of partitions.
#
# Both ops form groups in the same way: of partitions if there is a channel, otherwise of replicas.
#
# Source: StableHLO specification, ``collective_broadcast`` and ``collective_permute``.


def permuted(rewriter: Rewriter, value: Any, pairs: Sequence[tuple[int, int]]) -> Any:
    """Zeros on devices that are no target."""
    held = {"source_target_pairs": rewriter.rows(pairs), **with_channel(rewriter)}
    return rewriter.make("stablehlo.collective_permute", [value], value.type, **held)


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


BROADCAST_ROUNDS_EXACT: Final[Mapping[str, Build]] = {"stablehlo.collective_broadcast": _broadcast}


# The roots and the several operands of collective_broadcast, introduced in 1.20.0
#
# Several operands without roots become one op for each operand, because a result depends on its own operand only.
#
# With roots that are only known at run time, each device needs the value of the device at the position that its own
# root tells. Permutations rotate the values within each group, one for every distance between two positions, and each
# device takes the value of the rotation that brings the one from its root. The first rotation, by no position, leaves
# zeros on devices that belong to no group. Values are only moved and selected, as in ``broadcast_rounds``. A gathering
# op would need all devices to belong to groups of one size, and ``all_gather`` has no groups of partitions.
#
# Source: StableHLO specification, ``collective_broadcast``; ``collectiveBroadcastOp`` in
# ``stablehlo/reference/Ops.cpp`` of openxla/stablehlo.


def _from_roots(rewriter: Rewriter) -> Sequence[Any] | None:
    op = rewriter.op
    if "has_dynamic_root" not in op.attributes:
        return one_for_each(rewriter)
    *data, told = op.operands
    groups = groups_of(rewriter)
    require_all_devices(rewriter)
    own = id_along_one_axis(rewriter)
    roots = [Tensor(rewriter, told).entry(number) for number in range(len(data))]
    found = [permuted(rewriter, value, [(each, each) for group in groups for each in group]) for value in data]
    for distance in range(1, max(map(len, groups))):
        turned = [
            (group[at - distance], group[at], (at - distance) % len(group))
            for group in groups
            if distance < len(group)
            for at in range(len(group))
        ]
        source = Tensor(rewriter, entry(rewriter, own, {to: position for _, to, position in turned}, -1, 32))
        pairs = [(one, to) for one, to, _ in turned]
        for number, (value, root) in enumerate(zip(data, roots, strict=True)):
            operands = [source.compare("EQ", root).value, permuted(rewriter, value, pairs), found[number]]
            found[number] = rewriter.make("stablehlo.select", operands, value.type)
    return found


BROADCAST_ROOTS_EXACT: Final[Mapping[str, Build]] = {"stablehlo.collective_broadcast": _from_roots}


# The op collective_reduce, introduced in 1.19.0, as all_reduce and a selection
#
# The root of each group has the reduction, all other devices have zeros. ``all_reduce`` gives all devices the
# reduction, in the order of the same group, and each device selects by its position in its group, which is that of the
# root or not. So the root has the bits that ``all_reduce`` gives, and the others have positive zeros.
#
# The installed library forms groups as for ``all_reduce``: of replicas without a channel; of replicas with all their
# partitions with one; of devices with ``use_global_device_ids`` (``collectiveReduceOp`` in
# ``stablehlo/reference/Ops.cpp`` of openxla/stablehlo; the specification tells groups of partitions in the second
# case). The position follows from the numbers of the replica and the partition; for groups of devices it takes the
# number of partitions, which is one more than the greatest number of a partition on any device.
#
# ``all_reduce`` requires that every device belongs to a group. The library accepts groups of all ids up to the greatest
# one; each greater id becomes a group of its own, up to the number of replicas or devices that the module tells.
#
# Source: StableHLO specification, ``collective_reduce``, ``all_reduce``, and section "Collective ops".

_EXTRA: Final = ("has_dynamic_root",)


def _reduce(rewriter: Rewriter) -> Sequence[Any]:
    op = rewriter.op
    if quantized := [each.type for each in op.results if "!quant." in str(each.type)]:
        raise MatchFailure(f"{quantized[0]} is quantized, and has no constant of zeros")
    groups = groups_of(rewriter)
    if _is_of_devices(rewriter):
        require_all_devices(rewriter)
    complete = _complete(rewriter, groups)
    position = Tensor(rewriter, _position(rewriter, groups, complete))
    data = list(op.operands)
    roots: list[Tensor | int] = [0] * len(data)
    if "has_dynamic_root" in op.attributes:
        told = Tensor(rewriter, data.pop())
        roots = [told.entry(number) for number in range(len(data))]
    values = []
    for value, root, result in zip(data, roots, op.results, strict=False):
        (reduced,) = rewriter.make_like(
            # The op converts to a wider type of its reduction first, which is a newer feature of all_reduce.
            [rewriter.convert(value, result.type.element_type)],
            [result.type],
            name="stablehlo.all_reduce",
            without=_EXTRA,
            replica_groups=rewriter.rows(complete),
        )
        zeros = constant_like(rewriter, reduced, 0)
        operands = [position.compare("EQ", root).value, reduced, zeros]
        values.append(rewriter.make("stablehlo.select", operands, result.type))
    return values


def _is_of_devices(rewriter: Rewriter) -> bool:
    return "use_global_device_ids" in rewriter.op.attributes


def _complete(rewriter: Rewriter, groups: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Each id that belongs to no group becomes a group of its own."""
    held = rewriter.module().attributes
    names = ("mhlo.num_replicas", "mhlo.num_partitions") if _is_of_devices(rewriter) else ("mhlo.num_replicas",)
    counts = [int(held[name].value) if name in held else 0 for name in names]
    members = {each for group in groups for each in group}
    extent = max(math.prod(counts), max(members) + 1)
    return [*groups, *((each,) for each in range(extent) if each not in members)]


def _position(rewriter: Rewriter, groups: Sequence[tuple[int, ...]], complete: Sequence[tuple[int, ...]]) -> Any:
    """A scalar ``i32``; -1 if the device belongs to no group."""
    own = Tensor(rewriter, identity(rewriter, "replica"))
    positions = {each: at for group in groups for at, each in enumerate(group)}
    of_32 = rewriter.integer(32)
    if _is_of_devices(rewriter):
        partition = Tensor(rewriter, identity(rewriter, "partition"))
        own = own * (_greatest(rewriter, partition, complete) + 1) + partition
        return entry(rewriter, own.value, positions, -1, 32)
    first = entry(rewriter, own.value, positions, -1, 32)
    if channel_of(rewriter.op) <= 0:
        return first
    # The partitions of a group follow each other, each with all replicas.
    steps = entry(rewriter, own.value, {each: len(group) for group in groups for each in group}, 0, 32)
    partition = Tensor(rewriter, identity(rewriter, "partition")).convert(of_32)
    return (Tensor(rewriter, first) + Tensor(rewriter, steps) * partition).value


def _greatest(rewriter: Rewriter, value: Tensor, complete: Sequence[tuple[int, ...]]) -> Tensor:
    """The greatest value of all devices."""
    everyone = sorted(each for group in complete for each in group)
    scalar = value.type
    (greatest,) = rewriter.make_several(
        "stablehlo.all_reduce",
        [value.value],
        [scalar],
        [((scalar, scalar), lambda one, other: [rewriter.make("stablehlo.maximum", [one, other], scalar)])],
        replica_groups=rewriter.rows([everyone]),
        use_global_device_ids=rewriter.attribute("unit"),
        **with_channel(rewriter),
    )
    return Tensor(rewriter, greatest)


ROOT_REDUCTION_EXACT: Final[Mapping[str, Build]] = {"stablehlo.collective_reduce": _reduce}


# Replica groups given by the axes of a mesh, introduced in 1.16.0, as groups of ids
#
# A group has the ids of the devices that differ only in their positions along the given axes, of which the last one
# changes most often; groups are in the order of the remaining axes. The mesh is part of the attribute, or an op of the
# module (``sdy.mesh``) to which the attribute refers by name; a mesh may tell the order of its devices, and an axis may
# be split into sub-axes. The ids mean what ids of explicit groups mean on the same op.
#
# Source: StableHLO specification, section "Replica groups"; ``stablehlo/dialect/ReplicaGroupUtils.cpp`` in
# openxla/stablehlo, which has no sub-axes: these are as in Shardy (``shardy/dialect/sdy/ir/attrs.td``).

#: The ops with the attribute ``replica_groups``, except ``collective_reduce``: no version with it lacks meshes.
_OPS: Final = ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "reduce_scatter")


def _explicit(rewriter: Rewriter) -> Sequence[Any] | None:
    op = rewriter.op
    if str(op.attributes["replica_groups"]).startswith("dense<"):
        return None
    groups = rewriter.rows(groups_of(rewriter))
    return rewriter.make_like(op.operands, [each.type for each in op.results], replica_groups=groups)


MESH_AXES_EXACT: Final[Mapping[str, Build]] = {f"stablehlo.{name}": _explicit for name in _OPS}


# The source_target_pairs of send and recv, introduced in 1.12.0
#
# Older versions have no form of a transfer between devices: without pairs its behaviour is undefined (StableHLO
# specification, ``send`` and ``recv``), whatever its channel is. So a send and the only recv on its channel, with the
# same pairs and in the same block after it, become a ``collective_permute`` in front of the send, one for each value,
# which has the same pairs and forms groups in the same way: of partitions if there is a channel, otherwise of replicas.
# Every device must reach it, not only sources and targets (see ``reaching``). What a device receives that is no target
# is open for recv, and zeros for ``collective_permute``. Tokens order nothing else then: each is replaced by the one
# before.
#
# Pairs of a transfer to or from the host mean nothing, and empty pairs mean the same as none: both are left out.

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
        without = ["is_host_transfer", *OF_ALL_RESULTS]
        (sent,) = rewriter.make_like([value], [value.type], name="stablehlo.collective_permute", without=without)
        rewriter.later[result] = sent
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


TRANSFER_PAIRS_EXACT: Final[Mapping[str, Build]] = {"stablehlo.send": _send, "stablehlo.recv": _receive}
