"""The element types of microscaling formats, introduced in 1.8.0, held in wider floats.

Source: :mod:`vhlo_tools.expansion.narrow_floats`.
"""

from __future__ import annotations

from typing import Final

from vhlo_tools.expansion.narrow_floats import exactly, relaxed

_TYPES: Final = ("f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E8M0FNU")

EXACT: Final = exactly(*_TYPES)
RELAXED: Final = relaxed(*_TYPES)
