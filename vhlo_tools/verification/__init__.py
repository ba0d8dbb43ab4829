"""Verification of programs by a comparison of their results."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.verification.bisection import (
        Divergence,
        EngineDivergence,
        find_divergence,
        find_engine_divergence,
    )
    from vhlo_tools.verification.comparison import Comparison, Tolerance, compare
    from vhlo_tools.verification.drawing import Drawing, draw_inputs
    from vhlo_tools.verification.engines import (
        Disagreement,
        EngineRun,
        EnginesComparison,
        engine_alone,
        verify_on_engines,
    )
    from vhlo_tools.verification.golden import (
        Record,
        Replayed,
        StoredArray,
        read_record,
        records_in,
        replay,
        replay_folder,
        write_record,
    )
    from vhlo_tools.verification.rounds import Round, VerificationReport, compare_outputs, drawings, verify_executables
else:
    __getattr__, __dir__ = lazy_exports(__name__)
