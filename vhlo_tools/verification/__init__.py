"""Programs compared by what they compute."""

from vhlo_tools.verification.comparison import Comparison, Tolerance, compare
from vhlo_tools.verification.drawing import Drawing, draw_inputs
from vhlo_tools.verification.verify import Round, VerificationReport, verify_executables

__all__ = [
    "Comparison",
    "Drawing",
    "Round",
    "Tolerance",
    "VerificationReport",
    "compare",
    "draw_inputs",
    "verify_executables",
]
