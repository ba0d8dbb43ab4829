"""What is done with each input of an execution that was given away, or has an alias.

The rules are those of XLA's runtimes: an input that has an alias and was given away is written over; one that was not
given away is protected by a copy, or, if it must be aliased, an error; one that something else still refers to counts
as not given away. Source: ``xla/pjrt/common_pjrt_client.cc`` and ``xla/service/cpu/cpu_executable.cc`` in openxla/xla.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vhlo_tools.aliasing import Alias, ShapeIndex, format_index
from vhlo_tools.errors import AliasError
from vhlo_tools.interpreter.buffers import Buffer

__all__ = ["Aliased", "Input", "plan_donation"]


@dataclass(frozen=True, slots=True)
class Input:
    """A leaf of the inputs.

    Attributes:
        parameter_number: The number of the parameter that it belongs to.
        parameter_index: Where in that parameter it is.
        buffer: Its value; of an array that is no buffer, one that nobody else knows; ``None`` for a token.
        donated: Whether it was given away.
        unfit: Why its memory cannot be written over, if it cannot.
    """

    parameter_number: int
    parameter_index: ShapeIndex
    buffer: Buffer | None
    donated: bool = False
    unfit: str | None = None

    @property
    def given(self) -> Buffer:
        """The buffer of what is no token."""
        assert self.buffer is not None
        return self.buffer


@dataclass(frozen=True, slots=True)
class Aliased:
    """An input that an output is aliased with.

    Attributes:
        input: The number of the input among the leaves of all.
        output: The number of the output among the leaves of all.
        reason: Why the output is not written over the input, but over a copy of it; ``None`` if it is.
    """

    input: int
    output: int
    reason: str | None


def plan_donation(inputs: Sequence[Input], aliases: Sequence[Alias], outputs: Sequence[ShapeIndex]) -> list[Aliased]:
    """Say which inputs are written over.

    Args:
        inputs: The leaves of the inputs.
        aliases: Those of the compiled program.
        outputs: Where in the result each leaf of it is.

    Raises:
        AliasError: If an input that must be aliased was not given away, or not for good.
    """
    number_of = {(each.parameter_number, each.parameter_index): number for number, each in enumerate(inputs)}
    place_of = {index: number for number, index in enumerate(outputs)}
    aliased = [number_of[each.parameter_number, each.parameter_index] for each in aliases]
    reasons = [_reason(inputs[number], inputs) for number in aliased]
    asked = [place for place, reason in enumerate(reasons) if reason is None]
    # All at once, for each search goes through all that the process holds.
    held = Buffer.holders([inputs[aliased[place]].given for place in asked])
    for place, found in zip(asked, held, strict=True):
        if found:
            reasons[place] = f"its memory is held by {' and '.join(found)}"
    for alias, reason in zip(aliases, reasons, strict=True):
        if reason is not None and alias.kind == "must-alias":
            raise AliasError(
                f"output {format_index(alias.output_index)} must be written over parameter {alias.parameter_number} at "
                f"{format_index(alias.parameter_index)}, but {reason}: donate it (donate=({alias.parameter_number},)) "
                "and keep nothing that refers to its memory, or make the alias a may-alias"
            )
    return [
        Aliased(number, place_of[alias.output_index], reason)
        for alias, number, reason in zip(aliases, aliased, reasons, strict=True)
    ]


def _reason(each: Input, inputs: Sequence[Input]) -> str | None:
    """Return why the memory of an input must not be written over, as far as the inputs tell."""
    if not each.donated:
        return "it was not donated"
    if each.unfit is not None:
        return each.unfit
    for other in inputs:
        if other is not each and other.buffer is not None and _overlap(each.given, other.buffer):
            return f"its memory is passed for parameter {other.parameter_number} too"
    return None


def _overlap(one: Buffer, other: Buffer) -> bool:
    if one is other:
        return True
    return one.memory is not None and other.memory is not None and np.may_share_memory(one.memory, other.memory)
