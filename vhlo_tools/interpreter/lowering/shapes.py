"""Dynamic shapes, which are those of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Module, Operation, Provider

__all__ = ["is_dynamic", "may_be_sizes", "refinement", "resolve_shapes"]

_PASSES: Final = (
    "inline",
    "stablehlo-refine-arguments{{types={types}}}",
    "stablehlo-refine-shapes",
    "func.func(stablehlo-canonicalize-dynamism)",
    "stablehlo-refine-shapes",
    "func.func(stablehlo-check-shape-assertions{{enable-shape-assertions=true}})",
)

#: Integers that are so many may be sizes.
_MOST_SIZES: Final = 16


def is_dynamic(text: str) -> bool:
    """Tell whether a program, which is printed as ``text``, may have dynamic shapes."""
    return "?" in text


def resolve_shapes(provider: Provider, module: Module, inputs: Sequence[np.ndarray[Any, Any] | None]) -> None:
    """Resolve the dynamic shapes of ``module`` from the inputs, in place; also where the inputs are sizes.

    Args:
        provider: The bindings.
        module: The program, with a ``main``.
        inputs: What its ``main``, of tensors that the interpreter takes, is to be run with; ``None`` for a token.

    Raises:
        MLIRFailure: If a pass fails: the program does not fit these inputs.
    """
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
    provider.run_passes(module, refinement(types), verify=True)


def refinement(types: Sequence[str]) -> str:
    """Return the passes that give ``main`` arguments of ``types``, and everything in it what follows from these."""
    return ",".join(_PASSES).format(types=",".join(types))


def may_be_sizes(array: np.ndarray[Any, Any]) -> bool:
    """Tell whether an input may be the sizes of others, and shapes may follow from its values."""
    return array.dtype.kind in "iu" and array.ndim < 2 and array.size <= _MOST_SIZES


def _is_main(op: Operation) -> bool:
    return str(op.name) == "func.func" and op.attributes["sym_name"].value == "main"


def _fix(provider: Provider, block: Any, argument: Any, array: np.ndarray[Any, Any]) -> None:
    """Let ``array`` as a constant be used in the place of ``argument``."""
    constant = provider.ir.Operation.create(
        "stablehlo.constant",
        results=[argument.type],
        attributes={"value": provider.dense_elements(block.owner.context, array)},
        loc=block.owner.location,
        ip=provider.ir.InsertionPoint.at_block_begin(block),
    )
    argument.replace_all_uses_with(constant.results[0])
