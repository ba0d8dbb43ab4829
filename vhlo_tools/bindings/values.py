"""Values of MLIR by their place: the number of a result of its op, and of an argument of its block."""

from __future__ import annotations

from typing import Any

__all__ = ["argument_number", "result_number"]


def argument_number(value: Any) -> int:
    """Return which argument of its block a value is, from 0."""
    # Up to jaxlib 0.9.0 operands are of the class Value, which has no number.
    return int((value if hasattr(value, "arg_number") else _ir(value).BlockArgument(value)).arg_number)


def result_number(value: Any) -> int:
    """Return which result of its op a value is, from 0."""
    return int((value if hasattr(value, "result_number") else _ir(value).OpResult(value)).result_number)


def _ir(value: Any) -> Any:
    from vhlo_tools.bindings.providers import provider_of

    provider = provider_of(value)
    assert provider is not None, f"{type(value)} is of no provider"
    return provider.ir
