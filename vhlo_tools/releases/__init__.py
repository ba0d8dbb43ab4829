"""Releases of jaxlib, TensorFlow and others in environments of their own, and what they read."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.releases.compiling import Compilation, CompiledAlias
    from vhlo_tools.releases.confirming import (
        Confirmation,
        Evaluation,
        MatrixProgram,
        Prediction,
        compile_by,
        confirm_by,
        evaluate,
        predict_reading,
        predict_writing,
        process_of,
        refusals,
        refuse_idle_releases,
        specified_version,
    )
    from vhlo_tools.releases.downloads import Download, download_of, oldest_python, released_on
    from vhlo_tools.releases.environments import (
        PACKAGES,
        Package,
        PackageRelease,
        Say,
        clean_environment,
        environment,
        environments_folder,
        find_interpreters,
        made_environment,
        run_uv,
        silent,
    )
    from vhlo_tools.releases.inside.arrays import pack_arrays, unpack_arrays
    from vhlo_tools.releases.matrix import (
        MATRIX_TABLE,
        OUTCOMES,
        Cell,
        Matrix,
        Outcome,
        ReleaseFacts,
        Written,
        build_matrix,
        facts_of,
        read_by,
        written_by,
    )
    from vhlo_tools.releases.older_text import read_in_time
    from vhlo_tools.releases.picture import PICTURE_SUFFIXES, draw_matrix, require_drawing
    from vhlo_tools.releases.process import Answer, ReleaseProcess, Step
else:
    __getattr__, __dir__ = lazy_exports(__name__)
