"""The element type f8E4M3B11FNUZ, introduced in 0.11.0, held in wider floats.

Source: :mod:`vhlo_tools.expansion.narrow_floats`.
"""

from __future__ import annotations

from typing import Final

from vhlo_tools.expansion.narrow_floats import exactly, relaxed

_TYPES: Final = ("f8E4M3B11FNUZ",)

EXACT: Final = exactly(*_TYPES)
RELAXED: Final = relaxed(*_TYPES)
