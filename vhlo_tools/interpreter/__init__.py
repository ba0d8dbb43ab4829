"""Evaluation: numpy in, numpy out, on StableHLO's reference interpreter."""

from vhlo_tools.interpreter.reference import evaluate
from vhlo_tools.interpreter.values import ArgumentType, parse_tensor_type

__all__ = ["ArgumentType", "evaluate", "parse_tensor_type"]
