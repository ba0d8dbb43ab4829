"""Built-in handlers of custom calls: assertions, XLA's own, and LAPACK."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import XlaFailure, XlaSource, is_lapack, missing_routine, register_lapack
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.call_rules import form_of_call
from vhlo_tools.execution.handlers import CustomCall, Handler
from vhlo_tools.execution.isolated import LoadedProgram
from vhlo_tools.execution.known_targets import PLACING, RULES, reason_against
from vhlo_tools.execution.values import ArgumentType, type_of_array

Array = np.ndarray[Any, Any]

# Custom calls that compare two values: the assertions of StableHLO's own tests
#
# Source, of the tolerances too: ``stablehlo/tools/StablehloTranslateMain.cpp`` and ``stablehlo/tests/CheckOps.cpp`` in
# openxla/stablehlo. As there, a difference ends the evaluation.

_TOLERANCE: Final = 1e-3
_TOLERANCE_OF_EQ: Final = 1e-4
_ULPS: Final = 3
#: The number of differences in a message.
_SHOWN: Final = 3


def expect_eq(call: CustomCall, actual: Array, expected: Array) -> None:
    """NaN equals nothing."""
    with np.errstate(invalid="ignore"):
        _expect(call, actual, expected, actual == expected, "equal")


def expect_almost_eq(call: CustomCall, actual: Array, expected: Array, tolerance: float = _TOLERANCE) -> None:
    """NaN must be in the same places."""
    _expect(call, actual, expected, is_near(actual, expected, tolerance), f"within {tolerance:g}")


def expect_close(call: CustomCall, actual: Array, expected: Array) -> None:
    """Floats may be 3 ulp apart, with NaN in the same places; integers must be equal."""
    good = actual == expected if _is_whole(actual) else ulp_difference(actual, expected) <= _ULPS
    _expect(call, actual, expected, good, f"within {_ULPS} ulp")


def is_eq(call: CustomCall, actual: Array, expected: Array) -> bool:
    if _is_whole(actual):
        expect_eq(call, actual, expected)
    else:
        expect_almost_eq(call, actual, expected, _TOLERANCE_OF_EQ)
    return True


def _expect(call: CustomCall, actual: Array, expected: Array, good: Any, wanted: str) -> None:
    bad = np.argwhere(~np.asarray(good))
    if not len(bad):
        return
    places = [tuple(map(int, index)) for index in bad[:_SHOWN]]
    shown = "; ".join(f"{actual[place]} at {list(place)}, expected {expected[place]}" for place in places)
    more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
    raise EngineError(f"{call}: {len(bad)} of {actual.size} values are not {wanted}: {shown}{more}")


def _is_whole(array: Array) -> bool:
    return array.dtype.kind in "biu" or "int" in array.dtype.name


def is_near(actual: Array, expected: Array, tolerance: float) -> Any:
    if np.iscomplexobj(actual):
        return is_near(actual.real, expected.real, tolerance) & is_near(actual.imag, expected.imag, tolerance)
    one, other = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(one - other) <= tolerance
    return (one == other) | near | (np.isnan(one) & np.isnan(other))


def ulp_difference(actual: Array, expected: Array) -> Any:
    """Zero if both are NaN, the largest integer if they differ and one is not finite; the greater part if complex."""
    if np.iscomplexobj(actual):
        return np.maximum(ulp_difference(actual.real, expected.real), ulp_difference(actual.imag, expected.imag))
    numbers = actual.astype(np.float64), expected.astype(np.float64)
    finite, opposite = np.isfinite(numbers).all(0), np.logical_xor(*np.signbit(numbers))
    # The integers can represent the sum of two distances from zero.
    one, other = (np.abs(each).view(f"u{each.dtype.itemsize}").astype(np.uint64) for each in (actual, expected))
    steps = np.where(opposite, one + other, np.maximum(one, other) - np.minimum(one, other))
    both_nan = np.isnan(numbers).all(0)
    same = (one == other) & ~opposite
    return np.where(both_nan | same, 0, np.where(finite, steps, np.iinfo(np.uint64).max)).astype(np.uint64)


# Custom calls that XLA computes
#
# Those that XLA itself expands or has a function for, as TensorFlow emits them; source:
# ``xla/hlo/transforms/expanders/qr_expander.cc`` and ``eigh_expander.cc``, and for TopK
# ``xla/service/cpu/thunk_emitter.cc``, in openxla/xla. Those of LAPACK, as JAX emits them for CPUs, computed with
# jaxlib's own routines; source: ``jax/_src/lax/linalg.py`` and ``jaxlib/cpu/lapack_kernels.h`` in jax-ml/jax.

#: The targets: QR decompositions, products of Householder reflectors, eigenvalues of Hermitian matrices, and the
#: largest elements.
EXPANDED_BY_XLA: Final = frozenset({"Eigh", "ProductOfElementaryHouseholderReflectors", "Qr", "TopK"})

#: Attributes of LAPACK's calls that are numbers, not letters.
_NUMBERS: Final = frozenset({"high", "low"})


def expanded_by_xla(call: CustomCall, *arrays: Array) -> tuple[Array, ...]:
    """The form of the call has been checked (:mod:`vhlo_tools.execution.known_targets`)."""
    config = call.attributes.get("backend_config") or ""
    return _computed(call, arrays, f"backend_config = {json.dumps(str(config))}")


def lapack(call: CustomCall, *arrays: Array) -> tuple[Array, ...]:
    """The form of the call has been checked (:mod:`vhlo_tools.execution.known_targets`)."""
    if call.target not in register_lapack():
        raise EngineError(f"{call}: {missing_routine(call.target)}")
    if not all(each.size for each in arrays):
        # Some of jaxlib's routines divide by zero for operands without elements.
        results = tuple(np.zeros(each.static_shape, each.dtype) for each in call.results)
        if any(each.size and each.dtype.kind != "i" for each in results):
            raise EngineError(f"{call}: LAPACK does not define the result for an empty matrix")
        return results
    config = call.attributes.get("mhlo.backend_config") or call.attributes.get("backend_config")
    entries = sorted(config.items()) if isinstance(config, Mapping) else []
    written = ", ".join(f"{name} = {_literal(name, value)}" for name, value in entries)
    layouts = ", ".join(f"{name} = [{_layouts(call, name)}]" for name in ("operand_layouts", "result_layouts"))
    return _computed(call, arrays, f"api_version = 4 : i32, backend_config = {{{written}}}, {layouts}")


def _computed(call: CustomCall, arrays: Sequence[Array], attributes: str) -> tuple[Array, ...]:
    operands = tuple(type_.text for each in arrays if (type_ := type_of_array(each)) is not None)
    try:
        compiled = _compiled(call.target, attributes, operands, call.results)
        return tuple(compiled.call([np.ascontiguousarray(each).reshape(each.shape) for each in arrays], None))
    except XlaFailure as failure:
        raise EngineError(f"{call} failed: {failure}") from failure


@cache
def _compiled(
    target: str, attributes: str, operands: tuple[str, ...], results: tuple[ArgumentType, ...]
) -> LoadedProgram:
    names = [f"%a{number}" for number in range(len(operands))]
    parameters = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, operands, strict=True))
    returned = ", ".join(each.text for each in results)
    text = f"""func.func @main({parameters}) -> ({returned}) {{
      %r:{len(results)} = stablehlo.custom_call @{target}({", ".join(names)}) {{{attributes}}}
        : ({", ".join(operands)}) -> ({returned})
      return {", ".join(f"%r#{number}" for number in range(len(results)))} : {returned}
    }}"""
    types = tuple((each.static_shape, each.dtype) for each in results)
    return LoadedProgram(XlaSource(target, text.encode(), types, lapack=is_lapack(target)), [], in_process=False)


def _literal(name: str, value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value} : {'i32' if name in _NUMBERS else 'ui8'}"


def _layouts(call: CustomCall, name: str) -> str:
    orders = ([int(each) for each in order] for order in call.attributes[name])
    return ", ".join(f"dense<{order or ''}> : tensor<{len(order)}xindex>" for order in orders)


# Built-in handlers of custom calls, used where the program has none


#: Targets of the calls of GSPMD, and of Shardy in the form for HLO, that specify shardings: where XLA's partitioner
#: runs, it handles these calls itself.
OF_PARTITIONER: Final = frozenset(
    {
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "Sharding",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.GlobalToLocalShape",
        "xla.sdy.LocalToGlobalShape",
        "xla.sdy.ShardingGroup",
    }
)

#: The handler of each target. Sources: for annotations ``xla/hlo/ir/hlo_sharding.h``,
#: ``xla/service/layout_assignment.cc`` and ``xla/service/memory_annotations.h`` in openxla/xla.
KNOWN_CALLS: Final[Mapping[str, Handler]] = {
    # These only specify the placement or sharding of their operand.
    **dict.fromkeys(
        (*PLACING, "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding"),
        lambda _, array: array,
    ),
    "check.eq": is_eq,
    "check.expect_almost_eq": expect_almost_eq,
    "check.expect_close": expect_close,
    "check.expect_eq": expect_eq,
    # It only keeps its operands from being removed as unused.
    "dce_sink": lambda *_: None,
}


def known_handler(target: str) -> Handler | None:
    """The handler raises :class:`EngineError` for a call of a wrong form."""
    if target not in RULES:
        return None
    compute = lapack if is_lapack(target) else expanded_by_xla if target in EXPANDED_BY_XLA else KNOWN_CALLS.get(target)
    if compute is None:
        return None

    def checked(call: CustomCall, *arrays: Array) -> Any:
        if reason := reason_against(form_of_call(call, arrays)):
            raise EngineError(f"{call}: {reason}")
        return compute(call, *arrays)

    return checked
