"""The element types f8E4M3FNUZ and f8E5M2FNUZ, introduced in 0.10.0, held in wider floats.

Source: :mod:`vhlo_tools.expansion.narrow_floats`.
"""

from __future__ import annotations

from typing import Final

from vhlo_tools.expansion.narrow_floats import exactly, relaxed

_TYPES: Final = ("f8E4M3FNUZ", "f8E5M2FNUZ")

EXACT: Final = exactly(*_TYPES)
RELAXED: Final = relaxed(*_TYPES)
