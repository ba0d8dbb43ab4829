"""A program: something that gives an MLIR module as often as one is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import MLIRFailure, ModuleOp, Provider
from vhlo_tools.errors import MalformedArtifactError
from vhlo_tools.findings import SourceLocation

__all__ = ["Program", "explain_failure", "place_of", "unreadable"]


@dataclass(frozen=True, slots=True)
class Program:
    """A program of any accepted kind.

    Attributes:
        name: What to call it in messages.
        provider: The bindings it is loaded with.
        load: Gives the program as a ``builtin.module`` that belongs to whoever asked, who may rewrite it. It raises
            :class:`InvalidProgramError` or :class:`MalformedArtifactError` where the program is not valid.
        other_dialects: Dialects beside StableHLO that it holds already, and that therefore stay.
    """

    name: str
    provider: Provider
    load: Callable[[], ModuleOp]
    other_dialects: frozenset[str] = field(default=frozenset())


def place_of(location: SourceLocation | None, name: str) -> SourceLocation | None:
    """Return ``location`` with ``-``, MLIR's name for an input without one, replaced by ``name``."""
    if location is None or location.file != "-":
        return location
    return SourceLocation(name, location.line, location.column)


def explain_failure(name: str, provider: Provider, failure: MLIRFailure) -> str:
    """Return what MLIR said of the program ``name``, with places, and with what the provider lacks for it."""
    lines = []
    for diagnostic in failure.diagnostics:
        place = place_of(diagnostic.source, name)
        lines.append(f"{place}: {diagnostic.message}" if place else diagnostic.message)
    said = "; ".join(lines) or "MLIR gave no reason"
    missing = [dialect for dialect in provider.lacking if f"{dialect}." in said or f"'{dialect}'" in said]
    if missing:
        said += f" ({provider.prefix} does not have the dialect {', '.join(missing)}: use jaxlib.mlir)"
    return said


def unreadable(artifact: Artifact, provider: Provider, failure: MLIRFailure) -> MalformedArtifactError:
    """Return the error for an artifact that the library refuses."""
    said = explain_failure(artifact.name, provider, failure)
    library = provider.library
    newer = ""
    if artifact.version.minor_release > library.current.minor_release:
        newer = f"; it is newer than the library: install one with StableHLO {artifact.version} or later"
    return MalformedArtifactError(
        f"{artifact.name} (StableHLO {artifact.version}) cannot be read by {library.name} (StableHLO "
        f"{library.current}): {said}{newer}",
        diagnostics=failure.diagnostics,
    )
