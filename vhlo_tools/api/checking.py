"""Who can read a program, and why not others: checks before anything is written or loaded."""

from __future__ import annotations

import os
from datetime import date
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from vhlo_tools.api.frontends import as_program
from vhlo_tools.api.functions import ArtifactSource, resolve_target
from vhlo_tools.artifact import Artifact, Kind, as_bytes, read_bytes, recognise
from vhlo_tools.compat import Target
from vhlo_tools.errors import InvalidProgramError, UnsupportedFeatureError
from vhlo_tools.findings import Finding
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.program import ProgramSource

__all__ = ["Checked", "as_artifact", "check", "prepare_check", "require"]


class Checked:
    """A program made ready for questions about any number of versions.

    Attributes:
        artifact: Its bytes; of a program that is no artifact, those of the newest version. ``None`` if no artifact can
            hold it.
        general: What holds at every version.
    """

    def __init__(self, artifact: Artifact | None, general: tuple[Finding, ...]) -> None:
        self.artifact = artifact
        self.general = general

    def findings(self, target: Version) -> list[Finding]:
        """Return every reason why the program cannot be written for ``target``, and what its readers choke on."""
        found = self.artifact.requirements().findings(target) if self.artifact else []
        # What is refused in general need not be warned of.
        refused = {finding.feature for finding in self.general if finding.level == "error"}
        kept = [each for each in found if each.level == "error" or each.feature not in refused]
        return [*self.general, *kept, *(self.artifact.requirements().notes if self.artifact else ())]

    def reader_findings(self, reader: Version) -> list[Finding]:
        """Return every reason why a consumer of the version ``reader`` cannot read the bytes as they are."""
        found = [each for each in self.general if each.level != "warning"]
        return [*found, *(self.artifact.requirements().reader_findings(reader) if self.artifact else ())]


def prepare_check(
    program: ProgramSource,
    *,
    allow_other_dialects: bool = False,
    legalize: bool = True,
    name: str | None = None,
    provider: str | None = None,
    trusted: bool = False,
) -> Checked:
    """Make a program ready for questions; artifacts are answered from their bytes, without MLIR.

    Args:
        program: Anything that :func:`vhlo_tools.serialize` takes. What is no artifact is legalized once, at the newest
            version of the library.
        allow_other_dialects: Whether ops of dialects beside StableHLO may stay; those that an artifact holds may.
        legalize: Whether what no artifact can hold may be rewritten, as :func:`vhlo_tools.serialize` does.
        name: What to call the program in messages, by default its path.
        provider: The bindings to use where they are needed.
        trusted: Whether MLIR may parse bytecode in this process at once, as for :func:`vhlo_tools.serialize`.

    Raises:
        InvalidProgramError: If it is no valid program.
        MalformedArtifactError: If it is a damaged artifact.
    """
    try:
        program = as_program(
            program, allow_other_dialects=allow_other_dialects, legalize=legalize, name=name, provider=provider
        )
    except UnsupportedFeatureError as error:
        # A framework's program that no artifact can hold.
        return Checked(None, error.findings)
    artifact = as_artifact(program, name)
    if artifact is not None:
        contradiction = artifact.requirements().contradiction
        return Checked(artifact, (*((contradiction,) if contradiction else ()), *artifact.alias_findings()))
    from vhlo_tools.convert import changed_attributes, newest_artifact
    from vhlo_tools.program import load_program

    loaded = load_program(program, name=name, provider=provider, trusted=trusted)
    try:
        written = newest_artifact(loaded, allow_other_dialects=allow_other_dialects, legalize=legalize)
        return Checked(written, (*changed_attributes(loaded, written), *written.findings, *written.alias_findings()))
    except UnsupportedFeatureError as error:
        refused = error.findings
    changed = changed_attributes(loaded)
    if allow_other_dialects:
        return Checked(None, (*refused, *changed))
    try:
        # With what is refused left as it is, the rest can be judged as well.
        written = newest_artifact(loaded, allow_other_dialects=True, legalize=legalize)
        return Checked(written, (*refused, *changed, *written.findings, *written.alias_findings()))
    except UnsupportedFeatureError:
        return Checked(None, (*refused, *changed))


def check(
    program: ProgramSource,
    target: str | Version = "current",
    *,
    allow_other_dialects: bool = False,
    legalize: bool = True,
    name: str | None = None,
    as_of: date | None = None,
    provider: str | None = None,
    trusted: bool = False,
) -> list[Finding]:
    """Return every reason why a program cannot be written for a target, and what readers of the target would choke on.

    Args:
        program: Anything that :func:`vhlo_tools.serialize` takes. An artifact is judged from its bytes, without MLIR.
        target: The version, or the consumer, in the grammar of targets.
        allow_other_dialects: Whether ops of dialects beside StableHLO may stay; those that an artifact holds may.
        legalize: Whether what no artifact can hold may be rewritten, as :func:`vhlo_tools.serialize` does.
        name: What to call the program in messages, by default its path.
        as_of: The day that windows in ``target`` count back from, by default today.
        provider: The bindings to use where they are needed.
        trusted: Whether MLIR may parse bytecode in this process at once, as for :func:`vhlo_tools.serialize`.

    Returns:
        Errors for what cannot be, warnings for what consumers would choke on, and notes of custom calls, of which no
        version promises anything; without errors and warnings all is well. Aliases that XLA refuses are errors at every
        version.

    Raises:
        InvalidProgramError: If it is no valid program.
        MalformedArtifactError: If it is a damaged artifact.
        UnknownTargetError: If the target is unknown.
        InvalidVersionError: If the target looks like a version and is none.
    """
    resolved = resolve_target(str(target), as_of=as_of, provider=provider)
    checked = prepare_check(
        program,
        allow_other_dialects=allow_other_dialects,
        legalize=legalize,
        name=name,
        provider=provider,
        trusted=trusted,
    )
    return checked.findings(resolved.version)


def require(artifact: ArtifactSource, reader: str | Version, *, as_of: date | None = None) -> Target:
    """Let an artifact pass if ``reader`` can read it: a guard for servers, which needs no MLIR.

    Args:
        artifact: The artifact, its path or its bytes, or those of a jax.export file.
        reader: The consumer, in the grammar of targets: ``jaxlib==0.8.3``, or the version that it has.
        as_of: The day that windows in ``reader`` count back from, by default today.

    Returns:
        What ``reader`` means.

    Raises:
        UnsupportedFeatureError: If it cannot; the findings say why.
        MalformedArtifactError: If it is no artifact, or a damaged one.
        UnknownTargetError: If the reader is unknown.
        InvalidVersionError: If the reader looks like a version and is none.
    """
    opened = Artifact.open(artifact)
    target = resolve_target(str(reader), as_of=as_of)
    requirements = opened.requirements()
    findings = [each for each in requirements.reader_findings(target.version) if each.level == "error"]
    if findings:
        raise UnsupportedFeatureError(f"{opened.name} cannot be read by {target}", findings)
    return target


def as_artifact(program: ProgramSource, name: str | None) -> Artifact | None:
    """Return ``program`` as an artifact if it is one, or a file that holds one."""
    if isinstance(program, Artifact):
        return program
    if isinstance(program, str) and not os.path.isfile(program):  # noqa: PTH113 - a Path of a long text raises
        return None
    if isinstance(program, str | PathLike):
        data, name = read_bytes(Path(program)), name or str(program)
    elif isinstance(program, bytes | bytearray | memoryview):
        data = as_bytes(program)
    else:
        return None
    try:
        kind = recognise(data, name or "the program")
    except InvalidProgramError:
        return None
    return Artifact.open(data, name=name) if kind in (Kind.PORTABLE_ARTIFACT, Kind.JAX_EXPORT) else None
