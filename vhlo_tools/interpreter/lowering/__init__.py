"""Programs rewritten so that the reference interpreter can run them, with the same meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vhlo_tools.bindings import Module, Provider
from vhlo_tools.interpreter.lowering.annotations import placed_unless
from vhlo_tools.interpreter.lowering.bounds import has_bounds, release_bounds
from vhlo_tools.interpreter.lowering.narrow_floats import has_narrow_floats, widen_narrow_floats
from vhlo_tools.interpreter.lowering.quantization import is_quantized, store_quantized
from vhlo_tools.interpreter.lowering.rules import RULES, apply_rules
from vhlo_tools.interpreter.lowering.scattering import RULES_OF_SCATTER, writes_over_inputs
from vhlo_tools.interpreter.lowering.shapes import is_dynamic, resolve_shapes
from vhlo_tools.interpreter.lowering.surroundings import surround
from vhlo_tools.interpreter.values import ValueType

__all__ = ["fit", "is_dynamic", "lower"]


def fit(
    provider: Provider,
    module: Module,
    arguments: Sequence[ValueType],
    results: Sequence[ValueType],
    inputs: Sequence[np.ndarray[Any, Any] | None],
    name: str,
) -> None:
    """Give ``module`` a ``main`` of tensors that the interpreter takes, and the shapes of the inputs, in place.

    Args:
        provider: The bindings.
        module: The program, as plain StableHLO.
        arguments: The types of what its own ``main`` takes.
        results: The types of what that returns.
        inputs: What the new ``main`` is to be run with.
        name: What to call it in messages.

    Raises:
        EngineError: Naming an op whose size does not follow from the inputs.
        MLIRFailure: If the program does not fit the inputs.
    """
    text = provider.text(module, largest_constant=0)
    if has_bounds(text):
        release_bounds(provider, module, name)
    if is_quantized(text):
        # Before shapes are resolved: the pass ends the process over bits of quantized tensors of dynamic shape.
        store_quantized(provider, module, name)
    surround(provider, module, arguments, results)
    if is_dynamic(text):
        resolve_shapes(provider, module, inputs)


def lower(provider: Provider, module: Module, name: str, handled: frozenset[str] = frozenset()) -> None:
    """Rewrite what the interpreter lacks or dies of, in place, as far as it can be rewritten.

    Args:
        provider: The bindings.
        module: The program, with its shapes resolved.
        name: What to call it in messages.
        handled: The targets of custom calls that stay, though their meaning is known.

    Raises:
        EngineError: Naming an op whose form has no meaning that is known.
        MLIRFailure: If what was built is not valid.
    """
    text = provider.text(module, largest_constant=0)
    if has_narrow_floats(text):
        widen_narrow_floats(provider, module, name)
    apply_rules(provider, module, {**RULES, "stablehlo.custom_call": placed_unless(handled)}, name)
    if writes_over_inputs(provider.library.current):
        apply_rules(provider, module, RULES_OF_SCATTER, name)
