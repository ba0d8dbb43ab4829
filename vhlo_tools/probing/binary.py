"""VHLO mnemonics found in the shared library: ops, types and attributes among other names."""

from __future__ import annotations

import mmap
import re
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(rb"\bvhlo\.([A-Za-z][A-Za-z0-9_-]*_v[1-9][0-9]*)")


def names_in(folder: Path) -> frozenset[str]:
    """Return every name with a version behind ``vhlo.``."""
    names: set[str] = set()
    for file in sorted(folder.rglob("*.so*")):
        if file.stat().st_size:
            with file.open("rb") as binary, mmap.mmap(binary.fileno(), 0, access=mmap.ACCESS_READ) as data:
                names.update(match[1].decode("ascii") for match in _NAME.finditer(data))
    return frozenset(names)
