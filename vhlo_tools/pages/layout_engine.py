"""Library that lays the graph out in a page: elkjs, which is JavaScript made from Eclipse's ELK.

It is not part of the sources: ``scripts/page_assets.py`` fetches it, when a wheel or an environment is made. Without it
a page has everything but the picture of the graph.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Final

from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


@dataclass(frozen=True, slots=True)
class Library:
    name: str  # on npm
    version: str
    licence: str  # as SPDX names it
    source: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


ELK: Final = Library("elkjs", "0.12.1", "EPL-2.0", "https://github.com/kieler/elkjs")
_SCRIPT: Final = "elk-worker.min.js"


def _place() -> Traversable:
    return resources.files("vhlo_tools.pages").joinpath("elkjs", _SCRIPT)


def has_layout_engine() -> bool:
    """Without the library, pages have no picture of the graph."""
    return _place().is_file()


def layout_worker() -> bytes | None:
    """Return the script that a page runs as a worker; ``None`` if it was not fetched."""
    place = _place()
    return place.read_bytes() if place.is_file() else None
