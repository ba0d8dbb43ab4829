"""Operations of a migration on one program: retarget, find blocking findings, and prove equivalence.

These functions are called by name in other processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from vhlo_tools.api.checking import prepare_check
from vhlo_tools.api.conversion import retarget, serialize
from vhlo_tools.api.library_answers import findings_with_library
from vhlo_tools.api.proofs import Prover
from vhlo_tools.artifact import JaxContainer
from vhlo_tools.files import Kind
from vhlo_tools.stores import StoredProgram, Tools

if TYPE_CHECKING:
    from vhlo_tools.api.checking import Checked
    from vhlo_tools.artifact import Artifact
    from vhlo_tools.files import Buffer
    from vhlo_tools.findings import Finding
    from vhlo_tools.stores import MigrationSettings, Proof


def _move(program: StoredProgram, settings: MigrationSettings) -> Artifact | JaxContainer:
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
    """Errors block the migration."""
    if program.opened is None:
        return _checked(program.data, program.name, settings).findings(settings.target)
    artifacts, name = program.artifacts, program.name
    if settings.expand or settings.allow_relaxed:
        blocked = [each for each in artifacts if each.requirements().findings(settings.target)]
        return [each for artifact in blocked for each in _checked(artifact, name, settings).findings(settings.target)]
    provider, trusted = settings.provider, settings.trusted
    return [
        each
        for artifact in artifacts
        for each in findings_with_library(artifact, settings.target, provider=provider, trusted=trusted)
    ]


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
    """Return the proof that both programs are equivalent, or why there is none."""
    # The written bytes are compared, because they are what consumers will read.
    written = bytes(after)
    kind = Kind.JAX_EXPORT if isinstance(after, JaxContainer) else Kind.PORTABLE_ARTIFACT
    prover = Prover(
        settings.seed,
        timeout=settings.timeout,
        legalize=settings.legalize,
        provider=settings.provider,
        trusted=settings.trusted,
    )
    name = before.name
    return prover.prove(before, StoredProgram.of(name, kind, written), (name, f"{name} at {settings.target}"))


#: The operations of a migration on one program.
def _refused(artifacts: Sequence[Artifact], settings: MigrationSettings) -> list[Finding]:
    from vhlo_tools.releases import refusals

    return [each for artifact in artifacts for each in refusals(settings.confirm_with, artifact, settings.target)]


MIGRATION_TOOLS: Final = Tools(_move, _blocking, _prove, _refused)
