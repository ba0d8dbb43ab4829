"""Programs rewritten so that the reference interpreter can run them, with the same meaning."""

from __future__ import annotations

from vhlo_tools.bindings import Module, Provider
from vhlo_tools.interpreter.lowering.bounds import release_bounds
from vhlo_tools.interpreter.lowering.narrow_floats import widen_narrow_floats
from vhlo_tools.interpreter.lowering.quantization import store_quantized
from vhlo_tools.interpreter.lowering.rules import RULES, apply_rules
from vhlo_tools.interpreter.lowering.shapes import resolve_shapes
from vhlo_tools.interpreter.lowering.surroundings import surround

__all__ = ["lower", "release_bounds", "resolve_shapes", "surround"]


def lower(provider: Provider, module: Module, name: str) -> None:
    """Rewrite what the interpreter lacks or dies of, in place, as far as it can be rewritten.

    Args:
        provider: The bindings.
        module: The program, with its shapes resolved.
        name: What to call it in messages.

    Raises:
        EngineError: Naming an op whose form has no meaning that is known.
        MLIRFailure: If what was built is not valid.
    """
    store_quantized(provider, module, name)
    widen_narrow_floats(provider, module, name)
    apply_rules(provider, module, RULES, name)
