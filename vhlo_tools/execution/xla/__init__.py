"""The engine ``xla``: programs compiled by XLA for the CPU, on one device or several."""

from vhlo_tools.execution.xla.xla_engine import XlaEngine

__all__ = ["XlaEngine"]
