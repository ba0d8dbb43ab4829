"""Explanations of findings that concern no feature of a VHLO version, from ``dialect_specs/findings.toml``."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from vhlo_tools.dialect.data import check_entry, load_entries
from vhlo_tools.findings import Level
from vhlo_tools.records import dataclass


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of the findings with an id.

    Attributes:
        id: The id; a final ``*`` matches all ids with this prefix.
        level: The highest level of such a finding.
        text: The general explanation.
    """

    id: str
    level: str
    text: str


@cache
def known_explanations() -> tuple[Explanation, ...]:
    """Return all explanations, sorted by id."""
    return tuple(sorted(load_entries("findings.toml", "finding", _to_explanation), key=lambda each: each.id))


def explanation_of(finding: str) -> Explanation | None:
    """Return the explanation of the findings with the id ``finding``; ``None`` if there is none."""
    for each in known_explanations():
        if finding == each.id or (each.id.endswith("*") and finding.startswith(each.id[:-1])):
            return each
    return None


def _to_explanation(entry: dict[str, Any]) -> Explanation:
    check_entry(entry, id=str, level=frozenset(get_args(Level)), text=str)
    return Explanation(**entry)
