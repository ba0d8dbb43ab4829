"""Any accepted input becomes one thing: a program that can be turned into MLIR."""

from vhlo_tools.program.loading import LOADERS, ProgramSource, load_program
from vhlo_tools.program.program import Program

__all__ = ["LOADERS", "Program", "ProgramSource", "load_program"]
