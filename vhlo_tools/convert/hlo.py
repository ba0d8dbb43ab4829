"""Programs to HLO, by XLA in jaxlib."""

from __future__ import annotations

from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import Provider
from vhlo_tools.bindings.xla import XlaFailure, hlo_of_stablehlo, text_of_hlo
from vhlo_tools.errors import InvalidProgramError

__all__ = ["hlo_of_artifact"]


def hlo_of_artifact(artifact: Artifact, provider: Provider, *, text: bool) -> bytes:
    """Return an artifact as HLO, with its aliases and donors.

    Args:
        artifact: The artifact. What is newer than XLA's StableHLO is moved there.
        provider: The bindings of jaxlib, whose StableHLO is XLA's.
        text: Whether as text; otherwise as an ``HloModuleProto``.

    Raises:
        InvalidProgramError: If XLA makes no HLO of it, or refuses its aliases.
        DowngradeError: If it needs a newer StableHLO than XLA has.
        ProviderError: If jaxlib is not installed.
    """
    current = provider.library.current
    if artifact.version.minor_release > current.minor_release:
        artifact = artifact.retargeted(current)
    try:
        proto = hlo_of_stablehlo(bytes(artifact))
        return text_of_hlo(proto).encode() if text else proto
    except XlaFailure as error:
        raise InvalidProgramError(f"{artifact.name} has no form in HLO: {error}") from error
