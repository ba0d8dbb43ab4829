"""Report of the use of input memory by an execution."""

from __future__ import annotations

from typing import Literal

from vhlo_tools.aliasing import ShapeIndex, format_index
from vhlo_tools.records import dataclass

#: ``in-place``: over the input that the output is aliased with. ``copied``: over a copy that
#: protects the input. ``new``: the output has no alias.
Placement = Literal["in-place", "copied", "new"]


class DonationWarning(UserWarning):
    """A warning about a donated buffer that no output reuses."""


@dataclass(frozen=True, slots=True)
class OutputReport:
    """The placement of an output in memory.

    Attributes:
        output_index: The index in the result; ``()`` for a program with one result.
        placement: The memory that the output was written to.
        bytes: The size in bytes.
        parameter_number: The number of the parameter that the output is aliased with.
        parameter_index: The index in that parameter.
        reason: The reason for copying the input, if it was copied.
        moved: Whether an input that was overwritten was copied to the memory of the engine first. Its result is there,
            so that passing it on copies nothing.
    """

    output_index: ShapeIndex
    placement: Placement
    bytes: int
    parameter_number: int | None = None
    parameter_index: ShapeIndex = ()
    reason: str | None = None
    moved: bool = False

    def __str__(self) -> str:
        place = f"output {format_index(self.output_index)}: {self.bytes} bytes"
        if self.parameter_number is None:
            return f"{place}, in memory of its own"
        number = f"parameter {self.parameter_number} {format_index(self.parameter_index)}"
        if self.placement == "in-place":
            first = ", which was copied to XLA's memory first; from then on it is in place" if self.moved else ""
            return f"{place}, in place of {number}{first}"
        return f"{place}, over a copy of {number}: {self.reason}"


@dataclass(frozen=True, slots=True)
class UnusableDonation:
    """A donated input that no output overwrites.

    Attributes:
        parameter_number: The number of the parameter.
        parameter_index: The index in that parameter.
        bytes: The size in bytes.
    """

    parameter_number: int
    parameter_index: ShapeIndex
    bytes: int

    def __str__(self) -> str:
        number = f"parameter {self.parameter_number} {format_index(self.parameter_index)}"
        return f"{number} of {self.bytes} bytes was donated, and no output is aliased with it"


@dataclass(frozen=True, slots=True)
class RunReport:
    """The report of an execution.

    Attributes:
        engine: The engine that ran the program.
        why: The reason for the choice of that engine.
        outputs: The placement of each output; the elements of tuples are listed separately.
        unusable: The donated inputs that no output overwrites.
        notes: Where the program was not run as StableHLO specifies, but as XLA runs it.
    """

    engine: str
    why: str
    outputs: tuple[OutputReport, ...]
    unusable: tuple[UnusableDonation, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def bytes_in_place(self) -> int:
        """The number of bytes of outputs that were written over inputs."""
        return sum(each.bytes for each in self.outputs if each.placement == "in-place")

    @property
    def bytes_moved(self) -> int:
        """The number of bytes of overwritten inputs that were copied to the memory of the engine first."""
        return sum(each.bytes for each in self.outputs if each.moved)

    @property
    def bytes_copied(self) -> int:
        """The number of bytes of inputs that were copied to protect them."""
        return sum(each.bytes for each in self.outputs if each.placement == "copied")

    def __str__(self) -> str:
        lines = [f"engine {self.engine}: {self.why}", *map(str, self.outputs), *map(str, self.unusable), *self.notes]
        return "\n".join(lines)
