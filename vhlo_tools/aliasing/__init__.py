"""Input-output aliasing: which outputs of a program may be written over which inputs.

One model, :class:`AliasConfig`, with the rules of XLA, and the spellings of it. No MLIR is needed.
"""

from vhlo_tools.aliasing.config import Alias, AliasConfig, AliasKind, Donor, Violation, violations
from vhlo_tools.aliasing.hlo_form import format_aliases, format_donors, parse_aliases, parse_donors
from vhlo_tools.aliasing.shapes import (
    Array,
    Opaque,
    Shape,
    ShapeIndex,
    Signature,
    Tuple,
    format_index,
    leaves,
    subshape,
)

__all__ = [
    "Alias",
    "AliasConfig",
    "AliasKind",
    "Array",
    "Donor",
    "Opaque",
    "Shape",
    "ShapeIndex",
    "Signature",
    "Tuple",
    "Violation",
    "format_aliases",
    "format_donors",
    "format_index",
    "leaves",
    "parse_aliases",
    "parse_donors",
    "subshape",
    "violations",
]
