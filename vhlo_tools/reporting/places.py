"""Paths of files in reports: relative to a folder, and as URIs."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from urllib.parse import quote

from vhlo_tools.files import is_url

if TYPE_CHECKING:
    from vhlo_tools.findings import Finding


def path_from(folder: Path, path: str) -> str:
    """Return a path below ``folder`` as relative, another as absolute, and a URL unchanged."""
    if is_url(path):
        return path
    absolute = Path(os.path.abspath(folder / path))  # noqa: PTH100 - keeps links unresolved, as the user names them
    beneath = absolute.is_relative_to(folder)
    return (absolute.relative_to(folder) if beneath else absolute).as_posix()


def source_path(folder: Path, path: str, finding: Finding) -> str:
    """Return the file to report ``finding`` in: the user's source, or the program ``path`` if it is unknown."""
    return path_from(folder, finding.location.file if finding.location else path)


def as_uri(path: str) -> str:
    """Return a relative reference, or a ``file:`` URI if the path is absolute."""
    if is_url(path):
        scheme, _, rest = path.partition("://")
        return f"{scheme}://{quote(rest)}"
    return PurePath(path).as_uri() if PurePath(path).is_absolute() else quote(os.fsencode(path))
