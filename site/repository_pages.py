"""Pages of what stands outside the folder of pages and is linked from there: sources, data, examples.

A site that is read from disk has no repository beside it. What its pages link to becomes pages too: Markdown as it is
rendered, other text with its syntax highlighted, and folders as lists of what is in them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from posixpath import relpath
from typing import Final

from pages import UNSEARCHED, Page, fence

__all__ = ["links_of", "place_of", "repository_pages", "rewrite_links", "uri_of"]

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
#: Below which the pages of what is outside stand.
SOURCE: Final = "source"
_LINK: Final = re.compile(r"(?P<before>\]\()(?P<path>[^()\s#:]+)(?P<anchor>#[^()\s]*)?(?=\))")
_LANGUAGES: Final[Mapping[str, str]] = {
    ".json": "json",
    ".py": "python",
    ".sh": "sh",
    ".toml": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
}


def uri_of(path: Path) -> str:
    """Return where the page of a file or a folder of the repository stands, from the folder of pages."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    place = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        return f"{SOURCE}/{place}/README.md"
    return f"{SOURCE}/{place}" if path.suffix == ".md" else f"{SOURCE}/{place}.md"


def place_of(uri: str) -> Path:
    """Return the file in whose folder the links of a page begin."""
    return ROOT / uri.removeprefix(f"{SOURCE}/") if uri.startswith(f"{SOURCE}/") else DOCS / uri


def links_of(text: str, place: Path) -> Iterator[Path]:
    """Yield what a page links to in the repository, as far as it is there."""
    for found in _LINK.finditer(text):
        path = Path(os.path.normpath(place.parent / found["path"]))
        if path.is_relative_to(ROOT) and path.exists():
            yield path


def rewrite_links(text: str, uri: str) -> str:
    """Return the text of a page whose links lead to pages of the site instead of files of the repository."""
    place = place_of(uri)

    def rewritten(found: re.Match[str]) -> str:
        path = Path(os.path.normpath(place.parent / found["path"]))
        if not path.is_relative_to(ROOT) or not path.exists():
            return found[0]
        return f"{found['before']}{relpath(uri_of(path), str(Path(uri).parent))}{found['anchor'] or ''}"

    return _LINK.sub(rewritten, text)


def repository_pages(places: Iterable[Path]) -> list[Page]:
    """Return the pages of all that is linked from pages, and from these in turn, but not of the folder of pages.

    Args:
        places: Files of Markdown, from which the links are followed.
    """
    made: dict[str, Page] = {}
    pending = list(places)
    while pending:
        place = pending.pop()
        for path in links_of(place.read_text(encoding="utf-8"), place):
            uri = uri_of(path)
            if path.is_relative_to(DOCS) or uri in made:
                continue
            pages = [path / "README.md"] if path.is_dir() else [path]
            if path.suffix == ".md" or (pages[0].name == "README.md" and pages[0].exists()):
                made[uri] = Page(uri, pages[0].read_text(encoding="utf-8"))
                pending += pages
            else:
                made |= {page.uri: page for page in (_of_folder(path) if path.is_dir() else [_of_file(path)])}
    return list(made.values())


def _of_file(path: Path) -> Page:
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    language = _LANGUAGES.get(path.suffix, "sh" if text.startswith("#!/") else "text")
    return Page(uri_of(path), f"{UNSEARCHED}\n# `{name}`\n\n{fence(language, text)}")


def _of_folder(folder: Path) -> Iterator[Page]:
    """Yield the pages of a folder and of all text in it."""
    name = folder.relative_to(ROOT).as_posix()
    inside = [path for path in sorted(folder.iterdir()) if not path.name.startswith(("_", "."))]
    lines = [UNSEARCHED, f"# `{name}/`", ""]
    for path in inside:
        lines.append(f"- [`{path.name}`]({path.name}{'/' if path.is_dir() else ''})")
        if path.is_dir():
            yield from _of_folder(path)
        elif path.suffix == ".md":
            yield Page(uri_of(path), path.read_text(encoding="utf-8"))
        else:
            yield _of_file(path)
    yield Page(uri_of(folder), "\n".join([*lines, ""]))
