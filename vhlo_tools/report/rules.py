"""What findings are about, as rules with help: from the features and explanations of ``dialect_specs/``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from vhlo_tools.dialect import Feature, explanation_of, known_features
from vhlo_tools.findings import Finding, Level

__all__ = ["Rule", "rule_of"]


@dataclass(frozen=True, slots=True)
class Rule:
    """What all findings of a feature have in common.

    Attributes:
        id: The id of the feature, which never changes.
        title: What it is, in a few words.
        text: What it is, in sentences.
        help: What to do about it.
        level: The level that such findings have by default.
        kind: What sort of thing it is.
        introduced: The version that brought it, if one did.
    """

    id: str
    title: str
    text: str
    help: str
    level: Level
    kind: str
    introduced: str | None = None

    @property
    def name(self) -> str:
        """The id in the spelling of names: ``DotAlgorithm``."""
        return "".join(word[:1].upper() + word[1:] for word in re.split(r"\W|_", self.id))


def rule_of(finding: Finding) -> Rule:
    """Return the rule that a finding is of."""
    feature = _features().get(finding.feature)
    if feature is not None:
        return _of_feature(feature)
    explanation = explanation_of(finding.feature)
    text = explanation.text if explanation else finding.message
    return Rule(
        finding.feature,
        text.partition(". ")[0].rstrip("."),
        text,
        finding.remedy or text,
        _level(explanation.level) if explanation else finding.level,
        finding.kind,
    )


def _of_feature(feature: Feature) -> Rule:
    said = [f"StableHLO {feature.introduced} brought {feature.title}: consumers of older versions cannot read it."]
    if feature.ops:
        said.append(f"It occurs on {', '.join(feature.ops)}.")
    todo = [f"{feature.remedy[:1].upper()}{feature.remedy[1:]}; or choose {feature.introduced} or later."]
    if feature.expansion:
        todo.append(f"The pass {feature.expansion} does so.")
    title = f"{feature.title[:1].upper()}{feature.title[1:]}"
    introduced = str(feature.introduced)
    return Rule(feature.id, title, " ".join(said), " ".join(todo), "error", feature.kind, introduced)


def _level(text: str) -> Level:
    levels: dict[str, Level] = {"error": "error", "warning": "warning", "note": "note"}
    return levels[text]


@cache
def _features() -> dict[str, Feature]:
    return {feature.id: feature for feature in known_features()}
