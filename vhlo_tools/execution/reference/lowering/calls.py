"""Calls that the interpreter does not support: it passes only tensors to functions."""

from __future__ import annotations

from vhlo_tools.bindings import Operation


def passes_only_tensors(op: Operation) -> bool:
    return all(str(value.type).startswith("tensor<") for value in (*op.operands, *op.results))
