"""What XLA needs before its client is imported: its errors, and jaxlib without jax."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

from vhlo_tools.errors import ProviderError

# XLA in jaxlib: conversion between HLO modules and StableHLO
#
# ``jaxlib._hlo`` and ``jaxlib._jax`` are private to jaxlib; the functions used here are the same from 0.8.1 to 0.12,
# and those of HLO moved from the second to the first with 0.10.2.


class XlaFailure(Exception):  # noqa: N818 - it never leaves the toolkit: each caller turns it into its own error
    """A call into XLA failed; the message is XLA's."""


def hlo_of_text(text: str) -> bytes:
    proto: bytes = _call(lambda: _hlo().hlo_module_from_text(text).as_serialized_hlo_module_proto())
    return proto


def text_of_hlo(proto: bytes) -> str:
    text: str = _call(lambda: _hlo().HloModule.from_serialized_hlo_module_proto(proto).to_string())
    return text


def stablehlo_of_hlo(proto: bytes) -> bytes:
    bytecode: bytes = _call(lambda: _module("_jax").mlir.hlo_to_stablehlo(proto))
    return bytecode


def hlo_of_stablehlo(artifact: bytes) -> bytes:
    """Parameters and results are not in tuples."""
    convert = partial(_module("_jax").mlir.mlir_module_to_xla_computation, use_tuple_args=False, return_tuple=False)
    proto: bytes = _call(lambda: convert(artifact).as_serialized_hlo_module_proto())
    return proto


def refined_by_xla(bytecode: bytes) -> bytes:
    """Resolve the dynamic shapes of a module whose ``main`` has static arguments, as far as they follow from these."""
    refine = _module("_jax").mlir.refine_polymorphic_shapes
    refined: bytes = _call(lambda: refine(bytecode, enable_shape_assertions=True, validate_static_shapes=False))
    return refined


def jax_artifact(module: Any, version: str) -> bytes:
    """Serialize a module that JAX lowered (it may contain Shardy), as ``jax.export`` does.

    XLA lowers CHLO, merges constants and expands what is newer than ``version``, but leaves the module as it is
    (``SerializeUsingVersionedStablehlo`` in ``xla/pjrt/mlir_to_hlo.cc`` in openxla/xla).
    """
    serialize = _module("_jax").mlir.serialize_portable_artifact
    # Up to jaxlib 0.10.0 it takes a module as text or bytecode, and from 0.10.1 on only as an object.
    given = _bytecode(module) if "mlir_module: bytes" in serialize.__doc__ else module
    artifact: bytes = _call(lambda: serialize(given, version, True))
    return artifact


@cache
def _hlo() -> Any:
    """Return the module of jaxlib that has HLO's classes."""
    # Asked for by what it holds: `jaxlib._jax` is in every release, and is loaded in any case.
    earlier = _module("_jax")
    return earlier if hasattr(earlier, "HloModule") else _module("_hlo")


def _module(name: str) -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # as in bindings.provider
    try:
        return import_module(f"jaxlib.{name}")
    except ImportError as error:
        raise ProviderError(f"HLO requires XLA, which is part of jaxlib: install jaxlib ({error})") from error


def _bytecode(module: Any) -> bytes:
    file = io.BytesIO()
    module.operation.write_bytecode(file)
    return file.getvalue()


def _call(function: Any) -> Any:
    try:
        return function()
    except RuntimeError as error:
        # JaxRuntimeError is a RuntimeError.
        raise XlaFailure(str(error).strip()) from error


# Prevent jaxlib from importing jax, which it uses only for jax's own types and works without
#
# Importing jax takes longer than most programs run.


class _NoJax:
    """An import finder that fails for jax in threads within :class:`WithoutJax`."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "jax" and threading.get_ident() in self.threads:
            raise ImportError("XLA's client needs no jax")


_NO_JAX = _NoJax()


class BlockedJax:
    """A context manager that prevents jaxlib from importing jax in this thread, unless jax is already imported.

    It is a class, and not a generator, for speed: each run of a program enters it several times.
    """

    __slots__ = ("_thread",)

    def __init__(self) -> None:
        self._thread: int | None = None

    def __enter__(self) -> None:
        if "jax" in sys.modules:
            return
        if _NO_JAX not in sys.meta_path:
            sys.meta_path.insert(0, _NO_JAX)
        thread = threading.get_ident()
        if thread not in _NO_JAX.threads:
            self._thread = thread
            _NO_JAX.threads.add(thread)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._thread is not None:
            _NO_JAX.threads.discard(self._thread)


def allowing_jax(function: Callable[..., Any]) -> Callable[..., Any]:

    def allowed(*arguments: Any) -> Any:
        thread = threading.get_ident()
        held = thread in _NO_JAX.threads
        _NO_JAX.threads.discard(thread)
        try:
            return function(*arguments)
        finally:
            if held:
                _NO_JAX.threads.add(thread)

    return allowed
