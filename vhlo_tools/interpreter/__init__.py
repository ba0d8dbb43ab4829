"""Evaluation: numpy in, numpy out, on StableHLO's reference interpreter or on XLA, in memory given away or not."""

from vhlo_tools.bindings.functions import functions_of
from vhlo_tools.interpreter.assertions import is_near, ulp_difference
from vhlo_tools.interpreter.buffers import Buffer
from vhlo_tools.interpreter.choosing import choose_executable
from vhlo_tools.interpreter.driver import Driver, run_programs
from vhlo_tools.interpreter.entry import main_of
from vhlo_tools.interpreter.executable import Donate, Executable, Execution
from vhlo_tools.interpreter.handlers import CustomCall, Handler
from vhlo_tools.interpreter.nesting import nested_values
from vhlo_tools.interpreter.parallel import ParallelExecutable
from vhlo_tools.interpreter.probing import ARGUMENT, Probe, ProbedValue, ProbeSite, read_probes
from vhlo_tools.interpreter.reference import evaluate
from vhlo_tools.interpreter.report import DonationWarning, OutputReport, Placement, RunReport, UnusableDonation
from vhlo_tools.interpreter.values import ArgumentType, TupleType, as_saved, parse_tensor_type, parse_value_type

__all__ = [
    "ARGUMENT",
    "ArgumentType",
    "Buffer",
    "CustomCall",
    "Donate",
    "DonationWarning",
    "Driver",
    "Executable",
    "Execution",
    "Handler",
    "OutputReport",
    "ParallelExecutable",
    "Placement",
    "Probe",
    "ProbeSite",
    "ProbedValue",
    "RunReport",
    "TupleType",
    "UnusableDonation",
    "as_saved",
    "choose_executable",
    "evaluate",
    "functions_of",
    "is_near",
    "main_of",
    "nested_values",
    "parse_tensor_type",
    "parse_value_type",
    "read_probes",
    "run_programs",
    "ulp_difference",
]
