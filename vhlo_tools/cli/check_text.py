"""Output of ``vhlo check --explain``: descriptions of features as text of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from vhlo_tools.compat import expansion_flag
from vhlo_tools.gate import wrapped
from vhlo_tools.spec import Explanation, Feature


def general(name: str, explained: Explanation) -> Iterator[str]:
    """Describe findings of an id that is not a feature of a version."""
    yield f"{name} ({explained.level})"
    yield from wrapped(explained.text, "  ")


def explanation(feature: Feature) -> Iterator[str]:
    yield f"{feature.id} ({feature.kind}), since StableHLO {feature.introduced}"
    yield from wrapped(feature.title, "  ")
    for label, names in (("on the ops", feature.ops), ("of VHLO", feature.names)):
        if names:
            yield from wrapped(f"{label}: {', '.join(names)}", "  ")
    yield from wrapped(f"For older consumers: {feature.remedy}.", "  ")
    if feature.inexpressible:
        yield from wrapped(f"It cannot be expanded: {feature.inexpressible}.", "  ")
    for each in feature.expansions:
        said = f"{expansion_flag(feature, each)} rewrites it, for consumers of {each.to} or later"
        said += f", and gives up {each.gives_up}" if each.gives_up else ""
        yield from wrapped(f"{said}. It does not apply to {each.limits}." if each.limits else f"{said}.", "  ")
