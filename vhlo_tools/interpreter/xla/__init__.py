"""The engine ``xla``: programs compiled by XLA for the CPU, on one device or several."""

from vhlo_tools.interpreter.xla.engine import XlaEngine

__all__ = ["XlaEngine"]
