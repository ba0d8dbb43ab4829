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
from vhlo_tools.errors import (
    DowngradeError,
    EngineStartError,
    MalformedArtifactError,
    ProviderError,
    UnknownTargetError,
)
from vhlo_tools.program import load_program
from vhlo_tools.records import dataclass
from vhlo_tools.spec import is_newer_than_data

if TYPE_CHECKING:
    from vhlo_tools.program import ExpandOptions


@dataclass(frozen=True, slots=True)
class LibraryRetargeting:
    """Ops of other dialects in an artifact are kept."""

    target: str
    expansions: ExpandOptions
    as_of: date | None = None  # day from which windows in ``target`` count back; None for today
    provider: str | None = None
    trusted: bool = False  # MLIR may parse an artifact directly in this process

    def by_library(self, artifact: Artifact) -> Artifact:
        loaded = load_program(artifact, provider=self.provider, trusted=self.trusted)
        library = loaded.provider.library
        resolved = resolve_target(self.target, lambda: library, as_of=self.as_of).within(library)
        others = bool(loaded.other_dialects)
        return serialize_program(loaded, resolved, allow_other_dialects=others, **self.expansions)

    def if_it_can(self, artifact: Artifact) -> Artifact | None:
        """``None`` if no library is installed that reads the artifact and writes the target."""
        try:
            return self.by_library(artifact)
        except (MalformedArtifactError, UnknownTargetError, ProviderError, EngineStartError):
            return None

    def with_expansions(self, artifact: Artifact) -> Artifact:
        """Edits the bytes if that suffices; otherwise the library retargets the artifact."""
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
        """Whether readers of its version reject something that may be expanded."""
        allowed = expansion_policy(**self.expansions)
        found = artifact.requirements().findings(artifact.version)
        return any(each.feature in allowed.exact | allowed.relaxed for each in found)
