"""Custom calls of LAPACK, as JAX makes them for CPUs, computed by XLA with jaxlib's own routines.

Source of operands, attributes and layouts: ``jax/_src/lax/linalg.py`` and ``jaxlib/cpu/lapack_kernels.h`` in
jax-ml/jax.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import get_provider
from vhlo_tools.bindings.lapack import register_lapack
from vhlo_tools.bindings.xla import XlaFailure
from vhlo_tools.bindings.xla_client import XlaProgram, compile_for_cpu, put_on_device
from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.handlers import CustomCall
from vhlo_tools.interpreter.values import ArgumentType

__all__ = ["lapack"]

_ELEMENTS: Final = {
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "int32": "i32",
}
#: Attributes that are numbers, and not letters.
_NUMBERS: Final = frozenset({"high", "low"})


def lapack(call: CustomCall, *arrays: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """Return what a routine of LAPACK gives for ``arrays``.

    Raises:
        EngineError: If jaxlib does not have it, or it refuses its operands.
        MissingExtraError: If scipy is not installed.
    """
    if call.target not in register_lapack():
        raise EngineError(f"{call}: the installed jaxlib has no such routine")
    if not all(each.size for each in arrays):
        return _of_nothing(call)
    config = call.attributes.get("mhlo.backend_config", call.attributes.get("backend_config"))
    try:
        compiled = _compiled(
            call.target,
            _config(config if isinstance(config, Mapping) else {}),
            tuple((_ELEMENTS[each.dtype.name], each.shape) for each in arrays),
            call.results,
            _layouts(call, "operand_layouts"),
            _layouts(call, "result_layouts"),
        )
        return tuple(each.view() for each in compiled.execute([put_on_device(each, own=False) for each in arrays]))
    except XlaFailure as failure:
        raise EngineError(f"{call} failed: {failure}") from failure


def _of_nothing(call: CustomCall) -> tuple[np.ndarray[Any, Any], ...]:
    """Return what comes of empty matrices, over which some of jaxlib's routines divide by zero: nothing, and no error.

    Raises:
        EngineError: If there are numbers in the results, which LAPACK does not define.
    """
    results = [np.zeros(each.static_shape, each.dtype) for each in call.results]
    if any(each.size and each.dtype.kind != "i" for each in results):
        raise EngineError(f"{call}: LAPACK does not say what this is of an empty matrix")
    return tuple(results)


@cache
def _compiled(
    target: str,
    config: str,
    operands: tuple[tuple[str, tuple[int, ...]], ...],
    results: tuple[ArgumentType, ...],
    *layouts: str,
) -> XlaProgram:
    """Return a program that makes one call, compiled."""
    taken, given = [_tensor(*each) for each in operands], [each.text for each in results]
    names = [f"%a{number}" for number in range(len(taken))]
    parameters = ", ".join(f"{name}: {kind}" for name, kind in zip(names, taken, strict=True))
    text = f"""func.func @main({parameters}) -> ({", ".join(given)}) {{
      %r:{len(given)} = stablehlo.custom_call @{target}({", ".join(names)}) {{
        api_version = 4 : i32, backend_config = {config},
        operand_layouts = [{layouts[0]}], result_layouts = [{layouts[1]}]
      }} : ({", ".join(taken)}) -> ({", ".join(given)})
      return {", ".join(f"%r#{number}" for number in range(len(given)))} : {", ".join(given)}
    }}"""
    provider = get_provider("jaxlib")
    module = provider.parse(provider.new_context(), text)
    return compile_for_cpu(module, [(each.static_shape, each.dtype) for each in results])


def _tensor(element: str, shape: tuple[int, ...]) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def _config(values: Mapping[str, Any]) -> str:
    def literal(name: str, value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else f"{value} : {'i32' if name in _NUMBERS else 'ui8'}"

    return "{" + ", ".join(f"{name} = {literal(name, value)}" for name, value in sorted(values.items())) + "}"


def _layouts(call: CustomCall, name: str) -> str:
    """Return layouts as MLIR text: matrices stand column by column."""
    orders = ([int(each) for each in order] for order in call.attributes[name])
    return ", ".join(f"dense<{order or ''}> : tensor<{len(order)}xindex>" for order in orders)
