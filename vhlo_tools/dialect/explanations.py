"""What findings are about that are no features of a version of VHLO, by ``dialect_specs/findings.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from vhlo_tools.dialect.data import check_entry, load_entries

__all__ = ["Explanation", "explanation_of", "known_explanations"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What findings of an id are about.

    Attributes:
        id: The id; with a final ``*`` all ids that begin so.
        level: The highest level that such a finding has.
        text: What it says, in general.
    """

    id: str
    level: str
    text: str


@cache
def known_explanations() -> tuple[Explanation, ...]:
    """Return all of them, sorted by id."""
    return tuple(sorted(load_entries("findings.toml", "finding", _to_explanation), key=lambda each: each.id))


def explanation_of(finding: str) -> Explanation | None:
    """Return what findings of the id ``finding`` are about; ``None`` if that is not known."""
    for each in known_explanations():
        if finding == each.id or (each.id.endswith("*") and finding.startswith(each.id[:-1])):
            return each
    return None


def _to_explanation(entry: dict[str, Any]) -> Explanation:
    check_entry(entry, id=str, level=str, text=str)
    return Explanation(**entry)
