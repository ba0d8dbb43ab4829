"""Explanations of findings that concern no feature of a VHLO version, from ``dialect_specs/findings.toml``."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from vhlo_tools.dialect.data import check_entry, load_entries
from vhlo_tools.findings import Level
from vhlo_tools.records import dataclass


@dataclass(frozen=True, slots=True)
class Explanation:
    id: str  # a final ``*`` matches all ids with this prefix
    level: str  # the highest level of such a finding
    text: str


@cache
def known_explanations() -> tuple[Explanation, ...]:
    return tuple(sorted(load_entries("findings.toml", "finding", _to_explanation), key=lambda each: each.id))


def explanation_of(finding: str) -> Explanation | None:
    for each in known_explanations():
        if finding == each.id or (each.id.endswith("*") and finding.startswith(each.id[:-1])):
            return each
    return None


def _to_explanation(entry: dict[str, Any]) -> Explanation:
    check_entry(entry, id=str, level=frozenset(get_args(Level)), text=str)
    return Explanation(**entry)
