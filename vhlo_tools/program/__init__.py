"""Any accepted input becomes one thing: a program that can be turned into MLIR."""

from vhlo_tools.program.aliases import read_module_aliases, write_module_aliases
from vhlo_tools.program.inherent import PORTABLE, is_inherent
from vhlo_tools.program.loading import LOADERS, ProgramSource, load_program, read_artifact
from vhlo_tools.program.program import Program, explain_failure, place_of
from vhlo_tools.program.screening import convert_hlo, screen_artifact
from vhlo_tools.program.spelling import spell

__all__ = [
    "LOADERS",
    "PORTABLE",
    "Program",
    "ProgramSource",
    "convert_hlo",
    "explain_failure",
    "is_inherent",
    "load_program",
    "place_of",
    "read_artifact",
    "read_module_aliases",
    "screen_artifact",
    "spell",
    "write_module_aliases",
]
