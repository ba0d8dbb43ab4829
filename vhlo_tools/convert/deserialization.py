"""Portable artifacts to programs."""

from __future__ import annotations

from typing import Literal

from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import Context, Module, Provider
from vhlo_tools.program import read_artifact

__all__ = ["Emit", "deserialize_artifact", "print_module"]

#: How an artifact can be written out as a program.
Emit = Literal["text", "bytecode"]


def deserialize_artifact(
    artifact: Artifact, provider: Provider, context: Context | None = None, *, trusted: bool = False
) -> Module:
    """Return ``artifact`` as a StableHLO module.

    Args:
        artifact: The artifact; its header and sections were checked when it was made.
        provider: The bindings.
        context: A context of the same provider, which gets StableHLO's dialects if it lacks them; by default a new one.
        trusted: Whether it is read in this process at once, and not in a child process first.

    Raises:
        MalformedArtifactError: If the library refuses it, or does not survive reading it.
        EngineStartError: If no child process can be started.
    """
    if context is not None:
        provider.register_dialects(context)
    return read_artifact(artifact, provider, context, trusted=trusted)


def print_module(
    artifact: Artifact, provider: Provider, emit: Emit, *, debug_info: bool = False, trusted: bool = False
) -> bytes:
    """Return ``artifact`` as StableHLO, as ``emit`` says: as text or as ordinary bytecode.

    Args:
        artifact: The artifact.
        provider: The bindings.
        emit: The form.
        debug_info: Whether text shows locations.
        trusted: Whether it is read in this process at once, and not in a child process first.

    Raises:
        MalformedArtifactError: If the library refuses the artifact, or does not survive reading it.
        EngineStartError: If no child process can be started.
    """
    module = deserialize_artifact(artifact, provider, trusted=trusted)
    if emit == "bytecode":
        return b"".join(provider.bytecode(module, provider.library.current))
    return provider.text(module, debug_info=debug_info).encode()
