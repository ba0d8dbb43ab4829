"""The rule for ``ApproxTopK``, as ``jax.lax.approx_max_k`` and ``approx_min_k`` emit it on every platform.

XLA for the CPU sorts, and returns the exact result. Sources: ``jax/_src/lax/ann.py`` in jax-ml/jax, and
``xla/hlo/builder/lib/approx_topk.cc`` in openxla/xla.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vhlo_tools.bindings import approx_top_k_size
from vhlo_tools.execution.custom_calls.call_forms import CallForm
from vhlo_tools.execution.values.arrays import ArgumentType
from vhlo_tools.records import dataclass

_CONFIG: Final = "mhlo.backend_config"
_ENTRIES: Final = {
    "aggregate_to_topk": "i1",
    "is_fallback": "i1",
    "recall_target": "f32",
    "reduction_dim": "i64",
    "reduction_input_size_override": "i64",
    "top_k": "i64",
}
_OPTIONAL: Final = frozenset({"is_fallback"})
_ELEMENTS: Final = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True, slots=True)
class ApproxTopK:
    requires: str = (
        "a tensor of floats, one of i32 of the same shape, the initial value of each, and a function that compares two "
        "values, and returns the largest or smallest values along a dimension and their indices"
    )

    def reason_against(self, form: CallForm) -> str | None:
        if form.attributes.get("api_version", 1) != 1:
            return f"its api_version is {form.attributes['api_version']}, expected 1"
        for name in (
            "backend_config",
            "has_side_effect",
            "operand_layouts",
            "result_layouts",
            "output_operand_aliases",
        ):
            if form.attributes.get(name, "") not in ("", False):
                return f"it has the attribute {name}, expected none"
        if form.is_tuple:
            return "its results are a tuple, expected tensors"
        return _reason_against_entries(form) or _reason_against_types(form, form.attributes[_CONFIG])


def _reason_against_entries(form: CallForm) -> str | None:
    config = form.attributes.get(_CONFIG)
    if not isinstance(config, Mapping) or not _ENTRIES.keys() - _OPTIONAL <= config.keys() <= _ENTRIES.keys():
        found = ", ".join(sorted(map(str, config))) if isinstance(config, Mapping) else repr(config)
        return f"its {_CONFIG} has {found}, expected {', '.join(_ENTRIES)}"
    for name, type_ in _ENTRIES.items():
        entry_type = form.entry_types.get((_CONFIG, name))
        if name in config and entry_type != type_:
            return f"{name} in its {_CONFIG} has the type {entry_type}, expected {type_}"
    if not 0 < config["recall_target"] <= 1:
        return f"its recall_target is {config['recall_target']}, expected a number above 0, at most 1"
    return None


def _reason_against_types(form: CallForm, config: Mapping[str, Any]) -> str | None:
    types = (*form.operands, *form.results)
    if len(form.operands) != 4 or len(form.results) != 2:
        return f"it has {len(form.operands)} operands and {len(form.results)} results, expected 4 and 2"
    tensors = [each for each in types if isinstance(each, ArgumentType) and each.is_static]
    if len(tensors) != 6:
        return "an operand or result is not a tensor of known shape"
    shape, element, axis = tensors[0].static_shape, tensors[0].element, config["reduction_dim"]
    if element not in _ELEMENTS or not 0 <= axis < len(shape):
        return (
            f"its operand 0 is {tensors[0].text} and its reduction_dim is {axis}, expected floats and a dimension of it"
        )
    least = config["reduction_input_size_override"]
    size, k = shape[axis], config["top_k"]
    if not 1 <= k <= size or not (least == -1 or least >= size):
        return f"its top_k is {k} and its reduction_input_size_override is {least}, and the dimension has size {size}"
    if not config["aggregate_to_topk"]:
        k = approx_top_k_size(size, len(shape), k, config["recall_target"], least)
    given = (*shape[:axis], k, *shape[axis + 1 :])
    wanted = [(element, shape), ("i32", shape), (element, ()), ("i32", ()), (element, given), ("i32", given)]
    for number, (tensor, (wanted_element, wanted_shape)) in enumerate(zip(tensors, wanted, strict=True)):
        if (tensor.element, tensor.static_shape) != (wanted_element, wanted_shape):
            name = f"operand {number}" if number < 4 else f"result {number - 4}"
            return f"its {name} is {tensor.text}, expected {wanted_element}{list(wanted_shape)}"
    if form.comparisons not in (((element, "GT"),), ((element, "LT"),)):
        return f"its called_computations must be one function that compares two values of {element} by GT or LT"
    return None
