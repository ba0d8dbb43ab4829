"""What features are, for ``vhlo check --explain``, as text that reads well in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from vhlo_tools.dialect import Explanation, Feature
from vhlo_tools.report import wrapped

__all__ = ["explanation", "general"]


def general(name: str, explained: Explanation) -> Iterator[str]:
    """Yield what findings of an id are about that is no feature of a version, as lines."""
    yield f"{name} ({explained.level})"
    yield from wrapped(explained.text, "  ")


def explanation(feature: Feature) -> Iterator[str]:
    """Yield what a feature is, as lines."""
    yield f"{feature.id} ({feature.kind}), since StableHLO {feature.introduced}"
    yield from wrapped(feature.title, "  ")
    for label, names in (("on the ops", feature.ops), ("of VHLO", feature.names)):
        if names:
            yield from wrapped(f"{label}: {', '.join(names)}", "  ")
    yield from wrapped(f"For older consumers: {feature.remedy}.", "  ")
    if feature.expansion:
        yield from wrapped(f"The pass {feature.expansion} does so.", "  ")
