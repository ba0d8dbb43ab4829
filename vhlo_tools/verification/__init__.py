"""Programs compared by what they compute."""

from vhlo_tools.verification.bisection import Divergence, find_divergence
from vhlo_tools.verification.comparison import Comparison, Tolerance, compare
from vhlo_tools.verification.drawing import Drawing, draw_inputs
from vhlo_tools.verification.verify import Round, VerificationReport, compare_outputs, verify_executables

__all__ = [
    "Comparison",
    "Divergence",
    "Drawing",
    "Round",
    "Tolerance",
    "VerificationReport",
    "compare",
    "compare_outputs",
    "draw_inputs",
    "find_divergence",
    "verify_executables",
]
