"""Programs walked in Python, where they hold what the reference interpreter cannot run: custom calls, and collectives.

Functions, loops and branches that hold such ops are walked; all else is handed to the interpreter in segments, each
as long as may be. Where values are probed, the segments they are made in give them as results of their own. Devices are
walked in lock step, so that their number does not depend on the machine.
"""

from vhlo_tools.interpreter.driver.driver import Driver, needs_driver
from vhlo_tools.interpreter.driver.evaluation import Evaluate, evaluate_here
from vhlo_tools.interpreter.driver.manual import has_manual
from vhlo_tools.interpreter.driver.programs import run_programs
from vhlo_tools.interpreter.driver.specials import has_special

__all__ = ["Driver", "Evaluate", "evaluate_here", "has_manual", "has_special", "needs_driver", "run_programs"]
