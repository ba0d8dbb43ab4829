"""Evaluation: numpy in, numpy out, on StableHLO's reference interpreter or on XLA, in memory given away or not."""

from vhlo_tools.interpreter.buffers import Buffer
from vhlo_tools.interpreter.entry import main_of
from vhlo_tools.interpreter.executable import Donate, Executable, Execution
from vhlo_tools.interpreter.handlers import CustomCall, Handler
from vhlo_tools.interpreter.probing import ARGUMENT, Probe, ProbedValue, ProbeSite, read_probes
from vhlo_tools.interpreter.reference import evaluate
from vhlo_tools.interpreter.report import DonationWarning, OutputReport, Placement, RunReport, UnusableDonation
from vhlo_tools.interpreter.values import ArgumentType, parse_tensor_type

__all__ = [
    "ARGUMENT",
    "ArgumentType",
    "Buffer",
    "CustomCall",
    "Donate",
    "DonationWarning",
    "Executable",
    "Execution",
    "Handler",
    "OutputReport",
    "Placement",
    "Probe",
    "ProbeSite",
    "ProbedValue",
    "RunReport",
    "UnusableDonation",
    "evaluate",
    "main_of",
    "parse_tensor_type",
    "read_probes",
]
