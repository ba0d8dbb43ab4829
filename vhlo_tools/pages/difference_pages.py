"""What the page for two programs shows: how they differ, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING

from vhlo_tools.artifact import outline_of
from vhlo_tools.printable import printable
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.artifact import Artifact
    from vhlo_tools.differencing import Difference


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """A difference.

    Attributes:
        kind: Its kind.
        path: Its place in the programs.
        before: The text of the first; ``None`` if it lacks the part.
        after: The text of the second; ``None`` if it lacks the part.
    """

    kind: str
    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class DifferenceContents:
    """All that a page says of how two programs differ.

    Attributes:
        name: Both names.
        today: The day for which the page was made.
        names: The name of each.
        lines: The lines that matter: what each is about, and what it says of either program.
        rows: The differences.
    """

    name: str
    today: str
    names: tuple[str, str]
    lines: tuple[tuple[str, str, str], ...]
    rows: tuple[DifferenceRow, ...]


def difference_contents(
    artifacts: tuple[Artifact, Artifact], differences: Iterable[Difference], *, names: tuple[str, str], today: date
) -> DifferenceContents:
    """Return what a page says of how two programs differ.

    Args:
        artifacts: The programs.
        differences: What :func:`vhlo_tools.diff` says of them.
        names: Their names.
        today: The day for which the page is made.

    Raises:
        MalformedArtifactError: If one of them is damaged.
    """
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
