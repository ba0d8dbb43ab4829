"""Which attributes ops know by name, so that these have a form in VHLO."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from vhlo_tools.bindings import class_of
from vhlo_tools.dialect import find_op

__all__ = ["PORTABLE", "is_inherent"]

#: Ops of other dialects keep their attributes as they are.
PORTABLE: Final = ("func", "stablehlo")


def is_inherent(short: str, name: str, attribute: Any) -> bool:
    """Tell whether an op knows an attribute, so that it has a form whatever it holds."""
    kind = class_of(attribute)
    if name in _names_of(short):
        # The bindings have no class for resources; what has one may be a large constant, and is not printed.
        return kind != "DictAttr" and not (kind == "Attribute" and str(attribute).startswith("dense_resource<"))
    # What is one attribute in StableHLO, such as the dimension numbers of a dot, may be several in VHLO.
    return "." not in name and str(attribute).startswith("#stablehlo")


@cache
def _names_of(short: str) -> frozenset[str]:
    """Return the names of the attributes that an op of VHLO has by its definition in any version."""
    op = find_op(short)
    return frozenset(name for version in op.versions for name in version.attributes) if op else frozenset()
