"""Enum attributes of VHLO, from ``dialect_specs/vhlo/enums.toml``."""

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
    name: str  # as printed: ``WEAKORDER``
    value: int  # the number in the bytecode
    min: Version  # may be later than that of its enum


@dataclass(frozen=True, slots=True)
class Enum:
    name: str  # with its version: ``comparison_type_v1``
    min: Version
    max: Version | None  # None while it is current
    cases: tuple[EnumCase, ...]  # by ascending value

    def case(self, name: str) -> EnumCase | None:
        return next((case for case in self.cases if case.name == name), None)

    def case_of(self, value: int) -> EnumCase | None:
        return next((case for case in self.cases if case.value == value), None)


def load_enums(specs: Traversable | None = None) -> tuple[Enum, ...]:
    return load_entries("vhlo/enums.toml", "enum", _to_enum, specs)


@cache
def known_enums() -> tuple[Enum, ...]:
    return load_enums()


def find_enum(name: str) -> Enum | None:
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
