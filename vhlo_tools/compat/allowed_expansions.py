"""Expansions that a caller allows, by feature."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from vhlo_tools.dialect import known_features
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.dialect import Effect, Expansion, Feature
    from vhlo_tools.version import Version

#: Which exact expansions are allowed: all, none, or those of features.
Expand = bool | Iterable[str]
#: The features whose relaxed expansions are allowed; ``all`` for those of all features.
AllowRelaxed = Iterable[str]

_ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class ExpansionPolicy:
    """The expansions that are allowed.

    Attributes:
        exact: The features whose exact expansions are.
        relaxed: The features whose relaxed expansions are.
        signature_change: Whether expansions may change the types of arguments and results of public functions.
    """

    exact: frozenset[str] = frozenset()
    relaxed: frozenset[str] = frozenset()
    signature_change: bool = False

    def __bool__(self) -> bool:
        return bool(self.exact or self.relaxed)

    def of(self, effect: Effect) -> frozenset[str]:
        """Return the features whose expansions of an effect are allowed."""
        return self.exact if effect == "exact" else self.relaxed

    def without(self, features: Iterable[str]) -> ExpansionPolicy:
        """Return the policy without the expansions of ``features``."""
        gone = frozenset(features)
        return ExpansionPolicy(self.exact - gone, self.relaxed - gone, self.signature_change)

    def allowed(self, target: Version) -> list[tuple[Feature, Expansion]]:
        """Return the expansions that are allowed, of features newer than ``target``, the newest features first.

        An exact expansion of a feature comes before its relaxed one, which applies to what the first has left.
        """
        newer = [feature for feature in reversed(known_features()) if feature.introduced > target.minor_release]
        return [(each, by) for each in newer for by in each.expansions if each.id in self.of(by.effect)]


#: The policy without any expansion.
NO_EXPANSIONS: Final = ExpansionPolicy()


def expansion_policy(
    expand: Expand = False, allow_relaxed: AllowRelaxed = (), allow_signature_change: bool = False
) -> ExpansionPolicy:
    """Return the allowed expansions: ``True`` or ``all`` for every feature, otherwise ids of features."""
    if not expand and not allow_relaxed:
        return NO_EXPANSIONS
    return ExpansionPolicy(
        _known("exact", (_ALL,) if expand is True else expand or ()),
        _known("relaxed", allow_relaxed),
        allow_signature_change,
    )


def _ids(effect: Effect) -> frozenset[str]:
    return frozenset(feature.id for feature in known_features() if feature.expansion(effect))


def _known(effect: Effect, ids: Iterable[str]) -> frozenset[str]:
    wanted, there = frozenset((ids,) if isinstance(ids, str) else ids), _ids(effect)
    if unknown := sorted(wanted - there - {_ALL}):
        raise ValueError(
            f"{unknown[0]!r} has no {effect} expansion: expected {_ALL}, or some of {', '.join(sorted(there))}"
        )
    return there if _ALL in wanted else wanted


def expansion_flag(feature: Feature, expansion: Expansion) -> str:
    return "--expand" if expansion.effect == "exact" else f"--allow-relaxed {feature.id}"
