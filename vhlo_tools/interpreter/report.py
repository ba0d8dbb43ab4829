"""What an execution did with the memory of its inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vhlo_tools.aliasing import ShapeIndex, format_index

__all__ = ["DonationWarning", "OutputReport", "Placement", "RunReport", "UnusableDonation"]

#: ``in-place``: over the input that it is aliased with. ``copied``: over a copy that
#: protects the input. ``new``: the output has no alias.
Placement = Literal["in-place", "copied", "new"]


class DonationWarning(UserWarning):
    """A buffer that was given away for nothing."""


@dataclass(frozen=True, slots=True)
class OutputReport:
    """What became of an output.

    Attributes:
        output_index: Where in the result it is; ``()`` for a program with one result.
        placement: Where it was written.
        bytes: How many bytes it takes.
        parameter_number: The number of the parameter that it is aliased with.
        parameter_index: Where in that parameter.
        reason: Why the input was copied, if it was.
    """

    output_index: ShapeIndex
    placement: Placement
    bytes: int
    parameter_number: int | None = None
    parameter_index: ShapeIndex = ()
    reason: str | None = None

    def __str__(self) -> str:
        place = f"output {format_index(self.output_index)}: {self.bytes} bytes"
        if self.parameter_number is None:
            return f"{place}, in memory of its own"
        number = f"parameter {self.parameter_number} {format_index(self.parameter_index)}"
        if self.placement == "in-place":
            return f"{place}, in place of {number}"
        return f"{place}, over a copy of {number}: {self.reason}"


@dataclass(frozen=True, slots=True)
class UnusableDonation:
    """An input that was given away, and that no output is written over.

    Attributes:
        parameter_number: The number of the parameter.
        parameter_index: Where in that parameter.
        bytes: How many bytes it takes.
    """

    parameter_number: int
    parameter_index: ShapeIndex
    bytes: int

    def __str__(self) -> str:
        number = f"parameter {self.parameter_number} {format_index(self.parameter_index)}"
        return f"{number} of {self.bytes} bytes was given away, and no output is aliased with it"


@dataclass(frozen=True, slots=True)
class RunReport:
    """What an execution did.

    Attributes:
        engine: What it ran on.
        why: Why on that one.
        outputs: What became of each output, tuples taken apart.
        unusable: What was given away for nothing.
    """

    engine: str
    why: str
    outputs: tuple[OutputReport, ...]
    unusable: tuple[UnusableDonation, ...] = ()

    @property
    def bytes_in_place(self) -> int:
        """How many bytes of outputs were written over inputs."""
        return sum(each.bytes for each in self.outputs if each.placement == "in-place")

    @property
    def bytes_copied(self) -> int:
        """How many bytes of inputs were copied to protect them."""
        return sum(each.bytes for each in self.outputs if each.placement == "copied")

    def __str__(self) -> str:
        return "\n".join([f"engine {self.engine}: {self.why}", *map(str, self.outputs), *map(str, self.unusable)])
