"""Programs made plain StableHLO, before they are legalized or run.

What no artifact can hold becomes plain StableHLO of the same meaning: constants in resources are inlined; ops of
`mhlo`, `arith`, `math`, `tensor`, `shape` and CHLO become StableHLO's; attributes without a form in VHLO are spelled
otherwise. Each rewrite is a finding of level note.
"""

from vhlo_tools.portable.legalizing import make_plain, make_portable
from vhlo_tools.portable.notes import REWRITTEN
from vhlo_tools.portable.scans import legalize_scans, legalizes_scans

__all__ = ["REWRITTEN", "legalize_scans", "legalizes_scans", "make_plain", "make_portable"]
