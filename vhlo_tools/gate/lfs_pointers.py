"""Detect Git LFS pointer files, which stand in a checkout for contents that were not fetched."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from vhlo_tools.files import Buffer

#: Source: docs/spec.md of Git LFS, "The Pointer".
_POINTER: Final = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-.*\n)*oid sha256:([0-9a-f]{64})\n")
_LONGEST_POINTER: Final = 1024


def lfs_pointer(data: Buffer) -> str | None:
    """Return the SHA-256 that a pointer names; ``None`` for anything else."""
    if len(data) > _LONGEST_POINTER:
        return None
    match = _POINTER.match(bytes(data))
    return match[1].decode("ascii") if match else None
