"""Programs: named sources of MLIR modules, which can be loaded repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field

from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import MLIRFailure, ModuleOp, Provider, explain_unknown
from vhlo_tools.errors import InvalidProgramError, MalformedArtifactError
from vhlo_tools.findings import SourceLocation
from vhlo_tools.records import dataclass

# What the bindings of jaxlib 0.10 and of 0.12 raise for text that is not UTF-8, of all kinds of names, and for empty
# names in dictionaries.
_UNREADABLE = (
    *("nanobind::detail::str_from_cstr", "nanobind::str(): conversion error", "a name contains a NUL byte"),
    "basic_string",
)


@dataclass(frozen=True, slots=True)
class Program:
    """A program in any accepted format.

    Attributes:
        name: The name of the program in messages.
        provider: The bindings that load the program.
        load: Returns the program as a new ``builtin.module``, which the caller owns and may rewrite. It raises
            :class:`InvalidProgramError` or :class:`MalformedArtifactError` if the program is not valid.
        other_dialects: The dialects other than StableHLO that an artifact already contains, which therefore remain.
    """

    name: str
    provider: Provider
    load: Callable[[], ModuleOp]
    other_dialects: frozenset[str] = field(default=frozenset())


def place_of(location: SourceLocation | None, name: str) -> SourceLocation | None:
    """``-`` is MLIR's name for an input without a name."""
    if location is None or location.file != "-":
        return location
    return SourceLocation(name, location.line, location.column)


@contextmanager
def names_in_utf8(name: str) -> Iterator[None]:
    """Artifacts may contain names that the bindings cannot read: empty, not UTF-8, or with a NUL byte."""
    try:
        yield
    except RuntimeError as error:
        if not any(words in str(error) for words in _UNREADABLE):
            raise
        raise InvalidProgramError(
            f"{name} has a name that is empty, not UTF-8, or contains a NUL byte, which the bindings of MLIR cannot "
            "read: `vhlo inspect` shows names"
        ) from error


def explain_failure(name: str, provider: Provider, failure: MLIRFailure) -> str:
    """MLIR's diagnostics, with locations, and the dialects that the provider lacks."""
    lines = []
    for diagnostic in failure.diagnostics:
        place = place_of(diagnostic.source, name)
        lines.append(f"{place}: {diagnostic.message}" if place else diagnostic.message)
    said = "; ".join(lines) or "MLIR reported no reason"
    missing = [dialect for dialect in provider.lacking if f"{dialect}." in said or f"'{dialect}'" in said]
    if missing:
        said += f" ({provider.prefix} does not have the dialect {', '.join(missing)}: use jaxlib.mlir)"
    elif newer := explain_unknown(provider, said):
        said += f" ({newer})"
    return said


def unreadable(artifact: Artifact, provider: Provider, failure: MLIRFailure) -> MalformedArtifactError:
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
