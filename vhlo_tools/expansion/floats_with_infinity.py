"""The element types f8E4M3 and f8E3M4, introduced in 1.7.0, held in wider floats.

Source: :mod:`vhlo_tools.expansion.narrow_floats`.
"""

from __future__ import annotations

from typing import Final

from vhlo_tools.expansion.narrow_floats import exactly, relaxed

_TYPES: Final = ("f8E4M3", "f8E3M4")

EXACT: Final = exactly(*_TYPES)
RELAXED: Final = relaxed(*_TYPES)
