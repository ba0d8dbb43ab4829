"""Programs to HLO, by XLA in jaxlib."""

from __future__ import annotations

from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import Provider
from vhlo_tools.bindings.xla import XlaFailure
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.program import convert_hlo, screen_artifact

__all__ = ["hlo_of_artifact"]


def hlo_of_artifact(artifact: Artifact, provider: Provider, *, text: bool, trusted: bool = False) -> bytes:
    """Return an artifact as HLO, with its aliases and donors.

    Args:
        artifact: The artifact. What is newer than XLA's StableHLO is moved there.
        provider: The bindings of jaxlib, whose StableHLO is XLA's.
        text: Whether as text; otherwise as an ``HloModuleProto``.
        trusted: Whether it is read in this process at once, and not in a child process first.

    Raises:
        MalformedArtifactError: If the library refuses the artifact, or does not survive reading it.
        InvalidProgramError: If XLA makes no HLO of it, or refuses its aliases.
        DowngradeError: If it needs a newer StableHLO than XLA has.
        ProviderError: If jaxlib is not installed.
        EngineStartError: If no child process can be started.
    """
    current = provider.library.current
    if artifact.version.minor_release > current.minor_release:
        artifact = artifact.retargeted(current)
    if not trusted:
        screen_artifact(artifact, provider)
    name = artifact.name
    try:
        # XLA ends the process over aliases that lack what it looks for.
        proto: bytes = convert_hlo("hlo_of_stablehlo", bytes(artifact), name, trusted=trusted)
        return convert_hlo("text_of_hlo", proto, name, trusted=trusted).encode() if text else proto
    except XlaFailure as error:
        raise InvalidProgramError(f"{artifact.name} has no form in HLO: {error}") from error
