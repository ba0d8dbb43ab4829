"""Retargets artifacts through StableHLO's passes: with expansions, or where their bytes alone cannot be edited."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import get_provider
from vhlo_tools.compat import expansion_policy, resolve_target
from vhlo_tools.convert.serialization import serialize_program
from vhlo_tools.dialect import is_newer_than_data
from vhlo_tools.errors import (
    DowngradeError,
    EngineStartError,
    MalformedArtifactError,
    ProviderError,
    UnknownTargetError,
)
from vhlo_tools.program import load_program
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.program import ExpandOptions


@dataclass(frozen=True, slots=True)
class LibraryRetargeting:
    """Retargeting by the library of a provider; ops of other dialects in an artifact are kept.

    Attributes:
        target: The target version or consumer, in the target grammar.
        expansions: The expansions that are allowed.
        as_of: The day from which windows in ``target`` count back, by default today.
        provider: The bindings, by default the installed ones.
        trusted: Whether MLIR may parse an artifact directly in this process.
    """

    target: str
    expansions: ExpandOptions
    as_of: date | None = None
    provider: str | None = None
    trusted: bool = False

    def by_library(self, artifact: Artifact) -> Artifact:
        """Return an artifact at the target.

        Raises:
            DowngradeError: If it needs a feature newer than the target.
            UnsupportedFeatureError: If it contains something that no artifact can represent.
            MalformedArtifactError: If the library cannot read it.
            UnknownTargetError: If the target is unknown, or a version that the library cannot write.
        """
        loaded = load_program(artifact, provider=self.provider, trusted=self.trusted)
        library = loaded.provider.library
        resolved = resolve_target(self.target, lambda: library, as_of=self.as_of).within(library)
        others = bool(loaded.other_dialects)
        return serialize_program(loaded, resolved, allow_other_dialects=others, **self.expansions)

    def if_it_can(self, artifact: Artifact) -> Artifact | None:
        """Return an artifact at the target; ``None`` if no library is installed that reads it and writes the target.

        Raises:
            DowngradeError: If it needs a feature newer than the target.
            UnsupportedFeatureError: If it contains something that no artifact can represent.
        """
        try:
            return self.by_library(artifact)
        except (MalformedArtifactError, UnknownTargetError, ProviderError, EngineStartError):
            return None

    def with_expansions(self, artifact: Artifact) -> Artifact:
        """Return an artifact at the target: with its bytes edited if these suffice, otherwise by the library.

        Raises:
            DowngradeError: If it needs a feature newer than the target, and no expansion applies.
            UnsupportedFeatureError: If it contains something that cannot be retargeted.
            MalformedArtifactError: If it is damaged, or the library cannot read it.
            UnknownTargetError: If the target is unknown.
        """
        library = get_provider(self.provider).library
        target = resolve_target(self.target, lambda: library, as_of=self.as_of).specified(lambda: library)
        version = target.version
        if is_newer_than_data(max(artifact.version, version)):
            # Only the library knows what came after the specification.
            if (moved := self.if_it_can(artifact)) is not None:
                return moved
            target.specified()
        try:
            retargeted = artifact.retargeted(version)
        except DowngradeError as downgrade:
            refusal = downgrade
        else:
            if self._has_expandable(retargeted):
                with suppress(MalformedArtifactError, UnknownTargetError):  # of a library older than the artifact
                    return self.by_library(artifact)
            return retargeted
        try:
            return self.by_library(artifact)
        except (MalformedArtifactError, UnknownTargetError) as error:
            if artifact.version.minor_release <= library.current.minor_release:
                raise
            found = artifact.requirements().findings(version, expansion_policy(**self.expansions))
            reason = (
                f"it cannot be expanded by {library.name}, of StableHLO {library.current}, which is older than the "
                f"artifact: install a release with {artifact.version.minor_release} or later"
            )
            errors = [replace(each, message=f"{each.message}; {reason}") for each in found if each.level == "error"]
            raise DowngradeError(refusal.summary, errors) from error

    def _has_expandable(self, artifact: Artifact) -> bool:
        """Return whether readers of its version reject something in an artifact that may be expanded."""
        allowed = expansion_policy(**self.expansions)
        found = artifact.requirements().findings(artifact.version)
        return any(each.feature in allowed.exact | allowed.relaxed for each in found)
