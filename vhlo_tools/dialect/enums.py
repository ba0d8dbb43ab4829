"""The enum attributes of VHLO, from ``dialect_specs/vhlo/enums.toml``."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from vhlo_tools.dialect.data import COUNTED, check_entry, load_entries
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


@dataclass(frozen=True, slots=True)
class EnumCase:
    """A case of an enum attribute.

    Attributes:
        name: Its name as printed: ``WEAKORDER``.
        value: Its number in the bytecode.
        min: The first version that has it, which may be later than that of its enum.
    """

    name: str
    value: int
    min: Version


@dataclass(frozen=True, slots=True)
class Enum:
    """An enum attribute.

    Attributes:
        name: Its name, with its version: ``comparison_type_v1``.
        min: The first version of VHLO that has it.
        max: The last version that has it; ``None`` while it is current.
        cases: Its cases, by ascending value.
    """

    name: str
    min: Version
    max: Version | None
    cases: tuple[EnumCase, ...]

    def case(self, name: str) -> EnumCase | None:
        """Return the case called ``name``, or ``None``."""
        return next((case for case in self.cases if case.name == name), None)

    def case_of(self, value: int) -> EnumCase | None:
        """Return the case with the number ``value``, or ``None``."""
        return next((case for case in self.cases if case.value == value), None)


def load_enums(specs: Traversable | None = None) -> tuple[Enum, ...]:
    """Return the enums of the folder ``specs``; by default, of ``dialect_specs/``."""
    return load_entries("vhlo/enums.toml", "enum", _to_enum, specs)


@cache
def known_enums() -> tuple[Enum, ...]:
    """Return all enums."""
    return load_enums()


def find_enum(name: str) -> Enum | None:
    """Return the enum called ``name``, such as ``comparison_type_v1``, or ``None`` if it is unknown."""
    return _by_name().get(name)


@cache
def _by_name() -> dict[str, Enum]:
    return {enum.name: enum for enum in known_enums()}


def _to_enum(entry: dict[str, Any]) -> Enum:
    check_entry(entry, name=str, min=str, max=str, cases=[dict])
    if not entry["cases"]:
        raise ValueError("it has no case")
    for case in entry["cases"]:
        check_entry(case, name=str, value=COUNTED, min=str)
    cases = (EnumCase(case["name"], case["value"], Version(case.get("min", entry["min"]))) for case in entry["cases"])
    return Enum(entry["name"], Version(entry["min"]), Version(entry["max"]) if "max" in entry else None, tuple(cases))
