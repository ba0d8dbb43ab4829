"""Custom calls of LAPACK, as JAX emits them for CPUs, computed by XLA with jaxlib's own routines.

Source of operands, attributes and layouts: ``jax/_src/lax/linalg.py`` and ``jaxlib/cpu/lapack_kernels.h`` in
jax-ml/jax.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import XlaFailure, XlaSource, missing_routine, register_lapack
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.handlers import CustomCall
from vhlo_tools.execution.values.arrays import ArgumentType
from vhlo_tools.execution.xla_programs import LoadedProgram, load

_ELEMENTS: Final = {
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "int32": "i32",
}
#: Attributes that are numbers, not letters.
_NUMBERS: Final = frozenset({"high", "low"})


def lapack(call: CustomCall, *arrays: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """The form of the call has been checked (:mod:`vhlo_tools.execution.custom_calls`)."""
    if call.target not in register_lapack():
        raise EngineError(f"{call}: {missing_routine(call.target)}")
    if not all(each.size for each in arrays):
        return _of_nothing(call)
    config = call.attributes.get("mhlo.backend_config") or call.attributes.get("backend_config")
    try:
        compiled = _compiled(
            call.target,
            _config(config if isinstance(config, Mapping) else {}),
            tuple((_ELEMENTS[each.dtype.name], each.shape) for each in arrays),
            call.results,
            _layouts(call, "operand_layouts"),
            _layouts(call, "result_layouts"),
        )
        return tuple(compiled.call([np.ascontiguousarray(each).reshape(each.shape) for each in arrays], None))
    except XlaFailure as failure:
        raise EngineError(f"{call} failed: {failure}") from failure


def _of_nothing(call: CustomCall) -> tuple[np.ndarray[Any, Any], ...]:
    """Some of jaxlib's routines divide by zero for operands without elements."""
    results = [np.zeros(each.static_shape, each.dtype) for each in call.results]
    if any(each.size and each.dtype.kind != "i" for each in results):
        raise EngineError(f"{call}: LAPACK does not define the result for an empty matrix")
    return tuple(results)


@cache
def _compiled(
    target: str,
    config: str,
    operands: tuple[tuple[str, tuple[int, ...]], ...],
    results: tuple[ArgumentType, ...],
    *layouts: str,
) -> LoadedProgram:
    taken, given = [_tensor(*each) for each in operands], [each.text for each in results]
    names = [f"%a{number}" for number in range(len(taken))]
    parameters = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, taken, strict=True))
    text = f"""func.func @main({parameters}) -> ({", ".join(given)}) {{
      %r:{len(given)} = stablehlo.custom_call @{target}({", ".join(names)}) {{
        api_version = 4 : i32, backend_config = {config},
        operand_layouts = [{layouts[0]}], result_layouts = [{layouts[1]}]
      }} : ({", ".join(taken)}) -> ({", ".join(given)})
      return {", ".join(f"%r#{number}" for number in range(len(given)))} : {", ".join(given)}
    }}"""
    types = tuple((each.static_shape, each.dtype) for each in results)
    return load(XlaSource(target, text.encode(), types, lapack=True), [], in_process=False)


def _tensor(element: str, shape: tuple[int, ...]) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def _config(values: Mapping[str, Any]) -> str:
    def literal(name: str, value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else f"{value} : {'i32' if name in _NUMBERS else 'ui8'}"

    return "{" + ", ".join(f"{name} = {literal(name, value)}" for name, value in sorted(values.items())) + "}"


def _layouts(call: CustomCall, name: str) -> str:
    orders = ([int(each) for each in order] for order in call.attributes[name])
    return ", ".join(f"dense<{order or ''}> : tensor<{len(order)}xindex>" for order in orders)
