"""XLA in jaxlib: modules of HLO, and the way between them and StableHLO.

``jaxlib._hlo`` and ``jaxlib._jax.mlir`` are private to jaxlib; what is used of them is the same from 0.8.1 to 0.12.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from vhlo_tools.errors import ProviderError

__all__ = ["XlaFailure", "hlo_of_stablehlo", "hlo_of_text", "stablehlo_of_hlo", "text_of_hlo"]


class XlaFailure(Exception):  # noqa: N818 - it never leaves the toolkit: each caller turns it into its own error
    """A call into XLA failed; the message is what it said."""


def hlo_of_text(text: str) -> bytes:
    """Return the module in HLO text as an ``HloModuleProto``.

    Raises:
        XlaFailure: If XLA's parser refuses it.
        ProviderError: If jaxlib is not installed.
    """
    proto: bytes = _call(lambda: _module("_hlo").hlo_module_from_text(text).as_serialized_hlo_module_proto())
    return proto


def text_of_hlo(proto: bytes) -> str:
    """Return an ``HloModuleProto`` as HLO text.

    Raises:
        XlaFailure: If XLA refuses it.
        ProviderError: If jaxlib is not installed.
    """
    text: str = _call(lambda: _module("_hlo").HloModule.from_serialized_hlo_module_proto(proto).to_string())
    return text


def stablehlo_of_hlo(proto: bytes) -> bytes:
    """Return an ``HloModuleProto`` as MLIR bytecode of StableHLO.

    Raises:
        XlaFailure: If XLA cannot.
        ProviderError: If jaxlib is not installed.
    """
    bytecode: bytes = _call(lambda: _module("_jax").mlir.hlo_to_stablehlo(proto))
    return bytecode


def hlo_of_stablehlo(artifact: bytes) -> bytes:
    """Return a portable artifact as an ``HloModuleProto``, its parameters and results as they are.

    Raises:
        XlaFailure: If XLA cannot.
        ProviderError: If jaxlib is not installed.
    """

    def convert() -> Any:
        mlir = _module("_jax").mlir
        computation = mlir.mlir_module_to_xla_computation(artifact, use_tuple_args=False, return_tuple=False)
        return computation.as_serialized_hlo_module_proto()

    proto: bytes = _call(convert)
    return proto


def _module(name: str) -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # as in bindings.provider
    try:
        return import_module(f"jaxlib.{name}")
    except ImportError as error:
        raise ProviderError(f"HLO needs XLA, which comes with jaxlib: install jaxlib ({error})") from error


def _call(function: Any) -> Any:
    try:
        return function()
    except RuntimeError as error:
        # JaxRuntimeError is one.
        raise XlaFailure(str(error).strip()) from error
