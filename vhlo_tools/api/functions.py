"""Programs to artifacts and back, and between versions."""

from __future__ import annotations

from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, Literal, get_args

from vhlo_tools.api.frontends import export_model, framework_kind
from vhlo_tools.artifact import Artifact, Buffer
from vhlo_tools.compat import Library, Target
from vhlo_tools.compat import resolve_target as resolve
from vhlo_tools.errors import AliasError, DowngradeError, UnsupportedFeatureError
from vhlo_tools.findings import OPAQUE_PROPERTIES
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.bindings import Context, Module
    from vhlo_tools.program import Program, ProgramSource

__all__ = [
    "deserialize",
    "linted",
    "open_artifact",
    "program_of",
    "resolve_target",
    "retarget",
    "serialize",
    "strip",
]

Emit = Literal["text", "bytecode", "vhlo", "hlo-text", "hlo-proto"]
Engine = Literal["auto", "bytes", "mlir"]
ArtifactSource = str | PathLike[str] | Buffer | Artifact


def open_artifact(source: ArtifactSource, *, name: str | None = None) -> Artifact:
    """Open a portable artifact, lazily and without MLIR.

    Args:
        source: A path or the bytes of an artifact, or of a jax.export file, whose artifact is taken out.
        name: What to call it in messages, by default its path.

    Raises:
        MalformedArtifactError: If it is something else, or its header or its sections are damaged.
        OSError: If the file cannot be read.
    """
    return Artifact.open(source, name=name)


def resolve_target(target: str, *, as_of: date | None = None, provider: str | None = None) -> Target:
    """Return the StableHLO version that a target means.

    Args:
        target: In the grammar of targets (see :mod:`vhlo_tools.compat.targets`).
        as_of: The day that windows count back from, by default today.
        provider: The bindings that answer for ``current``, ``WEEK_4`` and their like.

    Raises:
        UnknownTargetError: If it names no known version.
        InvalidVersionError: If it looks like a version and is none.
    """

    def library() -> Library:
        # Few targets ask for it.
        from vhlo_tools.bindings import get_provider

        return get_provider(provider).library

    return resolve(target, library, as_of=as_of)


def serialize(
    program: ProgramSource,
    target: str | Version = "current",
    *,
    allow_other_dialects: bool = False,
    legalize: bool = True,
    alias_lint: bool = True,
    strip_debug_info: bool = False,
    name: str | None = None,
    as_of: date | None = None,
    provider: str | None = None,
    signature: str | None = None,
    batch_size: int | None = None,
    trusted: bool = False,
) -> Artifact:
    """Write a program as a portable artifact.

    Args:
        program: An ``ir.Module`` of any provider, which stays as it is; MLIR text or bytes; an artifact; a
            ``jax.stages.Lowered``; a ``jax.export.Exported`` or its serialized bytes; a
            ``torch.export.ExportedProgram`` or its serialized bytes, which torch and torch-mlir export; a path to a
            file with any of these; or the path of the folder of a SavedModel, which TensorFlow exports.
        target: The version to write for, or what it is to be read by, in the grammar of targets. A named consumer that
            reads newer versions than the installed library writes gets the newest that it writes.
        allow_other_dialects: Whether ops of dialects beside StableHLO, such as ``sdy``, may stay as they are.
        legalize: Whether what no artifact can hold is rewritten into plain StableHLO of the same meaning, where that
            is known: constants in resources, ops of `chlo`, `mhlo`, `arith`, `math`, `tensor` and `shape`, attributes
            without a form in VHLO.
        alias_lint: Whether aliases and donors that XLA refuses are refused.
        strip_debug_info: Whether to leave source locations out.
        name: What to call the program in messages, by default its path.
        as_of: The day that windows in ``target`` count back from, by default today.
        provider: The bindings to use, by default those of the module, or the installed ones.
        signature: Of a SavedModel, the signature; by default ``serving_default``.
        batch_size: Of a SavedModel, the size of the first dimension of inputs that leave it open.
        trusted: Whether MLIR may parse an artifact or bytecode in this process at once. Otherwise a child process
            parses it first, because damaged bytes can end the process that does. What was serialized here is trusted.

    Returns:
        The artifact. Its ``findings`` warn of what the consumer may choke on although the library lets it through, and
        of aliases that are hardly meant, of donations that jax dropped, and note what was rewritten.

    Raises:
        DowngradeError: If the program holds what the target does not have.
        UnsupportedFeatureError: If it holds what no artifact can hold.
        AliasError: If it holds aliases or donors that XLA refuses.
        InvalidProgramError: If it is no valid program.
        MalformedArtifactError: If it is a damaged artifact.
        UnknownTargetError: If the target is unknown, or a version that the library cannot write.
        InvalidVersionError: If the target looks like a version and is none.
        InvalidInputError: If there is no such signature, or an input of a SavedModel leaves its shape open.
        MissingExtraError: If the framework whose program it is is not installed.
    """
    if framework_kind(program, name) is not None or signature is not None or batch_size is not None:
        exported = export_model(
            program,
            target,
            name=name,
            allow_other_dialects=allow_other_dialects,
            legalize=legalize,
            as_of=as_of,
            provider=provider,
            signature=signature,
            batch_size=batch_size,
        )
        artifact = linted(exported.artifact) if alias_lint else exported.artifact
        return strip(artifact) if strip_debug_info else artifact
    from vhlo_tools.convert import serialize_program
    from vhlo_tools.program import load_program

    loaded = load_program(program, name=name, provider=provider, trusted=trusted)
    resolved = _target(loaded, target, as_of)
    artifact = serialize_program(loaded, resolved, allow_other_dialects=allow_other_dialects, legalize=legalize)
    artifact = linted(artifact) if alias_lint else artifact
    return strip(artifact) if strip_debug_info else artifact


def linted(artifact: Artifact) -> Artifact:
    """Return an artifact with warnings of its aliases among its findings.

    Raises:
        AliasError: If XLA refuses them.
    """
    found = artifact.alias_findings()
    if errors := [each for each in found if each.level == "error"]:
        raise AliasError(f"{artifact.name} has aliases that XLA refuses (--no-alias-lint lets them pass)", errors)
    new = [each for each in found if each not in artifact.findings]
    return artifact.with_findings([*artifact.findings, *new]) if new else artifact


def strip(artifact: ArtifactSource) -> Artifact:
    """Return an artifact without debug information: every source location becomes unknown. No MLIR is needed.

    A jax.export file is stripped by :func:`vhlo_tools.integrations.jax.strip`.

    Args:
        artifact: The artifact, its path or its bytes.

    Raises:
        MalformedArtifactError: If it is no artifact, or a damaged one.
    """
    whole = Artifact.open(artifact, unpack=False)
    stripped = Artifact(b"".join(whole.stripped()), name=whole.name, trusted=whole.trusted)
    return stripped.with_findings(whole.findings)


def retarget(
    artifact: ArtifactSource,
    target: str | Version,
    *,
    engine: Engine = "auto",
    as_of: date | None = None,
    provider: str | None = None,
    trusted: bool = False,
) -> Artifact:
    """Move an artifact up or down to another version; dialects that it holds already stay.

    On the bytes this needs no MLIR, reaches every version that the specification knows, whatever library is installed,
    and holds no constants: the result refers to those of ``artifact``, and its ``save`` copies them from file to file.
    A jax.export file is moved by :func:`vhlo_tools.integrations.jax.retarget`.

    Args:
        artifact: The artifact, its path or its bytes.
        target: The version to move to, or what is to read it, in the grammar of targets.
        engine: ``bytes``; ``mlir``, the installed library, which must be able to read the one and write the other; or
            ``auto``, which takes bytes but for what cannot be moved in bytes.
        as_of: The day that windows in ``target`` count back from, by default today.
        provider: The bindings to use, by default the installed ones.
        trusted: Whether MLIR may parse it in this process at once, as for :func:`serialize`.

    Raises:
        DowngradeError: If it holds what the target does not have.
        UnsupportedFeatureError: If it holds what is gone by then, or what cannot be moved in bytes.
        MalformedArtifactError: If it is no artifact, or a damaged one, or, with MLIR, one the library cannot read.
        UnknownTargetError: If the target is unknown, or, with MLIR, a version that the library cannot write.
        InvalidVersionError: If the target looks like a version and is none.
        ValueError: If there is no such engine.
    """
    if engine not in get_args(Engine):
        raise ValueError(f"there is no engine {engine!r}: expected one of {', '.join(get_args(Engine))}")
    opened = Artifact.open(artifact, unpack=False)
    if engine == "mlir":
        return _retarget_with_mlir(opened, target, as_of, provider, trusted)
    resolved = resolve_target(str(target), as_of=as_of, provider=provider).specified()
    try:
        return opened.retargeted(resolved.version)
    except DowngradeError:
        raise
    except UnsupportedFeatureError as error:
        if engine == "bytes" or all(finding.feature != OPAQUE_PROPERTIES for finding in error.findings):
            raise
        return _retarget_with_mlir(opened, target, as_of, provider, trusted)


def _retarget_with_mlir(
    artifact: Artifact, target: str | Version, as_of: date | None, provider: str | None, trusted: bool
) -> Artifact:
    from vhlo_tools.convert import serialize_program
    from vhlo_tools.program import load_program

    loaded = load_program(artifact, provider=provider, trusted=trusted)
    return serialize_program(loaded, _target(loaded, target, as_of))


def deserialize(
    artifact: ArtifactSource, context: Context | None = None, *, provider: str | None = None, trusted: bool = False
) -> Module:
    """Turn an artifact into a StableHLO module.

    Args:
        artifact: The artifact, its path or its bytes, or those of a jax.export file.
        context: The context for the module, which gets StableHLO's dialects if it lacks them; by default a new one.
        provider: The bindings to use, by default those of ``context``, or the installed ones.
        trusted: Whether MLIR may parse an artifact or bytecode in this process at once. Otherwise a child process
            parses it first, because damaged bytes can end the process that does. What was serialized here is trusted.

    Returns:
        An ``ir.Module`` of the provider.

    Raises:
        MalformedArtifactError: If it is no artifact, or a damaged one, or one the installed library cannot read.
        EngineStartError: If no child process can be started.
    """
    opened = Artifact.open(artifact)
    _warm_for(opened, trusted)
    from vhlo_tools.bindings import get_provider, provider_of
    from vhlo_tools.convert import deserialize_artifact

    bindings = provider_of(context) if context is not None else None
    if context is not None and bindings is None:
        raise TypeError(f"a {type(context).__qualname__} is no MLIR context")
    return deserialize_artifact(opened, bindings or get_provider(provider), context, trusted=trusted)


def program_of(
    artifact: ArtifactSource,
    emit: Emit,
    *,
    debug_info: bool = False,
    provider: str | None = None,
    trusted: bool = False,
) -> bytes:
    """Return the program in an artifact as it would stand in a file.

    Args:
        artifact: The artifact, its path or its bytes, or those of a jax.export file.
        emit: ``text`` or ``bytecode`` for StableHLO; ``vhlo`` for VHLO as generic text, which needs no MLIR;
            ``hlo-text`` or ``hlo-proto`` for HLO, which XLA in jaxlib makes.
        debug_info: Whether text shows locations.
        provider: The bindings to use, by default the installed ones.
        trusted: Whether MLIR may parse it in this process at once, as for :func:`deserialize`.

    Raises:
        MalformedArtifactError: If it is no artifact, or a damaged one, or one the installed library cannot read.
        InvalidProgramError: If XLA makes no HLO of it.
    """
    opened = Artifact.open(artifact)
    if emit == "vhlo":
        return opened.text(debug_info=debug_info).encode()
    _warm_for(opened, trusted)
    from vhlo_tools.bindings import get_provider
    from vhlo_tools.convert import hlo_of_artifact, print_module

    if emit == "hlo-text" or emit == "hlo-proto":
        return hlo_of_artifact(opened, get_provider("jaxlib.mlir"), text=emit == "hlo-text", trusted=trusted)
    return print_module(opened, get_provider(provider), emit, debug_info=debug_info, trusted=trusted)


def _warm_for(artifact: Artifact, trusted: bool) -> None:
    """Start the child process that parses an artifact first; it is ready once this one has imported the bindings."""
    if not (trusted or artifact.trusted):
        from vhlo_tools.bindings.isolation import warm

        warm()


def _target(program: Program, target: str | Version, as_of: date | None) -> Target:
    library = program.provider.library
    return resolve(str(target), lambda: library, as_of=as_of).within(library)
