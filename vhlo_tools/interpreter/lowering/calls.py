"""Calls that the interpreter cannot make: it passes only tensors to functions."""

from __future__ import annotations

from vhlo_tools.bindings import Operation

__all__ = ["passes_only_tensors"]


def passes_only_tensors(op: Operation) -> bool:
    """Tell whether all operands and results are tensors, and not tokens or tuples."""
    return all(str(value.type).startswith("tensor<") for value in (*op.operands, *op.results))
