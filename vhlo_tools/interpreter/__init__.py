"""Evaluation: numpy in, numpy out, on StableHLO's reference interpreter or on XLA, in memory given away or not."""

from vhlo_tools.interpreter.buffers import Buffer
from vhlo_tools.interpreter.entry import main_of
from vhlo_tools.interpreter.executable import Donate, Executable, Execution
from vhlo_tools.interpreter.nesting import nested_values
from vhlo_tools.interpreter.reference import evaluate
from vhlo_tools.interpreter.report import DonationWarning, OutputReport, Placement, RunReport, UnusableDonation
from vhlo_tools.interpreter.values import ArgumentType, parse_tensor_type, parse_value_type

__all__ = [
    "ArgumentType",
    "Buffer",
    "Donate",
    "DonationWarning",
    "Executable",
    "Execution",
    "OutputReport",
    "Placement",
    "RunReport",
    "UnusableDonation",
    "evaluate",
    "main_of",
    "nested_values",
    "parse_tensor_type",
    "parse_value_type",
]
