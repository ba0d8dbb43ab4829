"""Public functions, which choose the engine and the layer that suit their input."""

from typing import TYPE_CHECKING

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.api.aliases import aliased_artifact, with_aliases, with_call_aliases
    from vhlo_tools.api.checking import Checked, check, prepare_check, require
    from vhlo_tools.api.compiling import compile_for
    from vhlo_tools.api.conversion import (
        Emit,
        ExpandedProgram,
        deserialize,
        expand,
        linted,
        open_artifact,
        program_of,
        resolve_reachable,
        resolve_target,
        retarget,
        serialize,
        strip,
    )
    from vhlo_tools.api.differences import diff
    from vhlo_tools.api.externalization import (
        LARGE,
        LARGEST_SUM,
        constants,
        externalize_constants,
        extract_constants,
        restore_constants,
    )
    from vhlo_tools.api.frontends import export_model
    from vhlo_tools.api.releases import confirm, downloads, install_releases, matrix
    from vhlo_tools.api.running import (
        ENGINE_CHOICES,
        EngineChoice,
        is_engine,
        load_executable,
        load_parallel_executable,
        run,
        run_parallel,
    )
    from vhlo_tools.api.store_verification import EquivalenceChecker, StoreVerification, verify_stores
    from vhlo_tools.api.stores import migrate, opened_migration, plan_migration, store_status
    from vhlo_tools.api.verification import check_engines, check_golden, draw_inputs, record_golden, verify
    from vhlo_tools.api.views import GRAPH_LANGUAGES, GraphLanguage, draw_graph, report
else:
    __getattr__, __dir__ = lazy_exports(__name__)
