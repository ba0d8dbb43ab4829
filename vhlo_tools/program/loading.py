"""Loading of programs: a table with one loader for each kind of input."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import prod
from os import PathLike
from typing import Any, Final

import numpy as np

from vhlo_tools.artifact import Artifact, other_dialects
from vhlo_tools.bindings import Context, MLIRFailure, Module, ModuleOp, Provider, get_provider, isolation, provider_of
from vhlo_tools.bytecode import decode, encode, release_alignment
from vhlo_tools.errors import DowngradeError, InvalidProgramError, MalformedArtifactError, UnsupportedFeatureError
from vhlo_tools.files import (
    Buffer,
    Kind,
    Source,
    advice_on,
    decode_jax_export,
    find_hlo_module,
    identify,
    unwrapped,
    view,
)
from vhlo_tools.program.attribute_encoding import decode_attributes, is_encoded
from vhlo_tools.program.hlo_loading import module_of_hlo, proto_of_text
from vhlo_tools.program.older_text import older_text_advice
from vhlo_tools.program.program import Program, explain_failure, names_in_utf8, unreadable
from vhlo_tools.program.screening import screen_source, trial_of, try_artifact

#: The accepted programs: an MLIR module of any provider, an artifact, bytes, text or a path, a
#: ``jax.export.Exported``, or an XLA computation. Objects are recognised by their classes, without imports.
ProgramSource = str | PathLike[str] | Buffer | Artifact | Source | object


def load_program(
    source: ProgramSource, *, name: str | None = None, provider: str | None = None, trusted: bool = False
) -> Program:
    """Nothing is parsed until the module is loaded; artifacts and bytecode are then parsed in a child process first.

    Text of MLIR or HLO is distinguished from a path by a line break, a brace or a parenthesis.
    """
    given = source.given if isinstance(source, Source) else unwrapped(source)
    if (own := provider_of(given)) is not None:
        if provider is not None and get_provider(provider) is not own:
            raise InvalidProgramError(
                f"a module of {own.prefix} cannot be used with the provider {provider}: omit the provider, or pass "
                f"bytecode"
            )
        module: Any = given
        if not own.is_module(module):
            raise InvalidProgramError(
                f"a {type(module).__qualname__} of {own.prefix} is not a module: expected an ir.Module"
            )
        return _from_module(module, name or "the module", own)
    if isinstance(given, Artifact):
        return _from_artifact(given, get_provider(provider), trusted)
    identified = identify(source, name)
    called, kind = identified.name or "the input", identified.kind
    if kind is None:
        raise InvalidProgramError(
            f"a {type(given).__module__}.{type(given).__qualname__} is not a program: expected an ir.Module, an "
            "Artifact, a jax.export.Exported, an XlaComputation, text of MLIR or HLO, bytes or a path"
            + advice_on(given)
        )
    if kind not in LOADERS or identified.data is None:
        raise InvalidProgramError(f"{called} is a {kind}: export it first, with vhlo_tools.serialize")
    return LOADERS[kind](identified.data, called, get_provider(provider), trusted)


def read_artifact(
    artifact: Artifact, provider: Provider, context: Context | None = None, *, trusted: bool = False
) -> Module:
    """Brings an artifact that is newer than the library down to its version first, on the bytes, where possible."""
    current = provider.library.current
    if artifact.version.minor_release > current.minor_release:
        # The library reads it unchanged if it only claims to be newer, and else says what it lacks.
        with suppress(DowngradeError, MalformedArtifactError, UnsupportedFeatureError):
            artifact = artifact.retargeted(current)
    trusted = trusted or artifact.trusted
    trial = None if trusted else trial_of(artifact, provider)
    if trial is not None:
        # The child starts while this process imports the bindings.
        isolation.warm()
    context = context or provider.new_context()
    if trial is not None:
        try_artifact(artifact, trial)
    try:
        module = provider.deserialize(context, bytes(artifact))
    except MLIRFailure as failure:
        raise unreadable(artifact, provider, failure) from failure
    if is_encoded(artifact):
        decode_attributes(provider, module)
    return module


def _from_artifact(artifact: Artifact, provider: Provider, trusted: bool) -> Program:
    load = partial(read_artifact, artifact, provider, trusted=trusted)
    return Program(artifact.name, provider, load, other_dialects(artifact))


def _from_module(module: Any, name: str, provider: Provider) -> Program:
    """Verified, because conversion takes what is not valid, and writes what no library reads."""
    try:
        with names_in_utf8(name):
            provider.verify(module)
    except MLIRFailure as failure:
        said = explain_failure(name, provider, failure)
        raise InvalidProgramError(f"{name} is not valid: {said}", failure.diagnostics) from failure
    return Program(name, provider, lambda: provider.clone(module))


def _load_artifact(data: Buffer, name: str, provider: Provider, trusted: bool) -> Program:
    return _from_artifact(Artifact(data, name=name), provider, trusted)


def _load_bytecode(data: Buffer, name: str, provider: Provider, trusted: bool) -> Program:
    file = decode(data, name)
    if any(section.name == "resource" and section.size for section in file.sections):
        # Otherwise the bindings could read it only at a suitably aligned address, and never with an empty blob, for
        # which MLIR itself writes an alignment that it rejects.
        release_alignment(file)
        data = encode(file)
    return _load_source(bytes(data), name, provider, trusted)


def _load_hlo_text(data: Buffer, name: str, provider: Provider, trusted: bool) -> Program:
    text = _as_text(data, name)
    return Program(name, provider, lambda: module_of_hlo(proto_of_text(text, name, trusted), provider, name, trusted))


def _load_hlo_proto(data: Buffer, name: str, provider: Provider, trusted: bool) -> Program:
    proto = find_hlo_module(view(data))
    assert proto is not None
    return Program(name, provider, lambda: module_of_hlo(bytes(proto), provider, name, trusted))


def _as_text(data: Buffer, name: str) -> str:
    try:
        return bytes(data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidProgramError(f"{name} starts with text, but byte {error.start} is not UTF-8") from error


def _load_source(source: str | bytes, name: str, provider: Provider, trusted: bool) -> Program:
    def parsed(source: str | bytes) -> ModuleOp:
        nonlocal trusted
        if not trusted:
            screen_source(source if isinstance(source, bytes) else source.encode(), provider, name)
        trusted = True
        return provider.parse(provider.new_context(), source)

    def load() -> ModuleOp:
        try:
            return parsed(source)
        except MLIRFailure as failure:
            other = _in_other_form(source) if isinstance(source, str) else source
            if other != source:
                with suppress(MLIRFailure):
                    return parsed(other)
            said = explain_failure(name, provider, failure)
            advice = older_text_advice(source, said) if isinstance(source, str) else ""
            raise InvalidProgramError(
                f"{name} is not a valid MLIR program: {said}{advice}", failure.diagnostics
            ) from failure

    return Program(name, provider, load)


#: The loader for each kind of content, called with the bytes, a name, the bindings, and whether they are trusted. A new
#: kind needs a new line here and in `formats.recognition`. Kinds that a framework must export are in `api.frontends`.
LOADERS: Final[dict[Kind, Callable[[Buffer, str, Provider, bool], Program]]] = {
    Kind.PORTABLE_ARTIFACT: _load_artifact,
    Kind.JAX_EXPORT: lambda data, *rest: _load_artifact(decode_jax_export(data).module, *rest),
    Kind.MLIR_BYTECODE: _load_bytecode,
    Kind.MLIR_TEXT: lambda data, name, *rest: _load_source(_as_text(data, name), name, *rest),
    Kind.HLO_TEXT: _load_hlo_text,
    Kind.HLO_PROTO: _load_hlo_proto,
}


# Large constants of booleans in MLIR text, which MLIR writes in hexadecimal in one of two forms
#
# Some releases of MLIR pack eight booleans into a byte, the first one into the lowest bit, and others give each a byte
# of its own. A library reads the form that it writes. Source: ``DenseElementsAttr`` in
# ``mlir/lib/IR/BuiltinAttributes.cpp`` of llvm/llvm-project, in its versions.

_BOOLEANS: Final = re.compile(r'dense<"0x([0-9A-Fa-f]+)">( *: *(?:tensor|vector)<((?:\d+x)+)i1\b)')


def _in_other_form(text: str) -> str:
    """Unpacks packed constants, and packs unpacked ones."""
    return _BOOLEANS.sub(_other, text)


def _other(match: re.Match[str]) -> str:
    stored = np.frombuffer(bytes.fromhex(match[1]) if len(match[1]) % 2 == 0 else b"", np.uint8)
    number = prod(int(size) for size in match[3].split("x")[:-1])
    if stored.size == number:
        changed = np.packbits(stored != 0, bitorder="little")
    elif stored.size == -(-number // 8):
        changed = np.unpackbits(stored, count=number, bitorder="little")
    else:
        return match[0]
    return f'dense<"0x{changed.tobytes().hex().upper()}">{match[2]}'
