"""Default values that steps between op versions set and compare with, from ``dialect_specs/vhlo/defaults.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from vhlo_tools.dialect.data import check_entry, load_entries
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

#: An attribute or a type as plain data, without MLIR: ``{"attribute": "type_v1", "type": {"type": "none_v1"}}``.
Structure = Mapping[str, Any]
#: Which values equal a default; the head of ``defaults.toml`` defines each.
Equality = Literal["same", "no_elements", "zero"]
#: How a default is computed from an op; the head of ``defaults.toml`` defines each.
Computation = Literal["no_padding"]


@dataclass(frozen=True, slots=True)
class Default:
    """A value that an upgrade sets and a downgrade compares with, or the other way round."""

    id: str
    text: str | None = None  # as VHLO text prints it; None if it is computed
    value: Structure | None = field(default=None, hash=False)  # for writers of bytes; None if it is computed
    equals: Equality = "same"  # the values that a downgrade accepts as equal
    computed: Computation | None = None  # how it is computed from the op; None if it is constant
    of: str | None = None  # the operand from which it is computed


def load_defaults(specs: Traversable | None = None) -> tuple[Default, ...]:
    return load_entries("vhlo/defaults.toml", "default", _to_default, specs)


@cache
def known_defaults() -> tuple[Default, ...]:
    return load_defaults()


@cache
def known_default(identifier: str) -> Default:
    return next(default for default in known_defaults() if default.id == identifier)


def _to_default(entry: dict[str, Any]) -> Default:
    equality, computation = frozenset(get_args(Equality)), frozenset(get_args(Computation))
    check_entry(entry, id=str, text=str, value=dict, equals=equality, computed=computation, of=str)
    given = entry.keys() - {"id", "equals"}
    if given != ({"computed", "of"} if "computed" in entry else {"text", "value"}):
        raise ValueError("expected text and value, or computed and of")
    default = Default(**entry)
    if default.value is not None and "attribute" not in default.value:
        raise ValueError("value is not an attribute: expected { attribute = ... }")
    return default
