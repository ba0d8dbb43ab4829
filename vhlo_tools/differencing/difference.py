"""Data class of a difference between two programs."""

from __future__ import annotations

from typing import Literal, get_args

from vhlo_tools.records import dataclass

DifferenceKind = Literal[
    "version",
    "module attribute",
    "function",
    "signature",
    "function attribute",
    "argument attribute",
    "result attribute",
    "alias",
    "donor",
    "constant",
    "op",
    "location",
]

#: The kinds, in the order in which they are shown.
DIFFERENCE_KINDS: tuple[DifferenceKind, ...] = get_args(DifferenceKind)


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between two programs.

    Attributes:
        kind: The kind of the difference.
        path: Its location: ``module``, ``@main argument 0 tf.aliasing_output``, or an op from its function inwards, as
            in ``@main/3:stablehlo.while/1/0:stablehlo.add``, followed by the part of it. Positions are those in the
            first program, or in the second for parts that only that has.
        before: The text for the first program; ``None`` if it lacks the part.
        after: The text for the second program; ``None`` if it lacks the part.
    """

    kind: DifferenceKind
    path: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        where = f"{self.kind}: {self.path}: " if self.path else f"{self.kind}: "
        if self.before is None:
            return f"{where}added {self.after}"
        if self.after is None:
            return f"{where}removed {self.before}"
        return f"{where}{self.before} -> {self.after}"


class Differences(list[Difference]):
    """A list of differences, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        # Imported here, as it is for notebooks alone.
        from vhlo_tools.markup import table

        rows = ((each.kind, each.path, each.before, each.after) for each in self)
        return table("differences", ("kind", "where", "before", "after"), rows) if self else "<p>no differences</p>"
