"""Resolution of dynamic shapes from the shapes of the inputs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Module, Operation, Provider, inline_calls

_PASSES: Final = (
    "inline",
    "stablehlo-refine-arguments{{types={types}}}",
    "stablehlo-refine-shapes",
    "func.func(stablehlo-canonicalize-dynamism)",
    "stablehlo-refine-shapes",
    "func.func(stablehlo-check-shape-assertions{{enable-shape-assertions=true}})",
)

_QUOTED: Final = re.compile(r'"[^"]*"')

#: The greatest number of integers that may be sizes.
_MOST_SIZES: Final = 16


def is_dynamic(text: str) -> bool:
    # In quotes a question mark means something else, such as an open dimension in a sharding of Shardy.
    return "?" in _QUOTED.sub("", text)


def resolve_shapes(provider: Provider, module: Module, inputs: Sequence[np.ndarray[Any, Any] | None]) -> None:
    """Inputs that may be sizes become constants; an input is ``None`` for a token."""
    (main,) = (op.operation for op in module.body.operations if _is_main(op.operation))
    (block,) = main.regions[0].blocks
    types = []
    with module.context:
        for argument, array in zip(block.arguments, inputs, strict=True):
            if array is None:
                types.append(str(argument.type))
                continue
            sizes = "".join(f"{size}x" for size in array.shape)
            types.append(f"tensor<{sizes}{argument.type.element_type}>")
            if may_be_sizes(array) and str(argument.type) == types[-1]:
                _fix(provider, block, argument, array)
    refine(provider, module, types)


def refine(provider: Provider, module: Module, types: Sequence[str]) -> None:
    # Refinement gives each function one type, so that those called with several sizes must be inlined; the pass
    # `inline` does nothing where a provider has not registered the inlining of functions.
    inline_calls(provider, module, lambda op: str(op.name) == "func.call")
    provider.run_passes(module, ",".join(_PASSES).format(types=",".join(types)), verify=True)


def may_be_sizes(array: np.ndarray[Any, Any]) -> bool:
    """Shapes may depend on the values of such an input."""
    return array.dtype.kind in "iu" and array.ndim < 2 and array.size <= _MOST_SIZES


def _is_main(op: Operation) -> bool:
    return str(op.name) == "func.func" and op.attributes["sym_name"].value == "main"


def _fix(provider: Provider, block: Any, argument: Any, array: np.ndarray[Any, Any]) -> None:
    constant = provider.ir.Operation.create(
        "stablehlo.constant",
        results=[argument.type],
        attributes={"value": provider.dense_elements(block.owner.context, array)},
        loc=block.owner.location,
        ip=provider.ir.InsertionPoint.at_block_begin(block),
    )
    argument.replace_all_uses_with(constant.results[0])
