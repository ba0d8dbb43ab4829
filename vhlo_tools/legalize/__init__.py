"""Legalization of programs to plain StableHLO, before they are converted to VHLO or run.

Constructs that no artifact can contain are rewritten into equivalent plain StableHLO: constants in resources are
inlined; ops of `mhlo`, `arith`, `math`, `tensor`, `shape` and CHLO become ops of StableHLO; attributes without a form
in VHLO are encoded. Each rewrite is a finding of level note.
"""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.legalize.legalizing import make_plain, make_portable
    from vhlo_tools.legalize.scans import legalize_scans, legalizes_scans
else:
    __getattr__, __dir__ = lazy_exports(__name__)
