"""The operations of a migration on one program: retarget, find blocking findings, and prove equivalence.

These functions are called by name in other processes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from vhlo_tools.api.checking import Checked, prepare_check
from vhlo_tools.api.conversion import retarget, serialize, strip
from vhlo_tools.api.differences import diff
from vhlo_tools.api.frontends import as_program
from vhlo_tools.api.verification import verify
from vhlo_tools.artifact import Artifact, JaxContainer
from vhlo_tools.errors import EngineError, MalformedArtifactError, ProviderError, VerificationError
from vhlo_tools.findings import Finding
from vhlo_tools.formats import Buffer, Kind
from vhlo_tools.migration import MigrationSettings, Proof, StoredProgram, Tools

if TYPE_CHECKING:
    from vhlo_tools.program import ProgramSource

__all__ = ["MIGRATION_TOOLS"]


def _move(program: StoredProgram, settings: MigrationSettings) -> Artifact | JaxContainer:
    """Return a program at the target version."""

    def moved(artifact: Artifact) -> Artifact:
        return retarget(
            artifact,
            settings.target,
            expand=settings.expand,
            allow_relaxed=settings.allow_relaxed,
            allow_signature_change=settings.allow_signature_change,
            provider=settings.provider,
            trusted=settings.trusted,
        )

    if isinstance(program.opened, JaxContainer):
        return program.opened.with_artifacts(moved)
    if program.opened is not None:
        return moved(program.opened)
    from vhlo_tools.bindings import get_provider

    # Versions newer than the library are reached by retargeting its newest version on bytes.
    written = min(settings.target, get_provider(settings.provider).library.current)
    artifact = serialize(
        program.data,
        written,
        allow_other_dialects=settings.allow_other_dialects,
        legalize=settings.legalize,
        expand=settings.expand,
        allow_relaxed=settings.allow_relaxed,
        allow_signature_change=settings.allow_signature_change,
        name=program.name,
        provider=settings.provider,
        trusted=settings.trusted,
    )
    return artifact if written == settings.target else moved(artifact).with_findings(artifact.findings)


def _blocking(program: StoredProgram, settings: MigrationSettings) -> list[Finding]:
    """Return the findings for a program at the target version; errors block the migration."""
    if program.opened is None:
        return _checked(program.data, program.name, settings).findings(settings.target)
    artifacts, name = program.artifacts, program.name
    if settings.expand or settings.allow_relaxed:
        blocked = [each for each in artifacts if each.requirements().findings(settings.target)]
        return [each for artifact in blocked for each in _checked(artifact, name, settings).findings(settings.target)]
    return [each for artifact in artifacts for each in artifact.requirements().findings(settings.target)]


def _checked(program: Artifact | Buffer, name: str, settings: MigrationSettings) -> Checked:
    return prepare_check(
        program,
        allow_other_dialects=settings.allow_other_dialects,
        legalize=settings.legalize,
        expand=settings.expand,
        allow_relaxed=settings.allow_relaxed,
        allow_signature_change=settings.allow_signature_change,
        name=name,
        provider=settings.provider,
        trusted=settings.trusted,
    )


def _prove(before: StoredProgram, after: Artifact | JaxContainer, settings: MigrationSettings) -> Proof:
    """Compare two programs, for jax.export files each pair of artifacts; return the worst proof."""
    # The written bytes are compared, because they are what consumers will read.
    written = bytes(after)
    kind = Kind.JAX_EXPORT if isinstance(after, JaxContainer) else Kind.PORTABLE_ARTIFACT
    name, new = before.name, StoredProgram.of(before.name, kind, written)
    old: Sequence[Artifact | Buffer] = before.artifacts or [before.data]
    pairs = zip(old, new.artifacts, strict=True)
    proofs = [_prove_pair(one, other, name, settings) for one, other in pairs]
    return max(proofs, key=lambda proof: _VERDICTS.index(proof.verdict))


# From best to worst.
_VERDICTS: Final = ("same program", "same results", "unknown", "other results")


def _prove_pair(before: Artifact | Buffer, after: Artifact, name: str, settings: MigrationSettings) -> Proof:
    if _is_same_program(before, after, name, settings):
        return Proof("same program")
    try:
        report = verify(
            before,
            after,
            seed=settings.seed,
            timeout=settings.timeout,
            names=(name, f"{name} at {settings.target}"),
            provider=settings.provider,
            trusted=settings.trusted,
        )
    except VerificationError as error:
        return Proof("other results", str(error))
    except (EngineError, MalformedArtifactError, ProviderError) as error:
        return Proof("unknown", f"they are not the same program, and cannot be executed: {error}")
    return Proof("same results" if report.passed else "other results", str(report))


def _is_same_program(before: Artifact | Buffer, after: Artifact, name: str, settings: MigrationSettings) -> bool:
    """Return whether the library reads the same program from both, ignoring locations, so that the same would run.

    Artifacts that are too new for the library are compared on their bytes, at both versions.
    """
    try:
        if _digest(before, name, settings) == _digest(after, name, settings):
            return True
    except (MalformedArtifactError, ProviderError):
        if not isinstance(before, Artifact):
            raise
        back = after.retargeted(before.version)
        return not (_differ(before, after, name, settings) or _differ(before, back, name, settings))
    return not _differ(before, after, name, settings)


def _differ(before: Artifact | Buffer, after: Artifact, name: str, settings: MigrationSettings) -> bool:
    found = diff(
        before,
        after,
        ignore=("version",),
        names=(name, name),
        provider=settings.provider,
        trusted=settings.trusted,
    )
    return bool(found)


def _digest(program: Artifact | Buffer, name: str, settings: MigrationSettings) -> bytes:
    """Return a digest of the program that the library reads, rewritten at its newest version without locations."""
    from vhlo_tools.convert import newest_artifact
    from vhlo_tools.program import load_program

    source: ProgramSource = as_program(program, name=name, provider=settings.provider)
    loaded = load_program(source, name=name, provider=settings.provider, trusted=settings.trusted)
    written = newest_artifact(loaded, allow_other_dialects=True, legalize=settings.legalize)
    return hashlib.sha256(bytes(strip(written))).digest()


#: The operations of a migration on one program.
MIGRATION_TOOLS: Final = Tools(_move, _blocking, _prove)
