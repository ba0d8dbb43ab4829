"""Plan for adding a new version: edits of files, and remaining manual work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.dialect.scaffold.document import Edit
    from vhlo_tools.version import Version


@dataclass(frozen=True, slots=True)
class Remaining:
    path: Path
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class Plan:
    version: Version
    edits: tuple[Edit, ...]
    remaining: tuple[Remaining, ...]
