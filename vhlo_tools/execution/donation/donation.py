"""Plan of the donation of inputs: which inputs of an execution are overwritten, copied or refused.

The rules are those of XLA's runtimes: an input that has an alias and was donated is overwritten. An input that was not
donated is protected by a copy, or, if it is a must-alias, is an error. An input with other live references counts as
not donated. Source: ``xla/pjrt/common_pjrt_client.cc`` and ``xla/service/cpu/cpu_executable.cc`` in openxla/xla.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vhlo_tools.aliasing import Alias, ShapeIndex, format_index
from vhlo_tools.errors import AliasError
from vhlo_tools.execution.donation.buffers import Buffer
from vhlo_tools.records import dataclass


@dataclass(frozen=True, slots=True)
class Input:
    """A leaf of the inputs."""

    parameter_number: int
    parameter_index: ShapeIndex
    buffer: Buffer | None  # new if the input is an array; None for a token
    donated: bool = False
    unfit: str | None = None  # why its memory cannot be overwritten; None if it can

    @property
    def given(self) -> Buffer:
        assert self.buffer is not None
        return self.buffer


@dataclass(frozen=True, slots=True)
class Aliased:
    input: int  # number among all input leaves
    output: int  # number among all output leaves
    reason: str | None  # why a copy of the input is overwritten; None if the input itself is
    moved: bool = False  # the input was first copied to the memory of the engine, which later runs do not need


def plan_donation(inputs: Sequence[Input], aliases: Sequence[Alias], outputs: Sequence[ShapeIndex]) -> list[Aliased]:
    """Decide for each alias whether the output overwrites its input; :class:`AliasError` if a must-alias cannot."""
    number_of = {(each.parameter_number, each.parameter_index): number for number, each in enumerate(inputs)}
    place_of = {index: number for number, index in enumerate(outputs)}
    aliased = [number_of[each.parameter_number, each.parameter_index] for each in aliases]
    reasons = [_reason(inputs[number], inputs) for number in aliased]
    asked = [place for place, reason in enumerate(reasons) if reason is None]
    # In one call, because each search visits all objects of the process.
    held = Buffer.holders([inputs[aliased[place]].given for place in asked])
    for place, found in zip(asked, held, strict=True):
        if found:
            reasons[place] = f"its memory is held by {' and '.join(found)}"
    for alias, reason in zip(aliases, reasons, strict=True):
        if reason is not None and alias.kind == "must-alias":
            raise AliasError(
                f"output {format_index(alias.output_index)} must overwrite parameter {alias.parameter_number} at "
                f"{format_index(alias.parameter_index)}, but {reason}: donate it (donate=({alias.parameter_number},)) "
                f"and keep no reference to its memory, or make the alias a may-alias"
            )
    return [
        Aliased(number, place_of[alias.output_index], reason)
        for alias, number, reason in zip(aliases, aliased, reasons, strict=True)
    ]


def _reason(each: Input, inputs: Sequence[Input]) -> str | None:
    """The reason as far as the inputs show it; other references are counted separately."""
    if not each.donated:
        return "it was not donated"
    if each.unfit is not None:
        return each.unfit
    for other in inputs:
        if other is not each and other.buffer is not None and _overlap(each.given, other.buffer):
            return f"its memory is also passed for parameter {other.parameter_number}"
    return None


def _overlap(one: Buffer, other: Buffer) -> bool:
    if one is other:
        return True
    return one.memory is not None and other.memory is not None and np.may_share_memory(one.memory, other.memory)
