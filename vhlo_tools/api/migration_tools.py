"""What a migration does to one program: moves it, says what stands in the way, and proves that nothing changed.

These functions are called in other processes, by their names.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from vhlo_tools.api.checking import prepare_check
from vhlo_tools.api.comparison import diff
from vhlo_tools.api.frontends import as_program
from vhlo_tools.api.functions import retarget, serialize, strip
from vhlo_tools.api.verification import verify
from vhlo_tools.artifact import Artifact, Buffer, JaxContainer, Kind
from vhlo_tools.errors import EngineError, MalformedArtifactError, ProviderError, VerificationError
from vhlo_tools.findings import Finding
from vhlo_tools.migration import Proof, Settings, Tools

if TYPE_CHECKING:
    from vhlo_tools.program import ProgramSource

__all__ = ["MIGRATION_TOOLS"]


def _move(data: Buffer, kind: Kind, name: str, settings: Settings) -> Artifact | JaxContainer:
    """Return a program at the target."""

    def moved(artifact: Artifact) -> Artifact:
        return retarget(artifact, settings.target, provider=settings.provider, trusted=settings.trusted)

    if kind is Kind.PORTABLE_ARTIFACT:
        return moved(Artifact(data, name=name))
    if kind is Kind.JAX_EXPORT:
        return JaxContainer(data, name=name).with_artifacts(moved)
    from vhlo_tools.bindings import get_provider

    # What the library does not write, our rules make of the newest that it does.
    written = min(settings.target, get_provider(settings.provider).library.current)
    artifact = serialize(
        data,
        written,
        allow_other_dialects=settings.allow_other_dialects,
        legalize=settings.legalize,
        name=name,
        provider=settings.provider,
        trusted=settings.trusted,
    )
    return artifact if written == settings.target else moved(artifact).with_findings(artifact.findings)


def _blocking(data: Buffer, kind: Kind, name: str, settings: Settings) -> list[Finding]:
    """Return what is found in a program that is to be at the target; errors stand in the way."""
    if kind is Kind.PORTABLE_ARTIFACT:
        return Artifact(data, name=name).requirements().findings(settings.target)
    if kind is Kind.JAX_EXPORT:
        artifacts = JaxContainer(data, name=name).artifacts
        return [each for artifact in artifacts for each in artifact.requirements().findings(settings.target)]
    checked = prepare_check(
        data,
        allow_other_dialects=settings.allow_other_dialects,
        legalize=settings.legalize,
        name=name,
        provider=settings.provider,
        trusted=settings.trusted,
    )
    return checked.findings(settings.target)


def _prove(kind: Kind, before: Buffer, after: Artifact | JaxContainer, name: str, settings: Settings) -> Proof:
    """Tell whether two programs compute the same, each pair of artifacts in files of jax.export."""
    # What will be read is the bytes, and not what they were made of.
    written = bytes(after)
    pairs: list[tuple[Artifact | Buffer, Artifact]]
    if kind is Kind.JAX_EXPORT:
        old, new = (JaxContainer(each, name=name).artifacts for each in (before, written))
        pairs = list(zip(old, new, strict=True))
    else:
        source = Artifact(before, name=name) if kind is Kind.PORTABLE_ARTIFACT else before
        pairs = [(source, Artifact(written, name=name))]
    proofs = [_prove_pair(one, other, name, settings) for one, other in pairs]
    return max(proofs, key=lambda proof: _VERDICTS.index(proof.verdict))


# From the best.
_VERDICTS: Final = ("same program", "same results", "unknown", "other results")


def _prove_pair(before: Artifact | Buffer, after: Artifact, name: str, settings: Settings) -> Proof:
    if _is_same_program(before, after, name, settings):
        return Proof("same program")
    try:
        report = verify(
            before,
            after,
            seed=settings.seed,
            names=(name, f"{name} at {settings.target}"),
            provider=settings.provider,
            trusted=settings.trusted,
        )
    except VerificationError as error:
        return Proof("other results", str(error))
    except (EngineError, MalformedArtifactError, ProviderError) as error:
        return Proof("unknown", f"they are not the same program, and cannot be run: {error}")
    return Proof("same results" if report.passed else "other results", str(report))


def _is_same_program(before: Artifact | Buffer, after: Artifact, name: str, settings: Settings) -> bool:
    """Tell whether the library reads the same program from both, locations apart: then the same would run.

    What it cannot read, because it is newer, is compared from the bytes, at both versions.
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


def _differ(before: Artifact | Buffer, after: Artifact, name: str, settings: Settings) -> bool:
    found = diff(
        before,
        after,
        ignore=("version",),
        names=(name, name),
        provider=settings.provider,
        trusted=settings.trusted,
    )
    return bool(found)


def _digest(program: Artifact | Buffer, name: str, settings: Settings) -> bytes:
    """Return a digest of what the library reads, written again at its newest version without locations."""
    from vhlo_tools.convert import newest_artifact
    from vhlo_tools.program import load_program

    source: ProgramSource = as_program(program, name=name, provider=settings.provider)
    loaded = load_program(source, name=name, provider=settings.provider, trusted=settings.trusted)
    written = newest_artifact(loaded, allow_other_dialects=True, legalize=settings.legalize)
    return hashlib.sha256(bytes(strip(written))).digest()


#: What the work on one program is done with.
MIGRATION_TOOLS: Final = Tools(_move, _blocking, _prove)
