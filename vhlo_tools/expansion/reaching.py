"""Check that all devices reach an op, the same number of times.

A collective needs the devices of its groups only. An expansion that puts exchanges among all devices in its place
applies if all of them get there: where the op is in a branch or a loop, its condition must be equal on all devices.
Such are the values that are computed from constants alone, with the ops of loops that count among them.

Source: StableHLO specification, section "Collective ops": it leaves open what happens if processes do not arrive.
"""

from __future__ import annotations

from typing import Any, Final

from vhlo_tools.bindings import argument_number, result_number
from vhlo_tools.rewriting import MatchFailure, Rewriter

#: Ops whose regions run once, where the op itself runs.
_TRANSPARENT: Final = ("sdy.manual_computation", "stablehlo.async_start")
#: The attribute of each op that calls a function.
_CALLS: Final = {"func.call": "callee", "stablehlo.composite": "decomposition"}
#: Ops without regions whose results may differ between devices although their operands do not.
_OF_DEVICE: Final = frozenset(
    f"stablehlo.{name}"
    for name in (
        "all_gather",
        "all_to_all",
        "collective_broadcast",
        "collective_permute",
        "composite",
        "custom_call",
        "infeed",
        "partition_id",
        "recv",
        "replica_id",
        "rng",
        "rng_bit_generator",
    )
)


def require_all_devices(rewriter: Rewriter) -> None:
    _require(rewriter, rewriter.op.operation, frozenset())


def _require(rewriter: Rewriter, op: Any, callers: frozenset[str]) -> None:
    while (parent := op.parent) is not None and parent.operation.parent is not None:
        op, name = parent.operation, str(parent.operation.name)
        if name == "func.func":
            function = str(op.attributes["sym_name"].value)
            for caller, callee in _CALLS.items() if function not in callers else ():
                for call in rewriter.ops(caller):
                    if str(call.attributes[callee].value) == function:
                        _require(rewriter, call.operation, callers | {function})
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
