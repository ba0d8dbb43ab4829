"""Programs to portable artifacts.

The steps are those of ``serializePortableArtifact`` in ``stablehlo/dialect/Serialization.cpp``: legalize StableHLO to
VHLO, bring VHLO to the target version, write it as bytecode with the version in the producer string. They are taken one
by one, on a copy of the caller's module, so that a failure is known by its step and can be explained. What is written
equals what the library's own function gives, byte for byte, but for locations that readers of the target choke on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from traceback import clear_frames

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
from vhlo_tools.dialect import known_feature
from vhlo_tools.errors import UnsupportedFeatureError, VhloToolsError
from vhlo_tools.portable import make_portable
from vhlo_tools.program import Program
from vhlo_tools.retargeting import with_plain_locations
from vhlo_tools.version import Version

__all__ = ["newest_artifact", "serialize_program"]


class _Refused(Exception):  # noqa: N818 - it never leaves this module
    """A program was refused as it stands; why is found out only if nothing can be done about it.

    Attributes:
        explain: Finds out.
    """

    def __init__(self, explain: Callable[[], VhloToolsError]) -> None:
        super().__init__("refused")
        self.explain = explain


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

    Returns:
        The artifact, with warnings of what readers of the target choke on, and notes of what was rewritten.

    Raises:
        UnsupportedFeatureError: If it holds what no artifact can hold.
        DowngradeError: If it holds what the target version does not have.
        InvalidProgramError: If the program is not valid.
    """
    allow_other_dialects = allow_other_dialects or bool(program.other_dialects)
    artifact = _attempted(program, target, allow_other_dialects=allow_other_dialects, legalize=legalize)
    warnings = [each for each in artifact.requirements().findings(target.version) if each.level == "warning"]
    return artifact.with_findings([*warnings, *artifact.findings])


def newest_artifact(program: Program, *, allow_other_dialects: bool, legalize: bool = True) -> Artifact:
    """Write ``program`` for the newest version of the provider's library, from which all versions can be judged.

    Its findings are notes of what was rewritten.

    Raises:
        UnsupportedFeatureError: If it holds what no artifact can hold.
        InvalidProgramError: If the program is not valid.
    """
    return _attempted(program, None, allow_other_dialects=allow_other_dialects, legalize=legalize)


def _attempted(program: Program, target: Target | None, *, allow_other_dialects: bool, legalize: bool) -> Artifact:
    """Write ``program`` as it is, or made portable first if it is refused.

    Most programs need nothing, and looking for what they might need takes as long as writing them.
    """
    try:
        return _attempt(program, target, allow_other_dialects=allow_other_dialects)
    except _Refused as refusal:
        if not legalize or allow_other_dialects:
            # Of what other dialects have, the library refuses nothing once they may stay.
            error = refusal.explain()
            if not legalize and isinstance(error, UnsupportedFeatureError):
                summary = f"{error.summary}, and may not be rewritten (--no-legalize, legalize=False)"
                error = UnsupportedFeatureError(summary, error.findings)
            raise error from refusal
        _let_go(refusal)
        try:
            portable, notes = make_portable(program)
        except MLIRFailure as failure:
            raise refusal.explain() from failure
    rewritten = replace(program, load=lambda: program.provider.clone(portable))
    try:
        artifact = _attempt(rewritten, target, allow_other_dialects=allow_other_dialects)
    except _Refused as refusal:
        raise refusal.explain() from refusal
    return artifact.with_findings(notes)


def _let_go(refusal: _Refused) -> None:
    """Let go of the module that was refused, which may be large: the frames that ``refusal`` came through hold it.

    So does MLIR's own error by its places; what that says is in the failure that was made of it.
    """
    each: BaseException | None = refusal
    while each is not None:
        clear_frames(each.__traceback__)
        if isinstance(each, MLIRFailure):
            each.__cause__ = each.__context__ = None
        each = each.__cause__


def _attempt(program: Program, target: Target | None, *, allow_other_dialects: bool) -> Artifact:
    """Write ``program`` as it is for a target, or for the newest version.

    Raises:
        _Refused: If it holds what no artifact can hold.
        DowngradeError: If it holds what the target version does not have.
        InvalidProgramError: If the program is not valid.
    """
    provider, current = program.provider, program.provider.library.current
    version = target.version if target else current
    operation = program.load()
    try:
        provider.run_passes(operation, to_vhlo(allow_other_dialects=allow_other_dialects), verify=False)
    except MLIRFailure as failure:
        # Python forgets the name of an exception where its clause ends.
        raise _Refused(
            partial(explain_legalization, program, failure, allow_other_dialects=allow_other_dialects)
        ) from failure
    try:
        if version.minor_release < current.minor_release:
            provider.run_passes(operation, to_version(version), verify=False)
        # Once, what will be written; the library verifies after each of its passes.
        provider.verify(operation)
        data = _written(provider, operation, version)
    except MLIRFailure as failure:
        if target is None:
            raise explain_refusal(program, failure) from failure
        newest = _attempt(program, None, allow_other_dialects=allow_other_dialects)
        raise explain_downgrade(program, target, newest.requirements(), failure) from failure
    if version < known_feature("range_locations").introduced:
        # The library leaves them in (`isLegalLocation` in stablehlo/transforms/VhloToVersion.cpp), and such readers
        # refuse the file.
        data = with_plain_locations(data, version)
    artifact = Artifact(data, name=program.name, trusted=True)
    if not allow_other_dialects and other_dialects(artifact):
        raise _Refused(partial(explain_other_dialects, program, other_dialects(artifact)))
    return artifact


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
