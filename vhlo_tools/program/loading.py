"""From what callers have to a program: one loader for each kind of input, in one table."""

from __future__ import annotations

import os
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, Final

from vhlo_tools.artifact import (
    Artifact,
    Buffer,
    Kind,
    as_bytes,
    decode_jax_export,
    find_hlo_module,
    other_dialects,
    read_bytes,
    recognise,
)
from vhlo_tools.bindings import Context, MLIRFailure, Module, ModuleOp, Provider, get_provider, provider_of
from vhlo_tools.bindings.isolation import warm
from vhlo_tools.bytecode import decode, decode_container, encode
from vhlo_tools.bytecode.inlining import release_alignment
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.program.hlo import module_of_hlo, proto_of_text
from vhlo_tools.program.program import Program, explain_failure, unreadable
from vhlo_tools.program.screening import screen_artifact, screen_source
from vhlo_tools.program.spelling import give_back, is_spelled

__all__ = ["LOADERS", "ProgramSource", "load_program", "read_artifact"]

#: What is accepted as a program: an MLIR module of any provider, an artifact, bytes, text or a path, a
#: ``jax.export.Exported``, or a computation of XLA. Objects are recognised by their classes, and nothing is imported.
ProgramSource = str | PathLike[str] | Buffer | Artifact | object

_TEXT_SIGNS = "\n\0{("


def load_program(
    source: ProgramSource, *, name: str | None = None, provider: str | None = None, trusted: bool = False
) -> Program:
    """Return ``source`` as a program. Nothing is parsed before the program is asked for its module.

    Artifacts and bytecode are then parsed in a child process first (:mod:`vhlo_tools.program.screening`).

    Args:
        source: An ``ir.Module`` of any provider; an :class:`Artifact`; a ``jax.export.Exported``; an
            ``XlaComputation`` or an ``HloModule`` of jaxlib; bytes of any kind that
            :func:`vhlo_tools.artifact.recognise` knows; a path to a file with such bytes; or text of MLIR or HLO, which
            is told from a path by holding a line break, a brace or a parenthesis.
        name: What to call it in messages, by default its path.
        provider: The bindings to use, by default those of the module or the installed ones.
        trusted: Whether artifacts and bytecode are parsed in this process at once.

    Raises:
        InvalidProgramError: If it is none of these.
        MalformedArtifactError: If it is a damaged artifact.
        ProviderError: If there are no bindings, or not these.
        OSError: If a file cannot be read.
    """
    if (own := provider_of(source)) is not None:
        if provider is not None and get_provider(provider) is not own:
            raise InvalidProgramError(
                f"a module of {own.prefix} means nothing to {provider}: leave the provider out, or pass bytecode"
            )
        return _from_module(source, own, name or "the module")
    if isinstance(source, Artifact):
        return _from_artifact(source, get_provider(provider), trusted)
    if _is_exported(source):
        exported: Any = source
        name = name or f"the export of {exported.fun_name}"
        return _load_artifact(exported.mlir_module_serialized, name, get_provider(provider), trusted)
    if _is_computation(source):
        computation: Any = source
        source = bytes(computation.as_serialized_hlo_module_proto())
        name = name or "the computation"
    if isinstance(source, str) and _is_text(source):
        source, name = source.encode("utf-8", "surrogatepass"), name or "the text"
        # Whoever has it as text has made it, or read it.
        trusted = True
    if isinstance(source, str | PathLike):
        path = Path(source)
        source, name = read_bytes(path), name or str(path)
    if not isinstance(source, bytes | bytearray | memoryview):
        raise InvalidProgramError(
            f"a {type(source).__module__}.{type(source).__qualname__} is no program: expected an ir.Module, an "
            "Artifact, a jax.export.Exported, an XlaComputation, text of MLIR or HLO, bytes or a path"
        )
    name, source = name or "the input", as_bytes(source)
    kind = recognise(source, name)
    if kind not in LOADERS:
        raise InvalidProgramError(f"{name} is of the kind {kind}: export it first, with vhlo_tools.serialize")
    return LOADERS[kind](source, name, get_provider(provider), trusted)


def _is_text(source: str) -> bool:
    """Tell a program from a path: it is empty, or holds what names of files do not, and is none."""
    if source.strip() and not any(sign in source for sign in _TEXT_SIGNS):
        return False
    try:
        return not os.path.isfile(source)  # noqa: PTH113 - a Path of a long text raises
    except ValueError:
        return True


def _is_exported(source: object) -> bool:
    return any(
        cls.__name__ == "Exported" and cls.__module__.startswith(("jax.", "jax._src.")) for cls in type(source).__mro__
    )


def _is_computation(source: object) -> bool:
    cls = type(source)
    return cls.__name__ in ("HloModule", "XlaComputation") and cls.__module__.startswith("jaxlib.")


def _from_module(source: object, provider: Provider, name: str) -> Program:
    if not provider.is_module(source):
        raise InvalidProgramError(
            f"a {type(source).__qualname__} of {provider.prefix} is no module: expected an ir.Module"
        )
    module: Any = source
    return Program(name, provider, lambda: provider.clone(module))


def read_artifact(
    artifact: Artifact, provider: Provider, context: Context | None = None, *, trusted: bool = False
) -> Module:
    """Return an artifact as a StableHLO module, its attributes as they were when it was written.

    Args:
        artifact: The artifact; its header and sections were checked when it was made.
        provider: The bindings.
        context: The context of the module, with the dialects of StableHLO programs; by default a new one.
        trusted: Whether it is read in this process at once, and not in a child process first.

    Raises:
        MalformedArtifactError: If the library refuses it, or does not survive reading it.
        EngineStartError: If no child process can be started.
    """
    trusted = trusted or artifact.trusted
    if not trusted:
        # It starts while this process imports the bindings.
        warm()
    context = context or provider.new_context()
    if not trusted:
        screen_artifact(artifact, provider)
    try:
        module = provider.deserialize(context, bytes(artifact))
    except MLIRFailure as failure:
        raise unreadable(artifact, provider, failure) from failure
    if is_spelled(artifact):
        give_back(provider, module)
    return module


def _from_artifact(artifact: Artifact, provider: Provider, trusted: bool) -> Program:
    def load() -> ModuleOp:
        return read_artifact(artifact, provider, trusted=trusted)

    return Program(artifact.name, provider, load, other_dialects(artifact))


def _load_artifact(data: Buffer, name: str, provider: Provider, trusted: bool) -> Program:
    return _from_artifact(Artifact(data, name=name), provider, trusted)


def _load_jax_export(data: Buffer, name: str, provider: Provider, trusted: bool) -> Program:
    return _load_artifact(decode_jax_export(data).module, name, provider, trusted)


def _load_bytecode(data: Buffer, name: str, provider: Provider, trusted: bool) -> Program:
    container = decode_container(memoryview(data))
    if any(section.name == "resource" and section.size for section in container.sections):
        # Or the bindings would read it only if it happened to stand at a fitting address, and never with an empty blob,
        # of which MLIR itself writes an alignment that it refuses.
        file = decode(data)
        release_alignment(file)
        data = encode(file)
    return _load_source(bytes(data), name, provider, trusted)


def _load_text(data: Buffer, name: str, provider: Provider, trusted: bool) -> Program:
    return _load_source(_as_text(data, name), name, provider, trusted)


def _load_hlo_text(data: Buffer, name: str, provider: Provider, trusted: bool) -> Program:
    text = _as_text(data, name)
    return Program(name, provider, lambda: module_of_hlo(proto_of_text(text, name, trusted), provider, name, trusted))


def _load_hlo_proto(data: Buffer, name: str, provider: Provider, trusted: bool) -> Program:
    proto = find_hlo_module(memoryview(data))
    assert proto is not None
    return Program(name, provider, lambda: module_of_hlo(bytes(proto), provider, name, trusted))


def _as_text(data: Buffer, name: str) -> str:
    try:
        return bytes(data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidProgramError(f"{name} starts as text, but byte {error.start} is not UTF-8") from error


def _load_source(source: str | bytes, name: str, provider: Provider, trusted: bool) -> Program:
    def load() -> ModuleOp:
        nonlocal trusted
        try:
            if not trusted:
                screen_source(source if isinstance(source, bytes) else source.encode(), provider, name)
            trusted = True
            return provider.parse(provider.new_context(), source)
        except MLIRFailure as failure:
            said = explain_failure(name, provider, failure)
            raise InvalidProgramError(f"{name} is not a valid MLIR program: {said}", failure.diagnostics) from failure

    return Program(name, provider, load)


#: What makes a program of each kind of content: of its bytes, a name, the bindings, and whether it is trusted. A new
#: kind is a new line here and a sign in `artifact.content`. What a framework must export stands in `api.frontends`.
LOADERS: Final[dict[Kind, Callable[[Buffer, str, Provider, bool], Program]]] = {
    Kind.PORTABLE_ARTIFACT: _load_artifact,
    Kind.JAX_EXPORT: _load_jax_export,
    Kind.MLIR_BYTECODE: _load_bytecode,
    Kind.MLIR_TEXT: _load_text,
    Kind.HLO_TEXT: _load_hlo_text,
    Kind.HLO_PROTO: _load_hlo_proto,
}
