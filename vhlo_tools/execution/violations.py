"""Refusal of programs that violate the specification so that an engine returns wrong numbers without a word."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Operation, Provider, source_of
from vhlo_tools.compat import SILENT, Checked, violation_text
from vhlo_tools.errors import EngineError
from vhlo_tools.program import channel_of, place_of

_CASE: Final = re.compile(r"#stablehlo<\w+ (\w+)>")
#: What the rules examine. Reading all attributes would end the process at names that are not UTF-8.
_NAMES: Final = (
    *("compare_type", "comparison_direction", "fft_length", "fft_type", "replica_groups"),
    *("all_gather_dim", "scatter_dimension", "use_global_device_ids", "channel_handle"),
)
_TENSOR: Final = re.compile(r"tensor<((?:\d+x)*)([\w<>]+)>")


def refuse_silent_violations(provider: Provider, module: Any, name: str) -> None:
    # Equal ops are examined once: attributes and types of MLIR are the same objects in C++.
    seen = set()
    for op in provider.walk(module):
        dialect, _, short = str(op.name).partition(".")
        if dialect != "stablehlo" or short not in SILENT:
            continue
        given = op.attributes
        attributes = {key: given[key] for key in _NAMES if key in given}
        types = tuple(
            tuple([each.type for each in values])
            for values in (op.operands, op.results, *(region.blocks[0].arguments for region in op.regions))
        )
        key = (short, *attributes.items(), types)
        if key in seen:
            continue
        seen.add(key)
        checked = _checked(op, attributes, types)
        for constraint in SILENT[short]:
            if (said := constraint.violated_by(checked)) is not None:
                place = place_of(source_of(op.location), name)
                raise EngineError(f"{place or name}: {violation_text(str(op.name), constraint, said)}")


def _checked(op: Operation, attributes: Mapping[str, Any], types: Sequence[Sequence[Any]]) -> Checked:
    """What rules examine, as a file has it; what has another form is left out, and rules say nothing of it."""
    examined = {key: _attribute(each) for key, each in attributes.items()}
    examined["channel_id"] = {"value": channel_of(op)}
    operands, results, *bodies = ([_type(str(each)) for each in values] for values in types)
    return Checked(examined, operands, results, bodies, None)


def _attribute(attribute: Any) -> dict[str, Any]:
    text = str(attribute)
    if match := _CASE.fullmatch(text):
        return {"case": match[1]}
    if text in ("unit", "true", "false"):
        return {"value": text != "false"}
    if match := re.fullmatch(r"(-?\d+) : i64", text):
        return {"value": int(match[1])}
    if not text.startswith(("dense<", "array<i64")):
        return {}
    array = np.array(attribute if text.startswith("dense<") else [*attribute], np.int64)
    return {"type": {"type": "tensor_v1", "shape": [*array.shape]}, "data": array.tobytes().hex()}


def _type(text: str) -> dict[str, Any]:
    match = _TENSOR.fullmatch(text)
    if match is None:
        return {}
    return {
        "type": "tensor_v1",
        "shape": [int(size) for size in match[1].split("x") if size],
        "element": _element(match[2]),
    }


def _element(text: str) -> dict[str, Any]:
    if text.startswith("complex<"):
        return {"type": "complex_v1", "element": _element(text.removeprefix("complex<").removesuffix(">"))}
    return {"type": "bool_v1" if text == "i1" else f"{text}_v1"}
