"""Bytes from elsewhere are parsed in a child process first, because the C++ readers do not survive all damage.

One flipped bit in fifty ends the process that reads it, or makes it hang. What the child reads and lets go of cleanly,
this process reads too.
"""

from __future__ import annotations

from typing import Any, Final

from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import MLIRFailure, Provider, xla
from vhlo_tools.bindings.isolation import AVAILABLE, Limits, call
from vhlo_tools.bindings.trial import PARSE_ONCE
from vhlo_tools.errors import EngineError, EngineStartError, InvalidProgramError, MalformedArtifactError
from vhlo_tools.program.program import unreadable

__all__ = ["convert_hlo", "screen_artifact", "screen_source"]

# What is read at less than so many bytes a second is not being read; constants are read at several hundred times that.
_SECONDS: Final = 10.0
_BYTES_PER_SECOND: Final = 4 << 20

# A context and a reader take some megabytes, and of a constant there are up to three copies.
_MEMORY: Final = 1 << 30
_COPIES: Final = 8


def screen_artifact(artifact: Artifact, provider: Provider) -> None:
    """Let an artifact pass that can be read, and remember that it can; one that is trusted passes at once.

    Raises:
        MalformedArtifactError: If the library refuses it, or does not survive reading it, or reads it for ever.
        EngineStartError: If no child process can be started.
    """
    if artifact.trusted:
        return
    try:
        reason = _parsed(bytes(artifact), provider, portable=True)
    except MLIRFailure as failure:
        raise unreadable(artifact, provider, failure) from failure
    if reason:
        raise MalformedArtifactError(
            _explained(f"{artifact.name} (StableHLO {artifact.version})", provider, reason)
        ) from reason
    artifact.trusted = True


def screen_source(data: bytes, provider: Provider, name: str) -> None:
    """Let bytecode or text of MLIR pass that can be read.

    Raises:
        MLIRFailure: If the library refuses it.
        InvalidProgramError: If the library does not survive reading it, or reads it for ever.
        EngineStartError: If no child process can be started.
    """
    if reason := _parsed(data, provider, portable=False):
        raise InvalidProgramError(_explained(name, provider, reason)) from reason


def convert_hlo(function: str, data: str | bytes, name: str, *, trusted: bool) -> Any:
    """Return what a function of :mod:`vhlo_tools.bindings.xla` makes of a program.

    Args:
        function: Its name.
        data: The program.
        name: What to call it in messages.
        trusted: Whether that is done in this process.

    Raises:
        XlaFailure: If XLA refuses it.
        InvalidProgramError: If XLA does not survive it, or takes for ever.
        EngineStartError: If no child process can be started.
    """
    if trusted or not AVAILABLE:
        return getattr(xla, function)(data)
    size = len(data)
    limits = Limits(seconds=_SECONDS + size / _BYTES_PER_SECOND, memory=_MEMORY + _COPIES * size)
    try:
        return call(f"{xla.__name__}:{function}", data, limits=limits)
    except EngineStartError as error:
        raise EngineStartError(f"{error}; trusted=True, or --trusted, goes without") from error
    except EngineError as error:
        raise InvalidProgramError(
            f"XLA does not survive {name}, as it showed where that does no harm: {error}"
        ) from error


def _explained(name: str, provider: Provider, reason: EngineError) -> str:
    return (
        f"{name} is damaged, and {provider.library.name} does not survive reading it, as it showed where that does no "
        f"harm: {reason}; make or fetch the file again"
    )


def _parsed(data: bytes, provider: Provider, *, portable: bool) -> EngineError | None:
    """Return what happened to the process that read ``data``, or ``None`` if nothing did."""
    if not AVAILABLE:
        return None
    limits = Limits(seconds=_SECONDS + len(data) / _BYTES_PER_SECOND, memory=_MEMORY + _COPIES * len(data))
    try:
        call(PARSE_ONCE, provider.prefix, memoryview(data), portable, limits=limits)
    except EngineStartError as error:
        raise EngineStartError(f"{error}; trusted=True, or --trusted, goes without") from error
    except EngineError as error:
        return error
    return None
