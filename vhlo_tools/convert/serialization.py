"""Programs to portable artifacts.

The steps are those of ``serializePortableArtifact`` in ``stablehlo/dialect/Serialization.cpp``: legalize StableHLO to
VHLO, bring VHLO to the target version, write it as bytecode with the version in the producer string. They are taken one
by one, on a copy of the caller's module, so that a failure is known by its step and can be explained. What is written
equals what the library's own function gives, byte for byte, but for locations that readers of the target choke on.
"""

from __future__ import annotations

from dataclasses import replace

from vhlo_tools.artifact import Artifact, other_dialects
from vhlo_tools.artifact.content import ARTIFACT_PRODUCER
from vhlo_tools.bindings import MLIRFailure, ModuleOp, Provider
from vhlo_tools.bytecode import decode_container
from vhlo_tools.compat import Target
from vhlo_tools.convert.explanation import (
    explain_downgrade,
    explain_legalization,
    explain_other_dialects,
    explain_refusal,
)
from vhlo_tools.convert.passes import to_version, to_vhlo
from vhlo_tools.convert.portable import make_portable
from vhlo_tools.dialect import known_feature
from vhlo_tools.errors import UnsupportedFeatureError
from vhlo_tools.findings import Finding
from vhlo_tools.program import Program
from vhlo_tools.retargeting import with_plain_locations
from vhlo_tools.version import Version

__all__ = ["newest_artifact", "serialize_program"]


def serialize_program(
    program: Program, target: Target, *, allow_other_dialects: bool = False, legalize: bool = True
) -> Artifact:
    """Write ``program`` as a portable artifact.

    Args:
        program: The program.
        target: What to write it for; a version that the provider's library can write.
        allow_other_dialects: Whether ops of other dialects may stay, which consumers since 1.11.0 read. Those that the
            program brought along from an artifact stay in any case.
        legalize: Whether what has no form in VHLO is rewritten, as far as that is possible.

    Raises:
        UnsupportedFeatureError: If it holds what no artifact can hold.
        DowngradeError: If it holds what the target version does not have.
        InvalidProgramError: If the program is not valid.
    """
    provider = program.provider
    allow_other_dialects = allow_other_dialects or bool(program.other_dialects)
    operation, notes = legalized(program, allow_other_dialects=allow_other_dialects, legalize=legalize)
    try:
        if target.version.minor_release < provider.library.current.minor_release:
            provider.run_passes(operation, to_version(target.version), verify=False)
        # Once, what will be written; the library verifies after each of its passes.
        provider.verify(operation)
        data = _written(provider, operation, target.version)
    except MLIRFailure as failure:
        newest = newest_artifact(program, allow_other_dialects=allow_other_dialects, legalize=legalize)
        raise explain_downgrade(program, target, newest.requirements(), failure) from failure
    if target.version < known_feature("range_locations").introduced:
        # The library leaves them in (`isLegalLocation` in stablehlo/transforms/VhloToVersion.cpp), and such readers
        # refuse the file.
        data = with_plain_locations(data, target.version)
    artifact = Artifact(data, name=program.name)
    if not allow_other_dialects and other_dialects(artifact):
        raise explain_other_dialects(program, other_dialects(artifact))
    warnings = [each for each in artifact.requirements().findings(target.version) if each.level == "warning"]
    return artifact.with_findings([*warnings, *notes])


def newest_artifact(program: Program, *, allow_other_dialects: bool, legalize: bool = True) -> Artifact:
    """Write ``program`` for the newest version of the provider's library, from which all versions can be judged.

    Its findings are notes of what was rewritten.

    Raises:
        UnsupportedFeatureError: If it holds what no artifact can hold.
        InvalidProgramError: If the program is not valid.
    """
    provider = program.provider
    operation, notes = legalized(program, allow_other_dialects=allow_other_dialects, legalize=legalize)
    try:
        provider.verify(operation)
        data = _written(provider, operation, provider.library.current)
    except MLIRFailure as failure:
        raise explain_refusal(program, failure) from failure
    artifact = Artifact(data, name=program.name)
    if not allow_other_dialects and other_dialects(artifact):
        raise explain_other_dialects(program, other_dialects(artifact))
    return artifact.with_findings(notes)


def legalized(program: Program, *, allow_other_dialects: bool, legalize: bool) -> tuple[ModuleOp, tuple[Finding, ...]]:
    """Return a fresh copy of ``program`` as VHLO of the library's current version, and notes of what was rewritten.

    Most programs are legalized as they are; only one that is refused is made portable first.

    Raises:
        UnsupportedFeatureError: If it holds what has no form in VHLO.
        InvalidProgramError: If the program is not valid.
    """
    provider, passes = program.provider, to_vhlo(allow_other_dialects=allow_other_dialects)
    operation = program.load()
    try:
        provider.run_passes(operation, passes, verify=False)
        return operation, ()
    except MLIRFailure as failure:
        if not legalize:
            refusal = explain_legalization(program, failure, allow_other_dialects=allow_other_dialects)
            if isinstance(refusal, UnsupportedFeatureError):
                summary = f"{refusal.summary}, and may not be rewritten (--no-legalize, legalize=False)"
                refusal = UnsupportedFeatureError(summary, refusal.findings)
            raise refusal from failure
    notes: tuple[Finding, ...] = ()
    try:
        portable, notes = make_portable(program, other_dialects=not allow_other_dialects)
        program = replace(program, load=lambda: provider.clone(portable))
        operation = program.load()
        provider.run_passes(operation, passes, verify=False)
    except MLIRFailure as failure:
        # What is left of it, where it could be rewritten.
        raise explain_legalization(program, failure, allow_other_dialects=allow_other_dialects) from failure
    return operation, notes


def _written(provider: Provider, operation: ModuleOp, version: Version) -> bytes:
    """Return ``operation`` as bytecode with the producer of a portable artifact.

    The bindings cannot set the producer, so the header is replaced. Offsets in the format are relative, and only the
    padding of aligned data, which no artifact of VHLO alone has, depends on how long the header is.
    """
    # The pieces are gone before the header is replaced: of large constants there are no more than two copies at a time.
    data = b"".join(provider.bytecode(operation, version))
    container = decode_container(memoryview(data))
    # Old versions of the format align what is in resources without saying so of their section.
    if any(section.alignment > 1 or (section.name == "resource" and section.size) for section in container.sections):
        return provider.serialize(provider.as_module(operation), version, allow_other_dialects=True)
    head = data[: data.index(container.producer.encode())]
    return b"".join([head, ARTIFACT_PRODUCER, str(version).encode(), b"\0", memoryview(data)[container.header_size :]])
