"""Lowering of programs to what the reference interpreter runs, without a change of their meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from vhlo_tools.bindings import Module, Provider
from vhlo_tools.conversion import Pattern, patterns_of
from vhlo_tools.execution.lowering.indexing import SCATTER_PATTERNS, SCATTERS_TO_COPIES, scatter_as_specified
from vhlo_tools.execution.lowering.patterns import PATTERNS, apply_required, placed_unless
from vhlo_tools.execution.lowering.shapes import has_bounds, is_dynamic, release_bounds, resolve_shapes, wrap_main
from vhlo_tools.execution.lowering.types import NARROW_FLOAT_PATTERNS, has_narrow_floats, is_quantized, store_quantized
from vhlo_tools.execution.values import ValueType

#: How a program failed whose ops cannot become those that the interpreter has.
UNWRITABLE: Final = "cannot be rewritten for the reference interpreter"


def fit(
    provider: Provider,
    module: Module,
    arguments: Sequence[ValueType],
    results: Sequence[ValueType],
    inputs: Sequence[np.ndarray[Any, Any] | None],
    name: str,
) -> None:
    """In place; ``inputs`` are those of the new ``main``. Errors name an op whose size does not follow from them."""
    text = provider.text(module, largest_constant=0)
    if has_bounds(text):
        release_bounds(provider, module, name)
    if is_quantized(text):
        # Before shapes are resolved: the pass crashes on bits of quantized tensors of dynamic shape.
        store_quantized(provider, module, name)
    wrap_main(provider, module, arguments, results)
    if is_dynamic(text):
        resolve_shapes(provider, module, inputs)


def lower(
    provider: Provider, module: Module, name: str, handled: frozenset[str] = frozenset(), *, as_specified: bool = False
) -> None:
    """In place; custom calls of targets in ``handled`` are kept, although their meaning is known.

    With ``as_specified``, windows of scatters that are partly outside update the elements inside, as StableHLO
    specifies; by default they change nothing, as in XLA.
    """
    text = provider.text(module, largest_constant=0)
    if has_narrow_floats(text):
        apply_required(provider, module, NARROW_FLOAT_PATTERNS, name)
    placed = Pattern("stablehlo.custom_call", placed_unless(handled), required=True)
    specified = patterns_of({"stablehlo.scatter": scatter_as_specified} if as_specified else {}, required=True)
    apply_required(provider, module, (*PATTERNS, placed, *specified), name)
    if provider.library.current < SCATTERS_TO_COPIES:
        apply_required(provider, module, SCATTER_PATTERNS, name)
