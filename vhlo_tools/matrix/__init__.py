"""Which real releases read and run what real releases wrote, beside what the specification says of them."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.matrix.building import Written, build_matrix, facts_of, read_by, written_by
    from vhlo_tools.matrix.cells import MATRIX_TABLE, OUTCOMES, Cell, Matrix, Outcome, ReleaseFacts
    from vhlo_tools.matrix.confirming import Confirmation, confirm_by, refusals, releases_for
    from vhlo_tools.matrix.picture import PICTURE_SUFFIXES, draw_matrix
    from vhlo_tools.matrix.predicting import Prediction, predict_reading, predict_writing, specified_version
    from vhlo_tools.matrix.programs import Evaluation, MatrixProgram, evaluate
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "building": ("Written", "build_matrix", "facts_of", "read_by", "written_by"),
            "cells": ("MATRIX_TABLE", "OUTCOMES", "Cell", "Matrix", "Outcome", "ReleaseFacts"),
            "confirming": ("Confirmation", "confirm_by", "refusals", "releases_for"),
            "picture": ("PICTURE_SUFFIXES", "draw_matrix"),
            "predicting": ("Prediction", "predict_reading", "predict_writing", "specified_version"),
            "programs": ("Evaluation", "MatrixProgram", "evaluate"),
        },
    )
