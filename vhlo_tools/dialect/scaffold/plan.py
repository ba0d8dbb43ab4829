"""The plan for adding a new version: edits of files, and remaining manual work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.dialect.scaffold.document import Edit
    from vhlo_tools.version import Version


@dataclass(frozen=True, slots=True)
class Remaining:
    """A task that remains to be done by hand.

    Attributes:
        path: The file concerned.
        line: The line in the file.
        what: The task.
    """

    path: Path
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan for adding a new version.

    Attributes:
        version: The version.
        edits: The files to write.
        remaining: The tasks that remain once the files are written.
    """

    version: Version
    edits: tuple[Edit, ...]
    remaining: tuple[Remaining, ...]
