"""Serialization of programs, deserialization of artifacts, and retargeting that takes MLIR."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import partial
from traceback import clear_frames
from typing import TYPE_CHECKING, Final, Literal

from vhlo_tools.artifact import Artifact, hide_newer_ops, other_dialects, show_newer_ops, with_plain_locations
from vhlo_tools.bindings import Context, MLIRFailure, Module, ModuleOp, Provider, XlaFailure, get_provider
from vhlo_tools.bytecode import decode_container
from vhlo_tools.compat import (
    NO_EXPANSIONS,
    AllowRelaxed,
    Expand,
    ExpansionPolicy,
    Library,
    Target,
    expansion_policy,
    nesting_findings,
    resolve_target,
)
from vhlo_tools.conversion.expansion.expanding import Expanded, expand_module
from vhlo_tools.conversion.explanation import (
    explain_downgrade,
    explain_legalization,
    explain_other_dialects,
    explain_refusal,
    explain_shardings,
    kept_shardings,
)
from vhlo_tools.conversion.fidelity import to_version, to_vhlo
from vhlo_tools.conversion.legalizing import make_portable
from vhlo_tools.conversion.rewriter import Notes
from vhlo_tools.conversion.shardy import SHARDY
from vhlo_tools.errors import (
    DowngradeError,
    EngineStartError,
    InvalidProgramError,
    MalformedArtifactError,
    ProviderError,
    UnknownTargetError,
    UnsupportedFeatureError,
)
from vhlo_tools.files import ARTIFACT_PRODUCER
from vhlo_tools.program import Program, convert_hlo, load_program, names_in_utf8, read_artifact, screen_artifact
from vhlo_tools.records import dataclass
from vhlo_tools.spec import is_newer_than_data, known_feature, newest_version
from vhlo_tools.version import Version, VhloToolsError

if TYPE_CHECKING:
    from vhlo_tools.program import ExpandOptions

_PREFETCHES: Final = "mhlo.cross_program_prefetches"

# Conversion of programs to portable artifacts
#
# The steps are those of ``serializePortableArtifact`` in ``stablehlo/dialect/Serialization.cpp``: legalize StableHLO to
# VHLO, convert VHLO to the target version, write it as bytecode with the version in the producer string. They are
# executed separately, on a copy of the caller's module, so that the failing step is known and can be explained. The
# output equals that of the library's own function, byte for byte, except for locations that readers of the target
# reject.


class _Refused(Exception):  # noqa: N818 - it never leaves this module
    """A program was rejected in its present form; the explanation is computed only if no rewrite helps."""

    def __init__(self, explain: Callable[[], VhloToolsError]) -> None:
        super().__init__("refused")
        self.explain = explain


def serialize_program(
    program: Program,
    target: Target,
    *,
    allow_other_dialects: bool = False,
    legalize: bool = True,
    expand: Expand = False,
    allow_relaxed: AllowRelaxed = (),
    allow_signature_change: bool = False,
) -> Artifact:
    """Writes an artifact; ops of other dialects that an artifact already contained remain in any case.

    Shardings of several devices remain, too, as ops of Shardy, except below 1.11.0. The findings of the artifact are
    warnings of features that readers of the target may reject, and notes of the rewrites.
    """
    expansions = expansion_policy(expand, allow_relaxed, allow_signature_change)
    # What is of Shardy goes the same way whether it comes in an artifact, a module or text.
    contained = program.other_dialects - ({SHARDY} if legalize else set())
    allow_other_dialects = allow_other_dialects or bool(contained)
    with names_in_utf8(program.name):
        artifact = _legalized(program, target, expansions, allow_other_dialects=allow_other_dialects, legalize=legalize)
    found = artifact.requirements().findings(target.version, expansions)
    found += nesting_findings(artifact.file, target.consumers, program.name, level="warning")
    return artifact.with_findings([*(each for each in found if each.level == "warning"), *artifact.findings])


def newest_artifact(program: Program, *, allow_other_dialects: bool, legalize: bool = True) -> Artifact:
    """All versions can be checked from the newest artifact; its findings are notes of the rewrites."""
    with names_in_utf8(program.name):
        return _legalized(program, None, NO_EXPANSIONS, allow_other_dialects=allow_other_dialects, legalize=legalize)


def _legalized(
    program: Program, target: Target | None, expansions: ExpansionPolicy, *, allow_other_dialects: bool, legalize: bool
) -> Artifact:
    """Most programs need no legalization, and checking whether they do takes as long as writing them."""
    try:
        return _attempt(program, target, expansions, allow_other_dialects=allow_other_dialects)
    except _Refused as refusal:
        if allow_other_dialects:
            # The library then rejects nothing that legalization would rewrite.
            raise refusal.explain() from refusal
        if not legalize:
            error = refusal.explain()
            if isinstance(error, UnsupportedFeatureError):
                summary = f"{error.summary}, and rewriting is disabled (--no-legalize, legalize=False)"
                error = UnsupportedFeatureError(summary, error.findings)
            raise error from refusal
        # Frames in the traceback, and MLIR's error by locations, keep the rejected module alive, which may be large.
        each: BaseException | None = refusal
        while each is not None:
            clear_frames(each.__traceback__)
            if isinstance(each, MLIRFailure):
                each.__cause__ = each.__context__ = None
            each = each.__cause__
        try:
            portable, notes = make_portable(program)
        except MLIRFailure as failure:
            raise refusal.explain() from failure
    rewritten = replace(program, load=lambda: program.provider.clone(portable))
    try:
        artifact = _attempt(rewritten, target, expansions, allow_other_dialects=allow_other_dialects)
    except _Refused as refusal:
        found = _with_shardings(rewritten, target, expansions)
        if found is None:
            raise refusal.explain() from refusal
        artifact = found
    return artifact.with_findings([*artifact.findings, *notes])


def _with_shardings(program: Program, target: Target | None, expansions: ExpansionPolicy) -> Artifact | None:
    """Shardings become ops of Shardy, as in ``jax.export``; ``None`` if something else stands in the way."""
    try:
        newest = _attempt(program, None, NO_EXPANSIONS, allow_other_dialects=True)
    except (_Refused, VhloToolsError):
        # It is explained for the program without other dialects.
        return None
    if other_dialects(newest) != {SHARDY}:
        return None
    if target is None:
        return newest.with_findings([kept_shardings(program)])
    if target.version < known_feature("mixed_dialects").introduced:
        expanded = expand_module(program.provider, program.load(), target.version, expansions, program.name)
        raise explain_shardings(program, target, newest.requirements(), expansions, expanded.refusals)
    artifact = _attempt(program, target, expansions, allow_other_dialects=True)
    return artifact.with_findings([*artifact.findings, kept_shardings(program)])


def _attempt(
    program: Program, target: Target | None, expansions: ExpansionPolicy, *, allow_other_dialects: bool
) -> Artifact:
    """Nothing is rewritten but what is newer than the target; the findings are notes of these expansions."""
    provider, current = program.provider, program.provider.library.current
    version = target.version if target else current
    operation, again = program.load(), program.load
    notes = Notes(program.name)
    if _PREFETCHES in operation.operation.attributes and len(operation.operation.attributes[_PREFETCHES]):
        notes.add(operation.operation, f"the {_PREFETCHES} of the module were removed", "attribute")
        program = replace(program, load=partial(_without_prefetches, program))
        operation, again = program.load(), program.load
    expanded = Expanded((), ())
    if expansions and version.minor_release < current.minor_release:
        expanded = expand_module(provider, operation, version, expansions, program.name)
        again = partial(_expanded, program, version, expansions) if expanded.notes else again
    passes = to_vhlo(allow_other_dialects=allow_other_dialects)
    try:
        provider.run_passes(operation, passes, verify=False, before=(again, passes))
    except MLIRFailure as failure:
        # `failure` is bound now because Python deletes the name at the end of the clause.
        explain = partial(explain_legalization, program, failure, allow_other_dialects=allow_other_dialects)
        raise _Refused(explain) from failure
    try:
        if version.minor_release < current.minor_release:
            older = to_version(version)
            provider.run_passes(operation, older, verify=False, before=(again, f"{passes},{older}"))
        # Verified once, in its final form; the library verifies after each of its passes.
        provider.verify(operation)
        data = _written(provider, operation, version)
    except MLIRFailure as failure:
        if target is None:
            raise explain_refusal(program, failure) from failure
        explained = _explainable(replace(program, load=again), version, allow_other_dialects=allow_other_dialects)
        required = explained.requirements()
        raise explain_downgrade(program, target, required, failure, expansions, expanded.refusals) from failure
    artifact = Artifact(data, name=program.name, trusted=True)
    # The library keeps range locations (`isLegalLocation` in stablehlo/transforms/VhloToVersion.cpp), but readers of
    # versions before them reject the file.
    is_before = version < known_feature("range_locations").introduced
    if is_before and (plain := with_plain_locations(artifact.file, version)) is not None:
        artifact = Artifact(plain, name=program.name, trusted=True)
    if not allow_other_dialects and other_dialects(artifact):
        raise _Refused(partial(explain_other_dialects, program, other_dialects(artifact)))
    found = (*notes.findings, *expanded.notes)
    return artifact.with_findings(found) if found else artifact


def _explainable(program: Program, refused: Version, *, allow_other_dialects: bool) -> Artifact:
    """At the newest version of the library, or of the specification, if that is older and the program can be at it.

    Op versions that are newer than the specification are unknown, so it could not say why.
    """
    known = newest_version()
    if refused.minor_release < known < program.provider.library.current.minor_release:
        target = Target(str(known), known, "the newest in the specification")
        with suppress(DowngradeError, UnsupportedFeatureError):
            return _attempt(program, target, NO_EXPANSIONS, allow_other_dialects=allow_other_dialects)
    return _attempt(program, None, NO_EXPANSIONS, allow_other_dialects=allow_other_dialects)


def _without_prefetches(program: Program) -> ModuleOp:
    """They say what a TPU copies ahead of time. The verifier of MHLO ends the process where ``main`` is of VHLO."""
    operation = program.load()
    with operation.context:
        operation.operation.attributes[_PREFETCHES] = program.provider.ir.ArrayAttr.get([])
    return operation


def _expanded(program: Program, version: Version, expansions: ExpansionPolicy) -> ModuleOp:
    operation = program.load()
    expand_module(program.provider, operation, version, expansions, program.name)
    return operation


def _written(provider: Provider, operation: ModuleOp, version: Version) -> bytes:
    """The bindings cannot set the producer, so the header is replaced.

    Offsets in the format are relative, and only the padding of aligned data, which artifacts of only VHLO do not
    contain, depends on the length of the header.
    """
    # The pieces are released before the header is replaced, so that there are at most two copies of large constants.
    data = b"".join(provider.bytecode(operation, version))
    container = decode_container(memoryview(data))
    # Old versions of the format align data in resources without recording an alignment of the section.
    if any(section.alignment > 1 or (section.name == "resource" and section.size) for section in container.sections):
        return provider.serialize(provider.as_module(operation), version, allow_other_dialects=True)
    head = data[: data.index(container.producer.encode())]
    return b"".join([head, ARTIFACT_PRODUCER, str(version).encode(), b"\0", memoryview(data)[container.header_size :]])


# Conversion of portable artifacts to StableHLO, and to HLO by XLA in jaxlib

#: The forms in which the program in an artifact can be printed.
Emit = Literal["text", "bytecode"]


def deserialize_artifact(
    artifact: Artifact, provider: Provider, context: Context | None = None, *, trusted: bool = False
) -> Module:
    """The header and sections were checked on opening; ``context`` gets StableHLO's dialects if it lacks them."""
    if context is not None:
        provider.register_dialects(context)
    return read_artifact(artifact, provider, context, trusted=trusted)


def print_module(
    artifact: Artifact, provider: Provider, emit: Emit, *, debug_info: bool = False, trusted: bool = False
) -> bytes:
    module = deserialize_artifact(artifact, provider, trusted=trusted)
    if emit == "bytecode":
        return b"".join(provider.bytecode(module, provider.library.current))
    return provider.text(module, debug_info=debug_info).encode()


def hlo_of_artifact(artifact: Artifact, provider: Provider, *, text: bool, trusted: bool = False) -> bytes:
    """Retargets an artifact that is newer than XLA's StableHLO, that of ``provider``, the bindings of jaxlib."""
    current = provider.library.current
    if artifact.version.minor_release > current.minor_release:
        artifact = artifact.retargeted(current)
    if not trusted:
        screen_artifact(artifact, provider)
    name = artifact.name
    try:
        # XLA crashes the process on aliases that lack expected fields.
        proto: bytes = convert_hlo("hlo_of_stablehlo", bytes(artifact), name, trusted=trusted)
        return convert_hlo("text_of_hlo", proto, name, trusted=trusted).encode() if text else proto
    except XlaFailure as error:
        raise InvalidProgramError(f"{artifact.name} cannot be represented in HLO: {error}") from error


# Retargets artifacts through StableHLO's passes: with expansions, or where their bytes alone cannot be edited


@dataclass(frozen=True, slots=True)
class LibraryRetargeting:
    """Ops of other dialects in an artifact are kept."""

    target: str
    expansions: ExpandOptions
    as_of: date | None = None  # day from which windows in ``target`` count back; None for today
    provider: str | None = None
    trusted: bool = False  # MLIR may parse an artifact directly in this process

    def by_library(self, artifact: Artifact) -> Artifact:
        loaded = load_program(artifact, provider=self.provider, trusted=self.trusted)
        library = loaded.provider.library
        resolved = resolve_target(self.target, lambda: library, as_of=self.as_of).within(library)
        others = bool(loaded.other_dialects)
        return serialize_program(loaded, resolved, allow_other_dialects=others, **self.expansions)

    def if_it_can(self, artifact: Artifact) -> Artifact | None:
        """``None`` if no library is installed that reads the artifact and writes the target."""
        try:
            return self.by_library(artifact)
        except (MalformedArtifactError, UnknownTargetError, ProviderError, EngineStartError):
            return None

    def with_expansions(self, artifact: Artifact) -> Artifact:
        """Edits the bytes if that suffices; otherwise the library retargets the artifact."""
        library = get_provider(self.provider).library
        target = resolve_target(self.target, lambda: library, as_of=self.as_of).specified(lambda: library)
        version = target.version
        if is_newer_than_data(max(artifact.version, version)):
            # Only the library knows what came after the specification.
            if (moved := self.if_it_can(artifact)) is not None:
                return moved
            target.specified()
        try:
            retargeted = artifact.retargeted(version)
        except DowngradeError as downgrade:
            refusal = downgrade
        else:
            if self._has_expandable(retargeted):
                with suppress(MalformedArtifactError, UnknownTargetError):  # of a library older than the artifact
                    return self.by_library(artifact)
            return retargeted
        if artifact.version.minor_release <= library.current.minor_release:
            return self.by_library(artifact)
        return self._by_stand_ins(artifact, target, library, refusal)

    def _by_stand_ins(self, artifact: Artifact, target: Target, library: Library, refusal: DowngradeError) -> Artifact:
        """Let the library, which is older than the artifact, read all but the ops that it does not know."""
        policy = expansion_policy(**self.expansions)
        file = artifact.copy_of_file()
        hide_newer_ops(file, artifact.version, library.current)
        try:
            hidden = artifact.edited(file).retargeted(library.current)
        except DowngradeError as error:
            found = artifact.requirements().findings(target.version, policy)
            reason = (
                f"it cannot be expanded by {library.name}, of StableHLO {library.current}, which is older than the "
                f"artifact: install a release with {artifact.version.minor_release} or later"
            )
            errors = [replace(each, message=f"{each.message}; {reason}") for each in found if each.level == "error"]
            raise DowngradeError(refusal.summary, errors) from error
        loaded = load_program(hidden, provider=self.provider, trusted=self.trusted)
        expanded = expand_module(loaded.provider, loaded.load(), target.version, policy, artifact.name)
        known = min(target.version, library.current)
        moved = serialize_program(
            replace(loaded, load=partial(_expanded, loaded, target.version, policy)),
            Target(str(known), known, "what the library writes"),
            allow_other_dialects=bool(loaded.other_dialects),
            **self.expansions,
        ).retargeted(target.version)
        file = moved.copy_of_file()
        if show_newer_ops(file, target.version):
            raise explain_downgrade(loaded, target, artifact.requirements(), None, policy, expanded.refusals)
        return moved.edited(file).with_findings([*expanded.notes, *moved.findings])

    def _has_expandable(self, artifact: Artifact) -> bool:
        """Whether readers of its version reject something that may be expanded."""
        allowed = expansion_policy(**self.expansions)
        found = artifact.requirements().findings(artifact.version)
        return any(each.feature in allowed.exact | allowed.relaxed for each in found)
