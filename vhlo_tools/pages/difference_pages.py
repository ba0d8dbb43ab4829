"""Contents of the page for two programs: their differences, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING

from vhlo_tools.artifact import outline_of
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.artifact import Artifact, Difference


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    kind: str
    path: str
    before: str | None  # None if the first program lacks the part
    after: str | None  # None if the second program lacks the part


@dataclass(frozen=True, slots=True)
class DifferenceContents:
    name: str  # both names
    today: str  # the day for which the page was made
    names: tuple[str, str]
    lines: tuple[tuple[str, str, str], ...]  # topic, text for the first program, text for the second
    rows: tuple[DifferenceRow, ...]


def difference_contents(
    artifacts: tuple[Artifact, Artifact], differences: Iterable[Difference], *, names: tuple[str, str], today: date
) -> DifferenceContents:
    one, other = (outline_of(each) for each in artifacts)
    shown = (printable(names[0]), printable(names[1]))
    return DifferenceContents(
        name=" and ".join(shown),
        today=str(today),
        names=shown,
        lines=tuple(
            (what, printable(said), printable(of_other)) for (what, said), (_, of_other) in zip(one, other, strict=True)
        ),
        rows=tuple(
            DifferenceRow(
                each.kind,
                printable(each.path),
                None if each.before is None else printable(each.before),
                None if each.after is None else printable(each.after),
            )
            for each in differences
        ),
    )
