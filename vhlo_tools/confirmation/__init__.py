"""Cross-release compatibility: a release reads an artifact, or many releases write, read and run programs."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.confirmation.building import Written, build_matrix, facts_of, read_by, written_by
    from vhlo_tools.confirmation.cells import MATRIX_TABLE, OUTCOMES, Cell, Matrix, Outcome, ReleaseFacts
    from vhlo_tools.confirmation.confirming import Confirmation, confirm_by, refusals, refuse_idle_releases
    from vhlo_tools.confirmation.picture import PICTURE_SUFFIXES, draw_matrix, require_drawing
    from vhlo_tools.confirmation.predicting import Prediction, predict_reading, predict_writing, specified_version
    from vhlo_tools.confirmation.programs import Evaluation, MatrixProgram, evaluate
else:
    __getattr__, __dir__ = lazy_exports(__name__)
