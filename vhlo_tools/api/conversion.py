"""Conversion between programs and artifacts, and between versions."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, Literal, Unpack, get_args

from vhlo_tools.api.frontends import as_program
from vhlo_tools.artifact import Artifact, Making, non_default_options, other_dialects, require_manifest
from vhlo_tools.compat import AllowRelaxed, Expand, Library, Target, expansion_policy, resolve_target as resolve
from vhlo_tools.errors import AliasError, MalformedArtifactError, ProviderError, UnsupportedFeatureError
from vhlo_tools.files import Buffer, Kind, Source, is_path, join, place, read_bytes
from vhlo_tools.findings import OPAQUE_PROPERTIES, Finding
from vhlo_tools.records import dataclass
from vhlo_tools.spec import is_newer_than_data

if TYPE_CHECKING:
    from vhlo_tools.bindings import Context, Module
    from vhlo_tools.conversion import LibraryRetargeting
    from vhlo_tools.program import ExpandOptions, ImportOptions, LoadOptions, ProgramSource, WriteOptions
    from vhlo_tools.version import Version

Emit = Literal["text", "bytecode", "vhlo", "hlo-text", "hlo-proto"]
Engine = Literal["auto", "bytes", "mlir"]
ArtifactSource = str | PathLike[str] | Buffer | Artifact


def open_artifact(source: ArtifactSource, *, name: str | None = None) -> Artifact:
    """Open a portable artifact, lazily and without MLIR.

    Args:
        source: A path or the bytes of an artifact, or of a jax.export file, which yields the artifact in it.
        name: The name of the artifact in messages, by default its path.

    Raises:
        MalformedArtifactError: If it is not an artifact, or its header or its sections are damaged.
        OSError: If the file cannot be read.
    """
    return Artifact.open(source, name=name)


def resolve_target(target: str, *, as_of: date | None = None, provider: str | None = None) -> Target:
    """Return the StableHLO version that a target stands for.

    Args:
        target: A target in the target grammar (see :mod:`vhlo_tools.compat.targets`).
        as_of: The day from which windows count back, by default today.
        provider: The bindings that define ``current``, ``WEEK_4`` and similar targets.

    Raises:
        UnknownTargetError: If the target names no known version.
        InvalidVersionError: If the target looks like a version but is not valid.
    """
    return resolve(target, lambda: _library(provider), as_of=as_of)


def resolve_reachable(target: str, *, as_of: date | None = None, provider: str | None = None) -> Target:
    """Return the version that a target stands for, which must be in the specification, or one that the library has."""
    return _reachable(resolve_target(target, as_of=as_of, provider=provider), provider)


def serialize(
    program: ProgramSource,
    target: str | Version = "current",
    *,
    allow_other_dialects: bool = False,
    legalize: bool = True,
    expand: Expand = False,
    allow_relaxed: AllowRelaxed = (),
    allow_signature_change: bool = False,
    alias_lint: bool = True,
    strip_debug_info: bool = False,
    name: str | None = None,
    as_of: date | None = None,
    provider: str | None = None,
    signature: str | None = None,
    batch_size: int | None = None,
    importer: str | None = None,
    import_timeout: float | None = None,
    import_memory: int | None = None,
    verify: bool | None = None,
    read_with: str | None = None,
    trusted: bool = False,
) -> Artifact:
    """Write a program as a portable artifact.

    Args:
        program: An ``ir.Module`` of any provider, which is not changed; MLIR text or bytes; an artifact, which is
            retargeted on bytes if it is newer than the library; a
            ``jax.stages.Lowered`` or ``Traced``; a ``jax.export.Exported`` or its serialized bytes; a
            ``torch.export.ExportedProgram`` or its serialized bytes, which torch and an importer export; a path to a
            file with any of these; or the path of the folder of a SavedModel, which TensorFlow exports.
        target: The target version or consumer, in the target grammar. For a named consumer that reads newer versions
            than the installed library writes, the newest version of the library is written.
        allow_other_dialects: Whether ops of dialects other than StableHLO, such as ``sdy``, may remain unchanged.
        legalize: Whether constructs that no artifact can contain are rewritten into equivalent StableHLO where a
            rewrite is known: constants in resources, ops of `chlo`, `mhlo`, `arith`, `math`, `tensor` and `shape`,
            attributes without a form in VHLO.
        expand: Whether features newer than the target are rewritten into older ones, where the program computes the
            same afterwards; or the ids of the features for which this is allowed. Only ops that stand in the way are
            changed. ``docs/expansions.md`` lists them.
        allow_relaxed: The ids of the features that may be rewritten with something given up, such as a requested
            accuracy, or ``all``.
        allow_signature_change: Whether expansions may change the types of arguments and results of public functions, to
            integers that store elements of types that are newer than the target. Notes say how to feed and read them.
        alias_lint: Whether to reject aliases and donors that XLA rejects.
        strip_debug_info: Whether to omit source locations.
        name: The name of the program in messages, by default its path.
        as_of: The day from which windows in ``target`` count back, by default today.
        provider: The bindings to use, by default those of the module, or the installed ones.
        signature: For a SavedModel, the signature; by default ``serving_default``.
        batch_size: For a SavedModel, the size of the first dimension of inputs that leave it open.
        importer: For a program of torch.export, ``torchax``, ``torch-mlir`` or ``auto``, the default, which takes
            torchax where it can be imported, and the other one for what the first refuses.
        import_timeout: For a program of torch.export, the time limit of torch-mlir in seconds, by default 600.
        import_memory: For a program of torch.export, the memory limit of torch-mlir in bytes, by default 8 GiB.
        verify: For a framework's program, whether what it computes is compared with what the framework computes: on
            the example inputs in it, or on random ones. By default that is done where it has example inputs.
        read_with: For MLIR text that only an older release reads, that release, such as ``jaxlib==0.4.20``: it writes
            the text as an artifact of its version, in an environment that is made on first use and kept. StableHLO
            promises nothing for its text, and a refusal names the newest release that reads it.
        trusted: Whether MLIR may parse an artifact, bytecode or text directly in this process. Otherwise a child
            process parses it first, because what is damaged can crash the parser. Artifacts that this process wrote are
            trusted.

    Returns:
        The artifact. Its ``findings`` are warnings of features that the library accepts but a consumer may reject, of
        suspicious aliases, and of donations that jax dropped, and notes of what was rewritten.

    Raises:
        DowngradeError: If the program needs a feature newer than the target.
        UnsupportedFeatureError: If it contains something that no artifact can represent.
        AliasError: If it contains aliases or donors that XLA rejects.
        InvalidProgramError: If it is not a valid program.
        MalformedArtifactError: If it is a damaged artifact.
        UnknownTargetError: If the target is unknown, or a version that the library cannot write.
        InvalidVersionError: If the target looks like a version but is not valid.
        InvalidInputError: If there is no such signature, or the shape of a SavedModel's input remains open.
        MissingExtraError: If the framework of the program is not installed, or uv, which makes environments.
        ReleaseEnvironmentError: If the release of ``read_with`` cannot be had, or writes no artifacts.
        ManifestError: If it is a file that is not what the manifest beside it says.
        ValueError: If a feature to be expanded is unknown, or has no such expansion.
    """
    # Imported here because retargeting needs none of it.
    from vhlo_tools.api.frontends import FRONTENDS, export_model
    from vhlo_tools.artifact import check_source
    from vhlo_tools.files import identify

    source = identify(program, name)
    check_source(source).require()
    if read_with is not None:
        from vhlo_tools.releases import read_in_time

        source = read_in_time(source, read_with)
    writing: WriteOptions = {
        "allow_other_dialects": allow_other_dialects,
        "legalize": legalize,
        "expand": expand,
        "allow_relaxed": allow_relaxed,
        "allow_signature_change": allow_signature_change,
    }
    importing: ImportOptions = {
        "signature": signature,
        "batch_size": batch_size,
        "importer": importer,
        "import_timeout": import_timeout,
        "import_memory": import_memory,
        "verify": verify,
    }
    if source.kind in FRONTENDS or any(option is not None for option in importing.values()):
        artifact = export_model(
            source, target, name=name, as_of=as_of, provider=provider, **writing, **importing
        ).artifact
        library: str | None = _library(provider).name
    elif (newer := _newer_than_library(source, provider, allow_other_dialects)) is not None:
        expanding: ExpandOptions = {"expand": expand, "allow_relaxed": allow_relaxed}
        expanding["allow_signature_change"] = allow_signature_change
        artifact = retarget(newer, target, as_of=as_of, provider=provider, trusted=trusted, **expanding)
        library = artifact.made.library if artifact.made is not None else None
    else:
        from vhlo_tools.conversion import serialize_program
        from vhlo_tools.program import load_program

        loaded = load_program(source, name=name, provider=provider, trusted=trusted)
        own = loaded.provider.library
        artifact = serialize_program(loaded, resolve(str(target), lambda: own, as_of=as_of).within(own), **writing)
        library = own.name
    artifact = linted(artifact) if alias_lint else artifact
    artifact = strip(artifact) if strip_debug_info else artifact
    given = non_default_options(
        {"legalize": True, "alias_lint": True},
        **writing,
        alias_lint=alias_lint,
        strip_debug_info=strip_debug_info,
        as_of=as_of,
        signature=signature,
        batch_size=batch_size,
        importer=importer,
        read_with=read_with,
    )
    return artifact.with_making(Making("serialize", str(target), library, given))


def _newer_than_library(source: Source, provider: str | None, allow_other_dialects: bool) -> Artifact | None:
    """The program as an artifact if it is one that the library does not read, and can be retargeted."""
    from vhlo_tools.api.frontends import as_artifact

    if source.kind is not Kind.PORTABLE_ARTIFACT:
        return None
    with suppress(MalformedArtifactError):  # whose errors are those of what reads programs
        artifact = as_artifact(source)
        if artifact is not None and artifact.version.minor_release > _library(provider).current.minor_release:
            return artifact if allow_other_dialects or not other_dialects(artifact) else None
    return None


def linted(artifact: Artifact) -> Artifact:
    """Return an artifact with the warnings about its aliases added to its findings; errors of XLA are raised."""
    found = artifact.alias_findings()
    if errors := [each for each in found if each.level == "error"]:
        raise AliasError(f"{artifact.name} has aliases that XLA rejects (--no-alias-lint accepts them)", errors)
    new = [each for each in found if each not in artifact.findings]
    return artifact.with_findings([*artifact.findings, *new]) if new else artifact


def strip(artifact: ArtifactSource) -> Artifact:
    """Return an artifact without debug information: every source location becomes unknown. No MLIR is needed.

    A jax.export file is stripped by :func:`vhlo_tools.integrations.jax.strip`.

    Args:
        artifact: The artifact, its path or its bytes.

    Raises:
        ManifestError: If it is a file that is not what the manifest beside it says.
        MalformedArtifactError: If it is not an artifact, or a damaged one.
    """
    whole = _opened(artifact, unpack=False)
    stripped = Artifact(join(whole.stripped()), name=whole.name, trusted=whole.trusted)
    return stripped.with_findings(whole.findings).with_making(Making("strip"))


def retarget(
    artifact: ArtifactSource,
    target: str | Version,
    *,
    engine: Engine = "auto",
    expand: Expand = False,
    allow_relaxed: AllowRelaxed = (),
    allow_signature_change: bool = False,
    as_of: date | None = None,
    provider: str | None = None,
    trusted: bool = False,
) -> Artifact:
    """Retarget an artifact to an older or newer version; ops of other dialects in it are kept.

    On bytes this needs no MLIR, supports every version in the specification, independently of the installed library,
    and loads no constants: the result refers to those of ``artifact``, and its ``save`` copies them from file to file.
    For a jax.export file use :func:`vhlo_tools.integrations.jax.retarget`.

    Args:
        artifact: The artifact, its path or its bytes.
        target: The target version or consumer, in the target grammar.
        engine: ``bytes``; ``mlir``, the installed library, which must be able to read the source version and to write
            the target version; or ``auto``, which uses ``mlir`` only for what cannot be retargeted on bytes, and for
            artifacts and targets that are newer than the specification, if the library has their versions.
        expand: Which features newer than the target are rewritten, as for :func:`serialize`. It needs MLIR, and is done
            only if the artifact cannot be retargeted as it is; an artifact newer than the installed library is brought
            down to its version on bytes first.
        allow_relaxed: Those that may be rewritten with something given up, as for :func:`serialize`.
        allow_signature_change: Whether that may change the types of arguments and results, as for :func:`serialize`.
        as_of: The day from which windows in ``target`` count back, by default today.
        provider: The bindings to use, by default the installed ones.
        trusted: Whether MLIR may parse the artifact directly in this process, as for :func:`serialize`.

    Raises:
        ManifestError: If it is a file that is not what the manifest beside it says.
        DowngradeError: If it needs a feature newer than the target.
        UnsupportedFeatureError: If it contains a feature that the target no longer has, or that cannot be retargeted
            on bytes.
        MalformedArtifactError: If it is not an artifact, or a damaged one, or, with MLIR, one the library cannot read.
        UnknownTargetError: If the target is unknown, or, with MLIR, a version that the library cannot write.
        InvalidVersionError: If the target looks like a version but is not valid.
        ValueError: If there is no such engine, or a feature to be expanded is unknown, or has no such expansion.
    """
    options: ExpandOptions = {"expand": expand, "allow_relaxed": allow_relaxed}
    options["allow_signature_change"] = allow_signature_change
    expands = bool(expansion_policy(**options))
    if expands and engine == "bytes":
        raise ValueError("expansions need MLIR: expected the engine auto or mlir")
    if engine not in get_args(Engine):
        raise ValueError(f"unknown engine {engine!r}: expected one of {', '.join(get_args(Engine))}")
    opened = _opened(artifact, unpack=False)
    given = non_default_options({"engine": "auto"}, engine=engine, as_of=as_of, **options)

    def made(moved: Artifact, *, by_library: bool) -> Artifact:
        library = _library(provider).name if by_library else None
        whole = moved.with_making(Making("retarget", str(target), library, given))
        # What the library writes has these findings.
        if by_library or not isinstance(whole, Artifact) or not any(each.loses for each in resolved.consumers):
            return whole
        # Imported here because few releases take it.
        from vhlo_tools.compat import nesting_findings

        lost = nesting_findings(whole.file, resolved.consumers, whole.name, level="warning")
        return whole.with_findings([*lost, *whole.findings])

    def by_library() -> LibraryRetargeting:
        # Imported here because bytes need no MLIR.
        from vhlo_tools.conversion import LibraryRetargeting

        return LibraryRetargeting(str(target), options, as_of, provider, trusted)

    if engine == "mlir":
        return made(by_library().by_library(opened), by_library=True)
    resolved = resolve_target(str(target), as_of=as_of, provider=provider)
    if engine == "auto" and is_newer_than_data(max(opened.version, resolved.version)):
        # Only the library knows what came after the specification. If there is none, the bytes are moved as far as the
        # specification goes, with a warning.
        _reachable(resolved, provider)
        if (moved := by_library().if_it_can(opened)) is not None:
            return made(moved, by_library=True)
    resolved.specified()
    try:
        moved = by_library().with_expansions(opened) if expands else opened.retargeted(resolved.version)
        return made(moved, by_library=expands)
    except UnsupportedFeatureError as error:
        if engine == "bytes" or all(finding.feature != OPAQUE_PROPERTIES for finding in error.findings):
            raise
    return made(by_library().by_library(opened), by_library=True)


def deserialize(
    artifact: ArtifactSource, context: Context | None = None, *, provider: str | None = None, trusted: bool = False
) -> Module:
    """Convert an artifact to a StableHLO module.

    An artifact newer than the library is brought down to its version first, where its program allows.

    Args:
        artifact: The artifact, its path or its bytes, or those of a jax.export file.
        context: The context for the module, which gets StableHLO's dialects if it lacks them; by default a new one.
        provider: The bindings to use, by default those of ``context``, or the installed ones.
        trusted: Whether MLIR may parse an artifact, bytecode or text directly in this process. Otherwise a child
            process parses it first, because what is damaged can crash the parser. Artifacts that this process wrote are
            trusted.

    Returns:
        An ``ir.Module`` of the provider.

    Raises:
        ManifestError: If it is a file that is not what the manifest beside it says.
        MalformedArtifactError: If it is not an artifact, a damaged one, or one the installed library cannot read.
        EngineStartError: If no child process can be started.
    """
    opened = _opened(artifact)
    _warm_for(opened, trusted)
    from vhlo_tools.bindings import get_provider, provider_of
    from vhlo_tools.conversion import deserialize_artifact

    bindings = provider_of(context) if context is not None else None
    if context is not None and bindings is None:
        raise TypeError(f"a {type(context).__qualname__} is not an MLIR context")
    return deserialize_artifact(opened, bindings or get_provider(provider), context, trusted=trusted)


def program_of(
    artifact: ArtifactSource,
    emit: Emit,
    *,
    debug_info: bool = False,
    provider: str | None = None,
    trusted: bool = False,
) -> bytes:
    """Return the program in an artifact as the contents of a file.

    VHLO as generic text needs no MLIR, HLO needs XLA in jaxlib, which raises ``InvalidProgramError`` if it cannot
    convert the program. ``debug_info`` is for locations in text.
    """
    opened = _opened(artifact)
    if emit == "vhlo":
        return opened.text(debug_info=debug_info).encode()
    _warm_for(opened, trusted)
    from vhlo_tools.bindings import get_provider
    from vhlo_tools.conversion import hlo_of_artifact, print_module

    if emit == "hlo-text" or emit == "hlo-proto":
        return hlo_of_artifact(opened, get_provider("jaxlib.mlir"), text=emit == "hlo-text", trusted=trusted)
    return print_module(opened, get_provider(provider), emit, debug_info=debug_info, trusted=trusted)


def _warm_for(artifact: Artifact, trusted: bool) -> None:
    """Start the child process that will parse an artifact, while this process imports the bindings."""
    if not (trusted or artifact.trusted):
        from vhlo_tools.bindings import isolation

        isolation.warm()


def _opened(artifact: ArtifactSource, *, unpack: bool = True) -> Artifact:
    """Open an artifact, which must match a manifest beside it.

    Otherwise unnoticed changes would become what a new manifest describes.
    """
    if not is_path(artifact):
        return Artifact.open(artifact, unpack=unpack)
    data = read_bytes(place(artifact))
    require_manifest(data, artifact)
    return Artifact.open(data, name=str(artifact), unpack=unpack)


def _reachable(target: Target, provider: str | None) -> Target:
    try:
        return target.specified(lambda: _library(provider))
    except ProviderError:
        return target.specified()


def _library(provider: str | None) -> Library:
    # Imported here because few targets need it.
    from vhlo_tools.bindings import get_provider

    return get_provider(provider).library


# Expansion of programs, for an older consumer, without writing them


@dataclass(frozen=True, slots=True)
class ExpandedProgram:
    """A program in which features newer than a version were rewritten.

    Attributes:
        module: The program, an ``ir.Module`` of StableHLO.
        findings: A note for each op that was rewritten, with its location, its feature and what it became.
    """

    module: Module
    findings: tuple[Finding, ...]


def expand(
    program: ProgramSource,
    target: str | Version,
    *,
    expand: Expand = True,
    allow_relaxed: AllowRelaxed = (),
    allow_signature_change: bool = False,
    as_of: date | None = None,
    **options: Unpack[LoadOptions],
) -> ExpandedProgram:
    """Rewrite the features of a program that are newer than a target into older ones.

    :func:`vhlo_tools.serialize` does the same with ``expand=True``, and writes the result; what has no expansion
    remains here, and is refused there.

    >>> import vhlo_tools as vt
    >>> program = '''func.func @main(%a: tensor<f32>) -> tensor<f32> {
    ...   %0 = stablehlo.tan %a : tensor<f32>
    ...   return %0 : tensor<f32>
    ... }'''
    >>> vt.expand(program, "1.0.0").findings[0].feature
    'tan'

    Args:
        program: Anything that :func:`vhlo_tools.serialize` accepts; a module is not changed.
        target: The target version or consumer, in the target grammar.
        expand: Which features may be rewritten with the same results: all, or those with these ids.
        allow_relaxed: The ids of the features that may be rewritten with something given up, or ``all``.
        allow_signature_change: Whether that may change the types of arguments and results of public functions.
        as_of: The day from which windows in ``target`` count back, by default today.
        options: See :class:`vhlo_tools.program.LoadOptions`.

    Raises:
        InvalidProgramError: If it is not a valid program.
        MalformedArtifactError: If it is a damaged artifact.
        UnknownTargetError: If the target is unknown.
        InvalidVersionError: If the target looks like a version but is not valid.
        ValueError: If a feature is unknown, or has no such expansion.
    """
    policy = expansion_policy(expand, allow_relaxed, allow_signature_change)
    provider, name = options.get("provider"), options.get("name")
    version = resolve_target(str(target), as_of=as_of, provider=provider).version
    # Imported here because they load the bindings.
    from vhlo_tools.conversion import expand_module
    from vhlo_tools.program import load_program, names_in_utf8

    loaded = load_program(as_program(program, name=name, provider=provider), **options)
    with names_in_utf8(loaded.name):
        module = loaded.load()
        loaded.provider.verify(module)
        expanded = expand_module(loaded.provider, module, version, policy, loaded.name)
    return ExpandedProgram(loaded.provider.as_module(module), expanded.notes)
