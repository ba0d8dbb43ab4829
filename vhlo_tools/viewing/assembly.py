"""Assembly of a page: one file of HTML with its styles, scripts and data."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from dataclasses import fields
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal

from vhlo_tools.files import place, write_atomically
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from os import PathLike

    from vhlo_tools.viewing.programs import DifferenceContents, ProgramContents
    from vhlo_tools.viewing.store_pages import StoreContents

# Library that lays the graph out in a page: elkjs, which is JavaScript made from Eclipse's ELK
#
# It is not part of the sources: ``scripts/page_assets.py`` fetches it, when a wheel or an environment is made. Without
# it a page has everything but the picture of the graph.


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


def layout_worker() -> bytes | None:
    """Return the script that a page runs as a worker; without it, if it was not fetched, pages have no picture."""
    place = resources.files("vhlo_tools.viewing").joinpath("elkjs", _SCRIPT)
    return place.read_bytes() if place.is_file() else None


# Assemble a page of one file: markup, style, scripts and data, with a policy that forbids any other request
#
# The scripts are modules, which stand in one element after the other's exports and imports are taken away: they have no
# names in common. The data are JSON, compressed, as text in an element that no browser runs. Nothing of a program is
# markup: scripts put it into the page as text alone, and the policy forbids to run anything but the page's own scripts.

PageKind = Literal["program", "store", "difference"]

_FRAME: Final = ("elements", "contents", "theme", "frame")
#: The scripts of each kind of page; each needs only those before it.
_SCRIPTS: Final[dict[PageKind, tuple[str, ...]]] = {
    "program": (
        *(*_FRAME, "folding", "layout", "picture"),
        *("tree", "details", "explorer", "timeline", "tables", "program"),
    ),
    "store": (*_FRAME, "store"),
    "difference": (*_FRAME, "difference"),
}
_IMPORT: Final = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?function|const|class|let)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Attributes:
        html: Its text.
        has_picture: Whether it can draw what it has to: a graph needs the library that lays it out.
    """

    html: str
    has_picture: bool

    def __bytes__(self) -> bytes:
        return self.html.encode("utf-8")

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write it to a file, atomically.

        Args:
            path: The file, or a URL.
            force: Whether to replace what is there.

        Raises:
            FileExistsError: If there is a file, and ``force`` is not given.
            OSError: If it cannot be written.
        """
        write_atomically(place(path), [bytes(self)], force=force)


def assembled(kind: PageKind, contents: ProgramContents | StoreContents | DifferenceContents) -> Page:
    # The modules as one.
    sources = (_read(f"{name}.js") for name in _SCRIPTS[kind])
    script = "\n".join(_EXPORT.sub("", _IMPORT.sub("", source)) for source in sources)
    style = _read("page.css")
    # Only graphs are laid out.
    worker = _packed_engine() if kind == "program" else ""
    data = json.dumps(contents, default=_fields, separators=(",", ":"), ensure_ascii=False)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; worker-src blob:; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "title": html.escape(contents.name),
        "style": style,
        "script": script,
        "data": _packed(data.encode("utf-8", "backslashreplace")),
        "layout": worker,
        "notice": f"{ELK} lays out the graph: {ELK.licence}, {ELK.source}" if worker else "",
    }
    template = _read("page.html")
    return Page(re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template), kind != "program" or bool(worker))


@cache
def _packed_engine() -> str:
    """Return the library that lays out graphs, packed; empty if it was not fetched."""
    worker = layout_worker()
    return _packed(worker) if worker else ""


def _fields(record: Any) -> dict[str, Any]:
    """Convert a dataclass for JSON; `asdict` would copy a million numbers one by one."""
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _read(name: str) -> str:
    return resources.files("vhlo_tools.viewing").joinpath("web", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _packed(data: bytes) -> str:
    # Without a time, so that the same program gives the same page.
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()
