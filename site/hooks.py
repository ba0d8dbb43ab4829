"""What the site has beside the pages in ``docs/``: mkdocs calls these functions by their names.

Pages are generated from the code, the data and the files that pages link to; links to files of the repository become
links to their pages; drawings are put into their pages, so that they take its colours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from api_pages import api_pages, navigation as api_navigation
from command_pages import command_pages, navigation as command_navigation
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page as SitePage
from repository_pages import DOCS, repository_pages, rewrite_links
from specification_pages import navigation as specification_navigation, specification_pages

from vhlo_tools.spec import known_specification

__all__ = ["on_config", "on_files", "on_page_content", "on_page_markdown", "on_post_page"]

ASSETS: Final = Path(__file__).resolve().parent / "assets"
#: What stands in the navigation for a list of generated pages.
_GENERATED: Final[Mapping[str, Callable[[], list[Any]]]] = {
    "COMMANDS": command_navigation,
    "PYTHON": api_navigation,
    "SPECIFICATION": lambda: specification_navigation(known_specification()),
}
_SEARCH: Final = 'data-md-component="search" role="dialog"'
_CELL: Final = re.compile(r"<td\b.*?</td>", re.DOTALL)
_DRAWING: Final = re.compile(r'<img alt="[^"]*" src="(?P<path>[^"]*/)?(?P<name>drawing-[a-z-]+\.svg)"\s*/?>')
_IN_THE_LIGHT: Final = re.compile(r'<img [^>]*src="[^"]*/(?P<name>[a-z-]+)-light\.png"[^>]*>')


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the lists of generated pages into the navigation, in place of their names."""
    config.nav = _filled(config.nav)
    return config


def _filled(entry: Any) -> Any:
    match entry:
        case str():
            return _GENERATED[entry]() if entry in _GENERATED else entry
        case list():
            return [_filled(each) for each in entry]
        case dict():
            return {key: _filled(value) for key, value in entry.items()}
    return entry


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and the assets."""
    pages = repository_pages(sorted(DOCS.rglob("*.md")))
    pages += [*command_pages(), *api_pages(), *specification_pages(known_specification())]
    for page in pages:
        files.append(File.generated(config, page.uri, content=page.text))
    for asset in sorted(ASSETS.iterdir()):
        files.append(File.generated(config, f"assets/{asset.name}", abs_src_path=str(asset)))
    return files


def on_page_markdown(markdown: str, page: SitePage, config: MkDocsConfig, files: Files) -> str:
    """Let links to files of the repository lead to their pages."""
    return rewrite_links(markdown, page.file.src_uri)


def on_page_content(html: str, page: SitePage, config: MkDocsConfig, files: Files) -> str:
    """Put the drawings themselves in place of images of them, and show bars in the code of tables as GitHub does.

    An image takes no colours from its page: of one taken in light and in dark, each is shown where it belongs. A bar in
    a cell is escaped for GitHub, even within code.
    """
    drawn = _DRAWING.sub(lambda found: (DOCS / "pictures" / found["name"]).read_text(encoding="utf-8"), html)
    drawn = _IN_THE_LIGHT.sub(_in_both, drawn)
    return _CELL.sub(lambda found: found[0].replace("\\|", "|"), drawn)


def _in_both(found: re.Match[str]) -> str:
    dark = f"{found['name']}-dark.png"
    if not (DOCS / "images" / dark).exists():
        return found[0]
    light = found[0].replace("-light.png", "-light.png#only-light")
    return light + found[0].replace("-light.png", "-dark.png#only-dark")


def on_post_page(output: str, page: SitePage, config: MkDocsConfig) -> str:
    """Name the dialog of the search, for those who hear the page."""
    return output.replace(_SEARCH, f'{_SEARCH} aria-label="Search"')
