"""Compatibility checks of programs, before writing and before loading."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Unpack

from vhlo_tools.api.conversion import ArtifactSource, resolve_target, retarget
from vhlo_tools.api.frontends import as_artifact, as_container, as_program
from vhlo_tools.artifact import Artifact, ManifestChoice, manifest_finding, require_manifest
from vhlo_tools.compat import AllowRelaxed, Expand, Target, expansion_policy
from vhlo_tools.errors import DowngradeError, UnsupportedFeatureError, VhloToolsError
from vhlo_tools.files import digest_of, identify, is_path, place, read_bytes
from vhlo_tools.findings import NEWER_THAN_DATA, Finding, Findings
from vhlo_tools.records import dataclass
from vhlo_tools.spec import is_newer_than_data, newest_version

if TYPE_CHECKING:
    from vhlo_tools.files import JaxExport
    from vhlo_tools.program import CheckOptions, LoadOptions, Program, ProgramSource
    from vhlo_tools.spec import Release
    from vhlo_tools.version import Version

# Answers of the installed library about programs and targets that are newer than the specification
#
# A specification can be older than the library, as on the day of a new release. Its facts then still hold; later ones
# are known to the library alone, and only writing shows whether an op may stand at an older version.


def findings_with_library(
    artifact: Artifact, target: Version, *, provider: str | None = None, trusted: bool = False
) -> list[Finding]:
    """Return the findings of an artifact at a target; what the specification does not have, the library is asked.

    It is asked to write the program at the target. Where it does, whatever is unknown is no obstacle; where it refuses,
    its reasons are among the findings. A note says that it was asked about something unknown, or about a version that
    the specification does not have; or, if no library can be asked, that this is unknown.
    """
    found = artifact.requirements().findings(target)
    beyond = is_newer_than_data(target)
    if artifact.version.minor_release == target.minor_release or not (beyond or _is_open(found)):
        return found
    refused = _refusals(artifact, target, provider, trusted)
    if refused is None:
        return [*found, *([] if _is_open(found) else [_left_to_library(target)])]
    names = sorted({each.feature for each in found if each.unknown and each.feature != NEWER_THAN_DATA})
    known = [each for each in found if each.level != "error" and not each.unknown]
    # Those of the library have all errors of the specification too.
    told = [_asked(target, names, provider)] if beyond or names else []
    return [*refused, *known, *told]


def reader_findings_with_library(
    artifact: Artifact, reader: Version, *, provider: str | None = None, trusted: bool = False
) -> list[Finding]:
    """Return the reasons why a reader of a version rejects an artifact as it is.

    Where the artifact is newer than the specification, the library is asked whether all that is in the program was
    there at that version. What is unknown remains an error, because it stands in the bytes.
    """
    found = artifact.requirements().reader_findings(reader)
    unsure = [each for each in found if each.feature == NEWER_THAN_DATA]
    if not unsure or any(each.level == "error" for each in found):
        return found
    refused = _refusals(artifact, reader, provider, trusted)
    return found if refused is None else [*refused, *(each for each in found if each not in unsure)]


def _refusals(artifact: Artifact, target: Version, provider: str | None, trusted: bool) -> list[Finding] | None:
    """Return the reasons of the library not to write an artifact at a version; ``None`` if it cannot be asked."""
    # Imported here because hardly any check needs MLIR.
    from vhlo_tools.conversion import LibraryRetargeting

    try:
        moved = LibraryRetargeting(str(target), {}, None, provider, trusted).if_it_can(artifact)
    except (DowngradeError, UnsupportedFeatureError) as error:
        return [replace(each, target=target) for each in error.findings]
    except VhloToolsError:
        # Whatever else is wrong with the file is told by what reads it.
        return None
    return None if moved is None else []


def _is_open(found: list[Finding]) -> bool:
    """Whether somebody who knows newer versions could decide more."""
    return any(each.unknown for each in found)


def _left_to_library(target: Version) -> Finding:
    message = (
        f"StableHLO {target} is newer than {newest_version()}, where the data of vhlo_tools end: that its readers "
        "accept older programs is its promise, and was not examined"
    )
    remedy = f"update vhlo_tools; or install a library with StableHLO {target} or later, which is then asked"
    return Finding(NEWER_THAN_DATA, "note", "encoding", message, target=target, remedy=remedy, unknown=True)


def _asked(target: Version, names: list[str], provider: str | None) -> Finding:
    from vhlo_tools.bindings import get_provider

    library = get_provider(provider).library
    unknown = f", and do not have {', '.join(names)}" if names else ""
    message = (
        f"the data of vhlo_tools end at StableHLO {newest_version()}{unknown}: {library.name}, with {library.current}, "
        f"was asked about {target}"
    )
    return Finding(NEWER_THAN_DATA, "note", "encoding", message, target=target, unknown=True)


@dataclass(slots=True)
class Checked:
    """A program prepared for checks against any number of versions."""

    artifact: Artifact | None  # of the newest version for programs that are none; None if none can represent it
    general: tuple[Finding, ...]  # findings that apply at every version
    container: JaxExport | None = None  # the jax.export file that contains the artifact
    expand: Callable[[Artifact, Version], Artifact] | None = None  # writes at a version with the allowed expansions
    provider: str | None = None
    trusted: bool = False

    def findings(self, target: Version, consumers: Sequence[Release] = ()) -> list[Finding]:
        """With expansions, return notes of what is rewritten, and the reasons that remain."""
        found = self._findings(self.artifact, target) if self.artifact else []
        # Features with an error among the general findings need no warning.
        refused = {finding.feature for finding in self.general if finding.level == "error"}
        kept = [each for each in found if each.level == "error" or each.feature not in refused]
        required = self.artifact and self.artifact.requirements()
        kept += self._nesting(consumers)
        about = (*required.unreadable, *required.violations, *required.notes) if required else ()
        return [*self.general, *kept, *about]

    def _nesting(self, consumers: Sequence[Release]) -> list[Finding]:
        if self.artifact is None or not any(each.loses for each in consumers):
            return []
        # Imported here because few releases take it.
        from vhlo_tools.compat import nesting_findings

        return nesting_findings(self.artifact.file, consumers, self.artifact.name)

    def _findings(self, artifact: Artifact, target: Version) -> list[Finding]:
        found = findings_with_library(artifact, target, provider=self.provider, trusted=self.trusted)
        if self.expand is None or all(each.level == "note" for each in found):
            return found
        try:
            # An artifact that is written has warnings, and notes of the expansions, among its findings.
            return list(self.expand(artifact, target).findings)
        except DowngradeError as error:
            return [*error.findings, *(each for each in found if each.level != "error")]

    def confirmed_findings(
        self, target: Version, releases: Sequence[str], most_memory: int | None = None
    ) -> list[Finding]:
        """Return an error for each release that refuses the program as written for ``target``, where no error is known.

        Releases older than ``target`` are not asked. Those with a device compile it: an alias that is not kept is a
        warning, and memory beyond ``most_memory`` bytes on a device an error.
        """
        from vhlo_tools.releases import refusals

        if self.artifact is None:
            return []
        if self.expand is not None and self.artifact.requirements().findings(target):
            return refusals(releases, self.expand(self.artifact, target), target, most_memory)
        return refusals(releases, retarget(self.artifact, target, provider=self.provider), target, most_memory)

    def confirmed_reader_findings(
        self, reader: Target, releases: Sequence[str], most_memory: int | None = None
    ) -> list[Finding]:
        """As :meth:`confirmed_findings`, for the artifact as it is."""
        from vhlo_tools.releases import refusals

        return [] if self.artifact is None else refusals(releases, self.artifact, reader.version, most_memory)

    def reader_findings(self, reader: Target) -> list[Finding]:
        """Return why a consumer cannot read the program unchanged; jax reads the container of a jax.export file too."""
        found = [each for each in self.general if each.level != "warning"]
        if self.artifact:
            found += reader_findings_with_library(
                self.artifact, reader.version, provider=self.provider, trusted=self.trusted
            )
        found += self._nesting(reader.consumers)
        if self.container is None:
            return found
        # Imported here because few artifacts are in one.
        from vhlo_tools.artifact import container_findings

        return [*found, *container_findings(self.container, reader.consumers)]


def prepare_check(
    program: ProgramSource,
    *,
    allow_other_dialects: bool = False,
    legalize: bool = True,
    expand: Expand = False,
    allow_relaxed: AllowRelaxed = (),
    allow_signature_change: bool = False,
    read_with: str | None = None,
    **options: Unpack[LoadOptions],
) -> Checked:
    """Prepare a program for checks, as :func:`check` takes it.

    Artifacts are checked on their bytes, without MLIR; other programs are legalized once, at the newest version of the
    library.
    """
    name, provider, trusted = options.get("name"), options.get("provider"), options.get("trusted", False)
    if read_with is not None:
        from vhlo_tools.releases import read_in_time

        program = read_in_time(program, read_with, name)
    expanding = None
    if expansion_policy(expand, allow_relaxed, allow_signature_change):

        def expanding(artifact: Artifact, target: Version) -> Artifact:
            return retarget(
                artifact,
                target,
                expand=expand,
                allow_relaxed=allow_relaxed,
                allow_signature_change=allow_signature_change,
                provider=provider,
                trusted=trusted,
            )

    try:
        program = as_program(
            program, name=name, provider=provider, allow_other_dialects=allow_other_dialects, legalize=legalize
        )
    except UnsupportedFeatureError as error:
        # A framework's program that no artifact can represent.
        return Checked(None, error.findings)
    artifact = as_artifact(program, name)
    if artifact is not None:
        contradiction = artifact.requirements().contradiction
        general = (*((contradiction,) if contradiction else ()), *artifact.alias_findings())
        return Checked(artifact, general, as_container(program, name), expanding, provider, trusted)
    from vhlo_tools.program import load_program, names_in_utf8

    loaded = load_program(program, **options)
    with names_in_utf8(loaded.name):
        checked = _check_program(loaded, allow_other_dialects=allow_other_dialects, legalize=legalize)
    checked.expand = expanding
    checked.provider = loaded.provider.prefix
    return checked


def _check_program(loaded: Program, *, allow_other_dialects: bool, legalize: bool) -> Checked:
    from vhlo_tools.conversion import changed_attributes, newest_artifact

    try:
        written = newest_artifact(loaded, allow_other_dialects=allow_other_dialects, legalize=legalize)
        return Checked(written, (*changed_attributes(loaded, written), *written.findings, *written.alias_findings()))
    except UnsupportedFeatureError as error:
        refused = error.findings
    changed = changed_attributes(loaded)
    if allow_other_dialects:
        return Checked(None, (*refused, *changed))
    try:
        # With the unsupported ops kept as they are, the rest of the program can be checked too.
        written = newest_artifact(loaded, allow_other_dialects=True, legalize=legalize)
        return Checked(written, (*refused, *changed, *written.findings, *written.alias_findings()))
    except UnsupportedFeatureError:
        return Checked(None, (*refused, *changed))


def check(
    program: ProgramSource,
    target: str | Version = "current",
    *,
    as_of: date | None = None,
    **options: Unpack[CheckOptions],
) -> list[Finding]:
    """Return all reasons why a program cannot be written for a target, and warnings about readers of the target.

    Args:
        program: Anything that :func:`vhlo_tools.serialize` accepts. An artifact is checked on its bytes, without MLIR.
        target: The target version or consumer, in the target grammar.
        as_of: The day from which windows in ``target`` count back, by default today.
        options: ``allow_other_dialects``, ``legalize``, ``expand``, ``allow_relaxed``, ``allow_signature_change``,
            ``read_with``, ``name``, ``provider`` and ``trusted``, as for :func:`vhlo_tools.serialize`; dialects in an
            artifact may remain in any case.

    Returns:
        Errors for what cannot be written, warnings for what consumers may reject, and notes of custom calls, which no
        version guarantees to support. The check passes if there are no errors or warnings. Aliases that XLA rejects are
        errors at every version, and so are violations of the specification on which engines part, and a file that is
        not what the manifest beside it says.

    Raises:
        InvalidProgramError: If it is not a valid program.
        MalformedArtifactError: If it is a damaged artifact.
        UnknownTargetError: If the target is unknown.
        InvalidVersionError: If the target looks like a version but is not valid.
    """
    resolved = resolve_target(str(target), as_of=as_of, provider=options.get("provider"))
    source = identify(program, options.get("name"))
    found = prepare_check(source, **options).findings(resolved.version, resolved.consumers)
    if source.data is not None and not source.is_text and is_path(source.given):
        differs = manifest_finding(str(source.given), digest_of(source.data))
        found = [*([differs] if differs else ()), *found]
    return Findings(found)


def require(
    artifact: ArtifactSource, reader: str | Version, *, as_of: date | None = None, manifest: ManifestChoice = None
) -> Target:
    """Raise unless ``reader`` can read an artifact: a guard for servers, which needs no MLIR.

    Where a manifest lies beside the file, the file must be what it says.

    Args:
        artifact: The artifact, its path or its bytes, or those of a jax.export file.
        reader: The consumer, in the target grammar: ``jaxlib==0.8.3``, or its StableHLO version.
        as_of: The day from which windows in ``reader`` count back, by default today.
        manifest: Which manifest the artifact must match: by default the one beside its file, if there is one; ``True``
            for the one beside it, which must be there; a :class:`Manifest` or the path of one; ``False`` for none.

    A jax.export file is read by jax: if ``reader`` names a release of jax or jaxlib, the file around the artifact is
    examined too. Where the artifact is newer than the specification, the installed library is asked; without one that
    reads it, the artifact is refused, because nobody here can say what its readers need.

    Returns:
        The resolved ``reader``.

    Raises:
        UnsupportedFeatureError: If the reader cannot read the artifact; the findings list the reasons.
        ManifestError: If the artifact is not what its manifest says, or one is required and not there.
        MalformedArtifactError: If it is not an artifact, or a damaged one.
        UnknownTargetError: If the reader is unknown.
        InvalidVersionError: If the reader looks like a version but is not valid.
    """
    target = resolve_target(str(reader), as_of=as_of)
    # Read once: what is compared with the manifest is what is examined.
    path = artifact if is_path(artifact) else None
    held: Any = artifact if path is None else read_bytes(place(path))
    if path is not None or manifest is not None:
        require_manifest(held, path, manifest)
    opened = Artifact.open(held, name=None if path is None else str(path))
    checked = Checked(opened, (), None if isinstance(held, Artifact) else as_container(held))
    # A guard lets nothing pass that it cannot judge.
    findings = [each for each in checked.reader_findings(target) if each.level == "error" or each.unknown]
    if findings:
        raise UnsupportedFeatureError(f"{opened.name} cannot be read by {target}", findings)
    return target
