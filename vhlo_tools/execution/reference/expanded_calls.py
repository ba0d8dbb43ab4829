"""Custom calls that XLA itself expands or has a function for, as TensorFlow emits them, computed by XLA.

Source: ``xla/hlo/transforms/expanders/qr_expander.cc`` and ``eigh_expander.cc``, and for TopK
``xla/service/cpu/thunk_emitter.cc``, in openxla/xla.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import XlaFailure, XlaSource
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.handlers import CustomCall
from vhlo_tools.execution.values.arrays import ArgumentType
from vhlo_tools.execution.xla_programs import LoadedProgram, load

#: The targets: QR decompositions, products of Householder reflectors, eigenvalues of Hermitian matrices, and the
#: largest elements.
EXPANDED_BY_XLA: Final = frozenset({"Eigh", "ProductOfElementaryHouseholderReflectors", "Qr", "TopK"})

_ELEMENTS: Final = {
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
}


def expanded_by_xla(call: CustomCall, *arrays: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """The form of the call has been checked (:mod:`vhlo_tools.execution.custom_calls`)."""
    config = call.attributes.get("backend_config") or ""
    operands = tuple((_ELEMENTS[each.dtype.name], each.shape) for each in arrays)
    try:
        compiled = _compiled(call.target, str(config), operands, call.results)
        return tuple(compiled.call([np.ascontiguousarray(each).reshape(each.shape) for each in arrays], None))
    except XlaFailure as failure:
        raise EngineError(f"{call} failed: {failure}") from failure


@cache
def _compiled(
    target: str, config: str, operands: tuple[tuple[str, tuple[int, ...]], ...], results: tuple[ArgumentType, ...]
) -> LoadedProgram:
    taken = [f"tensor<{''.join(f'{size}x' for size in shape)}{element}>" for element, shape in operands]
    given = [each.text for each in results]
    names = [f"%a{number}" for number in range(len(taken))]
    parameters = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, taken, strict=True))
    text = f"""func.func @main({parameters}) -> ({", ".join(given)}) {{
      %r:{len(given)} = stablehlo.custom_call @{target}({", ".join(names)}) {{backend_config = {json.dumps(config)}}}
        : ({", ".join(taken)}) -> ({", ".join(given)})
      return {", ".join(f"%r#{number}" for number in range(len(given)))} : {", ".join(given)}
    }}"""
    types = tuple((each.static_shape, each.dtype) for each in results)
    return load(XlaSource(target, text.encode(), types), [], in_process=False)
