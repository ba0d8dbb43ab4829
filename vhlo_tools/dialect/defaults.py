"""The default values that steps between op versions set and compare with, from ``dialect_specs/vhlo/defaults.toml``."""

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
    """A value that an upgrade sets and a downgrade compares with, or the other way round.

    Attributes:
        id: A stable name.
        text: The value as VHLO text prints it; ``None`` if it is computed.
        value: The value as a structure, from which a writer of bytes builds it; ``None`` if it is computed.
        equals: Which values a downgrade accepts as equal to it.
        computed: How it is computed from the op; ``None`` if it is constant.
        of: The operand from which it is computed.
    """

    id: str
    text: str | None = None
    value: Structure | None = field(default=None, hash=False)
    equals: Equality = "same"
    computed: Computation | None = None
    of: str | None = None


def load_defaults(specs: Traversable | None = None) -> tuple[Default, ...]:
    """Return the defaults of the folder ``specs``; by default, of ``dialect_specs/``."""
    return load_entries("vhlo/defaults.toml", "default", _to_default, specs)


@cache
def known_defaults() -> tuple[Default, ...]:
    """Return all defaults."""
    return load_defaults()


@cache
def known_default(identifier: str) -> Default:
    """Return the default with the id ``identifier``, which must exist."""
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
