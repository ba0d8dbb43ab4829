"""SARIF rules with help for findings, from the features and explanations of ``dialect_specs/``."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from vhlo_tools.compat import expansion_flag
from vhlo_tools.records import dataclass
from vhlo_tools.spec import explanation_of, known_features

if TYPE_CHECKING:
    from vhlo_tools.findings import Finding, Level
    from vhlo_tools.spec import Feature


@dataclass(frozen=True, slots=True)
class SarifRule:
    """The properties common to all findings of a feature."""

    id: str  # of the feature, which never changes
    title: str
    text: str  # description in sentences
    help: str  # the remedy
    level: Level
    kind: str
    introduced: str | None = None  # version, if one introduced the feature

    @property
    def name(self) -> str:
        """The id in camel case: ``DotAlgorithm``."""
        return "".join(word[:1].upper() + word[1:] for word in re.split(r"\W|_", self.id))


def title_of(finding: Finding) -> str:
    """Return a short description of what a finding is about, as part of a sentence."""
    feature = _features().get(finding.feature)
    return feature.title if feature else rule_of(finding).title


def rule_of(finding: Finding) -> SarifRule:
    feature = _features().get(finding.feature)
    if feature is not None:
        return _of_feature(feature)
    explanation = explanation_of(finding.feature)
    text = explanation.text if explanation else finding.message
    return SarifRule(
        finding.feature,
        text.partition(". ")[0].rstrip("."),
        text,
        finding.remedy or text,
        _level(explanation.level) if explanation else finding.level,
        finding.kind,
    )


def _of_feature(feature: Feature) -> SarifRule:
    said = [f"StableHLO {feature.introduced} introduced {feature.title}: consumers of older versions cannot read it."]
    if feature.ops:
        said.append(f"It occurs on {', '.join(feature.ops)}.")
    todo = [f"{feature.remedy[:1].upper()}{feature.remedy[1:]}; or choose {feature.introduced} or later."]
    todo += [f"{expansion_flag(feature, each)} rewrites it where it can." for each in feature.expansions]
    title = f"{feature.title[:1].upper()}{feature.title[1:]}"
    introduced = str(feature.introduced)
    return SarifRule(feature.id, title, " ".join(said), " ".join(todo), "error", feature.kind, introduced)


def _level(text: str) -> Level:
    levels: dict[str, Level] = {"error": "error", "warning": "warning", "note": "note"}
    return levels[text]


@cache
def _features() -> dict[str, Feature]:
    return {feature.id: feature for feature in known_features()}
