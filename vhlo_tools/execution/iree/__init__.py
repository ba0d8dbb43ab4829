"""The engine ``iree``: programs compiled by IREE for the CPU, and run by IREE's virtual machine."""

from vhlo_tools.execution.iree.iree_engine import IreeEngine

__all__ = ["IreeEngine"]
