"""Conversion of portable artifacts to StableHLO, and to HLO by XLA in jaxlib."""

from __future__ import annotations

from typing import Literal

from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import Context, Module, Provider, XlaFailure
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.program import convert_hlo, read_artifact, screen_artifact

#: The forms in which the program in an artifact can be printed.
Emit = Literal["text", "bytecode"]


def deserialize_artifact(
    artifact: Artifact, provider: Provider, context: Context | None = None, *, trusted: bool = False
) -> Module:
    """The header and sections were checked on opening; ``context`` gets StableHLO's dialects if it lacks them."""
    if context is not None:
        provider.register_dialects(context)
    return read_artifact(artifact, provider, context, trusted=trusted)


def print_module(
    artifact: Artifact, provider: Provider, emit: Emit, *, debug_info: bool = False, trusted: bool = False
) -> bytes:
    module = deserialize_artifact(artifact, provider, trusted=trusted)
    if emit == "bytecode":
        return b"".join(provider.bytecode(module, provider.library.current))
    return provider.text(module, debug_info=debug_info).encode()


def hlo_of_artifact(artifact: Artifact, provider: Provider, *, text: bool, trusted: bool = False) -> bytes:
    """Retargets an artifact that is newer than XLA's StableHLO, that of ``provider``, the bindings of jaxlib."""
    current = provider.library.current
    if artifact.version.minor_release > current.minor_release:
        artifact = artifact.retargeted(current)
    if not trusted:
        screen_artifact(artifact, provider)
    name = artifact.name
    try:
        # XLA crashes the process on aliases that lack expected fields.
        proto: bytes = convert_hlo("hlo_of_stablehlo", bytes(artifact), name, trusted=trusted)
        return convert_hlo("text_of_hlo", proto, name, trusted=trusted).encode() if text else proto
    except XlaFailure as error:
        raise InvalidProgramError(f"{artifact.name} cannot be represented in HLO: {error}") from error
