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
    """A leaf of the inputs.

    Attributes:
        parameter_number: The number of the parameter that contains the leaf.
        parameter_index: The index of the leaf in that parameter.
        buffer: Its value, in a new buffer if the input is an array; ``None`` for a token.
        donated: Whether it was donated.
        unfit: The reason why its memory cannot be overwritten; ``None`` if it can.
    """

    parameter_number: int
    parameter_index: ShapeIndex
    buffer: Buffer | None
    donated: bool = False
    unfit: str | None = None

    @property
    def given(self) -> Buffer:
        """The buffer of an input that is not a token."""
        assert self.buffer is not None
        return self.buffer


@dataclass(frozen=True, slots=True)
class Aliased:
    """An input that is aliased with an output.

    Attributes:
        input: The number of the input among all input leaves.
        output: The number of the output among all output leaves.
        reason: The reason why the output is written over a copy of the input; ``None`` if it overwrites the input.
        moved: Whether the input was copied to the memory of the engine first, which later runs do not need.
    """

    input: int
    output: int
    reason: str | None
    moved: bool = False


def plan_donation(inputs: Sequence[Input], aliases: Sequence[Alias], outputs: Sequence[ShapeIndex]) -> list[Aliased]:
    """Return, for each alias, whether the output overwrites its input.

    Args:
        inputs: The leaves of the inputs.
        aliases: The aliases of the compiled program.
        outputs: The index in the result of each leaf of the result.

    Raises:
        AliasError: If an input that must be aliased was not donated, or its memory cannot be overwritten.
    """
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
    """Return why the memory of an input must not be overwritten, as far as the inputs show."""
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
