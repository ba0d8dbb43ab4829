"""Applies the expansions that a target needs to a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from vhlo_tools.bindings import MLIRFailure, ModuleOp, Operation, Provider, source_of
from vhlo_tools.compat import ExpansionPolicy
from vhlo_tools.conversion.patterns import Build, Refuse, apply_patterns, name_of, patterns_of
from vhlo_tools.conversion.rewriter import Notes, values_of
from vhlo_tools.errors import DowngradeError
from vhlo_tools.findings import Finding, SourceLocation
from vhlo_tools.program import place_of
from vhlo_tools.records import dataclass
from vhlo_tools.spec import Expansion, Feature, known_features
from vhlo_tools.version import Version


@dataclass(frozen=True, slots=True)
class WholeModule:
    """The context of an expansion that rewrites a whole module, because it changes more than ops with its feature."""

    provider: Provider
    module: ModuleOp
    target: Version  # its features may remain
    policy: ExpansionPolicy
    notes: Notes
    refuse: Refuse  # for a use that remains
    #: types of the values before the first expansion of a whole module, collected once
    types: Callable[[], frozenset[Any]]


#: An expansion of a whole module; it changes nothing if the module does not use its feature.
ModuleExpansion = Callable[[WholeModule], None]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An op that uses a feature, and to which an expansion of the feature does not apply."""

    feature: str
    location: SourceLocation | None  # in the user's source; None if the reason is the same for all ops
    reason: str


@dataclass(frozen=True, slots=True)
class Expanded:
    notes: tuple[Finding, ...]
    #: ops that remain despite an expansion, and features that have none, whether the module uses them or not
    refusals: tuple[Refusal, ...]


def expand_module(
    provider: Provider, module: ModuleOp, target: Version, policy: ExpansionPolicy, name: str
) -> Expanded:
    """Rewrites in place, newer features first, so that an expansion may leave a feature to another expansion."""
    notes: list[Finding] = []
    newer = (feature for feature in known_features() if feature.introduced > target.minor_release)
    # The reasons are shown where a program uses the features.
    refusals = [Refusal(each.id, None, each.inexpressible) for each in newer if each.inexpressible]

    def refuse(op: Operation, reason: str) -> None:
        refusals.append(Refusal(feature.id, source_of(op.location), reason))

    @cache
    def names() -> frozenset[str]:
        return frozenset(name_of(op) for op in provider.walk(module))

    @cache
    def types() -> frozenset[Any]:
        return frozenset(value.type for op in provider.walk(module) for value in values_of(op))

    for feature, expansion in policy.allowed(target):
        builds = _builds(expansion)
        told = _ExpansionNotes(name, feature, expansion, target)
        if callable(builds):
            builds(WholeModule(provider, module, target, policy, told, refuse, types))
            if told.findings:
                _verify(provider, module, name, feature, target)
        elif not names().isdisjoint(builds):
            apply_patterns(provider, module, patterns_of(builds), told, refuse=refuse)
        if told.findings:
            names.cache_clear()
            types.cache_clear()
            notes += told.findings
    return Expanded(tuple(notes), tuple(refusals))


def _verify(provider: Provider, module: ModuleOp, name: str, feature: Feature, target: Version) -> None:
    try:
        provider.verify(module)
    except MLIRFailure as failure:
        message = f"{feature.title} cannot be expanded: what would replace it is not valid: {failure}"
        found = Finding(feature.id, "error", feature.kind, message, introduced=feature.introduced, target=target)
        raise DowngradeError(f"{name} cannot be written for StableHLO {target}", [found]) from failure


def _builds(expansion: Expansion) -> Mapping[str, Build] | ModuleExpansion:
    module, _, name = expansion.patterns.partition(".")
    table = f"{name}_{expansion.effect}" if name else expansion.effect
    patterns = import_module(f"vhlo_tools.conversion.expansion.{module}")
    builds: Mapping[str, Build] | ModuleExpansion = getattr(patterns, table.upper())
    return builds


class _ExpansionNotes(Notes):
    def __init__(self, program: str, feature: Feature, expansion: Expansion, target: Version) -> None:
        super().__init__(program)
        self._feature = feature
        self._expansion = expansion
        self._target = target

    def add_at(self, op: str, location: SourceLocation | None, message: str, kind: Any = "op") -> None:
        feature = self._feature
        given_up = self._expansion.gives_up
        effect = f"{self._expansion.effect}: gives up {given_up}" if given_up else self._expansion.effect
        message = f"{message}, because StableHLO {feature.introduced} introduced {feature.title} ({effect})"
        place = place_of(location, self.program)
        found = Finding(feature.id, "note", feature.kind, message, op, place, feature.introduced, self._target)
        self.findings.append(found)
