"""Stepping through programs in Python, if they contain ops that the reference interpreter cannot run.

These are custom calls and collectives. Functions, loops and branches with such ops are stepped through; the interpreter
evaluates all other ops, in segments of maximal length. Values that are probed become additional results of their
segments. Devices run in lockstep, so that their number does not depend on the machine.
"""

from vhlo_tools.execution.stepping.host_ops import has_host_ops
from vhlo_tools.execution.stepping.manual import has_manual
from vhlo_tools.execution.stepping.programs import run_programs
from vhlo_tools.execution.stepping.segment_evaluation import Evaluate, evaluate_here
from vhlo_tools.execution.stepping.stepper import Stepper, needs_stepping

__all__ = ["Evaluate", "Stepper", "evaluate_here", "has_host_ops", "has_manual", "needs_stepping", "run_programs"]
