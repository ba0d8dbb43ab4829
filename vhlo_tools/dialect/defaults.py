"""The values that steps between op versions set and look for, from ``dialect_specs/vhlo/defaults.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources.abc import Traversable
from typing import Any, Literal, get_args

from vhlo_tools.dialect.data import check_entry, load_entries

__all__ = ["Computation", "Default", "Equality", "Structure", "known_default", "known_defaults", "load_defaults"]

#: An attribute or a type without MLIR: ``{"attribute": "type_v1", "type": {"type": "none_v1"}}``.
Structure = Mapping[str, Any]
#: What counts as a default; the head of ``defaults.toml`` has the meaning of each.
Equality = Literal["same", "no_elements", "zero"]
#: How a default is made out of an op; again in the head of ``defaults.toml``.
Computation = Literal["no_padding"]


@dataclass(frozen=True, slots=True)
class Default:
    """A value that an upgrade sets and a downgrade looks for, or the other way round.

    Attributes:
        id: A stable name.
        text: The value as VHLO text prints it; ``None`` if it is computed.
        value: The same as a structure, from which a writer of bytes builds it; ``None`` if it is computed.
        equals: What a downgrade takes for it.
        computed: How it is made out of the op; ``None`` if it is always the same.
        of: The operand that it is computed of.
    """

    id: str
    text: str | None = None
    value: Structure | None = field(default=None, hash=False)
    equals: Equality = "same"
    computed: Computation | None = None
    of: str | None = None


def load_defaults(specs: Traversable | None = None) -> tuple[Default, ...]:
    """Return the defaults of the folder ``specs``, by default of ours."""
    return load_entries("vhlo/defaults.toml", "default", _to_default, specs)


@cache
def known_defaults() -> tuple[Default, ...]:
    """Return every default, by id."""
    return load_defaults()


@cache
def known_default(identifier: str) -> Default:
    """Return the default called ``identifier``, which must be there."""
    return next(default for default in known_defaults() if default.id == identifier)


def _to_default(entry: dict[str, Any]) -> Default:
    check_entry(entry, id=str, text=str, value=dict, equals=str, computed=str, of=str)
    default = Default(**entry)
    if (default.value is None) == (default.computed is None):
        raise ValueError("expected either a value or how it is computed")
    if default.equals not in get_args(Equality) or (default.computed and default.computed not in get_args(Computation)):
        raise ValueError("equals or computed is none of those that are defined")
    return default
