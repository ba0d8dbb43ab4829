"""Printer of a file as MLIR text in the generic form, without MLIR."""

from vhlo_tools.bytecode.printing.entry_text import Printer
from vhlo_tools.bytecode.printing.operations import inherent_attributes, print_program

__all__ = ["Printer", "inherent_attributes", "print_program"]
