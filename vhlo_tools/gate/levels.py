"""Levels of features: denied, warned of, or allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Literal, get_args

from vhlo_tools.findings import FindingKind
from vhlo_tools.spec import known_explanations, known_features

if TYPE_CHECKING:
    from vhlo_tools.findings import Finding, Level

LevelSetting = Literal["deny", "warn", "allow"]
LEVELS: Final[tuple[LevelSetting, ...]] = get_args(LevelSetting)

#: Levels by ids of features, globs of ids, or kinds. An id takes precedence over a glob, a longer glob over a shorter
#: one, and all of these over a kind; of two globs of the same length, the stricter level applies.
Levels = Mapping[str, LevelSetting]

#: The kinds of findings, which are names of levels too.
KINDS: Final = get_args(FindingKind)
_AS_LEVEL: Final[Mapping[LevelSetting, Level]] = {"deny": "error", "warn": "warning"}
#: The characters that make a name a glob.
WILD: Final = "*?["


def level_of(finding: Finding, layers: Sequence[Levels]) -> LevelSetting | None:
    """Later layers win; ``None`` if no layer sets a level."""
    for levels in reversed(layers):
        globs = [name for name in levels if _is_glob(name) and fnmatchcase(finding.feature, name)]
        globs.sort(key=lambda name: (-len(name), LEVELS.index(levels[name])))
        for name in (finding.feature, *globs, finding.kind):
            if name in levels:
                return levels[name]
    return None


def apply_levels(findings: Sequence[Finding], layers: Sequence[Levels]) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that are not allowed, with their levels, and those that are allowed."""
    left, allowed = [], []
    for finding in findings:
        setting = level_of(finding, layers)
        if setting == "allow":
            allowed.append(finding)
        else:
            left.append(replace(finding, level=_AS_LEVEL[setting]) if setting else finding)
    return left, allowed


def problem_with(name: str) -> str | None:
    """Return the error in ``name`` as the key of a level; ``None`` if it is valid."""
    if name in KINDS:
        return None
    ids = [feature.id for feature in known_features()] + [explanation.id for explanation in known_explanations()]
    if _is_glob(name):
        if any(fnmatchcase(each.rstrip("*"), name) or _may_begin(name, each) for each in ids):
            return None
        return f"{name!r} matches no feature: `vhlo spec list` shows them"
    if any(name == each or (each.endswith("*") and name.startswith(each[:-1])) for each in ids):
        return None
    # Imported here because few names are misspelt.
    from difflib import get_close_matches

    near = get_close_matches(name, [*ids, *KINDS], n=3) or [each for each in ids if name.lower() in each.lower()]
    hint = f"did you mean {' or '.join(near)}?" if near else "`vhlo spec list` shows them"
    return f"{name!r} is not a feature, a glob of features or a kind ({', '.join(KINDS)}): {hint}"


def _is_glob(name: str) -> bool:
    return any(sign in name for sign in WILD)


def _may_begin(pattern: str, known: str) -> bool:
    """Whether a glob matches some of the ids that ``known`` stands for, such as ``withdrawn_*``."""
    return known.endswith("*") and pattern.startswith(known[:-1])
