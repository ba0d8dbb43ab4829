"""Any accepted input becomes one thing: a program that can be turned into MLIR."""

from vhlo_tools.program.loading import LOADERS, ProgramSource, load_program
from vhlo_tools.program.program import Program, explain_failure, place_of, unreadable

__all__ = ["LOADERS", "Program", "ProgramSource", "explain_failure", "load_program", "place_of", "unreadable"]
