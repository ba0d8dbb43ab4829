"""A copy of a folder of specifications, to be damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

__all__ = ["OURS", "copy_of", "edit", "remove_table"]

OURS = Path(__file__).resolve().parent.parent / "dialect_specs"


def copy_of(specs: Path, folder: Path) -> Path:
    """Return a copy of ``specs`` in ``folder``."""
    return shutil.copytree(specs, folder / "specs")


def edit(file: Path, after: str, old: str, new: str) -> None:
    """Replace the first ``old`` behind ``after`` in a file by ``new``."""
    text = file.read_text()
    start = text.index(old, text.index(after) + len(after)) if after else text.index(old)
    file.write_text(text[:start] + new + text[start + len(old) :])


def remove_table(file: Path, after: str, header: str) -> None:
    """Remove the first table with ``header`` behind ``after``, up to the next blank line."""
    text = file.read_text()
    start = text.index(header, text.index(after) + len(after)) if after else text.index(header)
    end = text.find("\n\n", start)
    file.write_text(text[:start].rstrip() + "\n" + (text[end:] if end >= 0 else ""))
