"""vhlo_tools: StableHLO programs as versioned portable artifacts.

``import vhlo_tools as vt`` is all that is needed; the names below are loaded when they are first used, and the MLIR
bindings only by what needs a compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vhlo_tools.aliasing import Alias, AliasConfig, Donor
    from vhlo_tools.api import (
        check,
        check_golden,
        constants,
        deserialize,
        diff,
        draw_inputs,
        externalize_constants,
        extract_constants,
        load_executable,
        load_parallel_executable,
        migrate,
        open_artifact,
        plan_migration,
        record_golden,
        require,
        resolve_target,
        restore_constants,
        retarget,
        run,
        run_parallel,
        serialize,
        store_status,
        strip,
        verify,
    )
    from vhlo_tools.artifact import Artifact, Difference
    from vhlo_tools.errors import (
        AliasError,
        BufferDeletedError,
        DowngradeError,
        EngineCrashError,
        EngineError,
        EngineStartError,
        EngineTimeoutError,
        GoldenError,
        InvalidInputError,
        InvalidProgramError,
        InvalidSpecificationError,
        InvalidVersionError,
        MalformedArtifactError,
        MigrationError,
        MissingExtraError,
        ProviderError,
        SettingsError,
        UnknownTargetError,
        UnsupportedFeatureError,
        VerificationError,
        VhloToolsError,
    )
    from vhlo_tools.findings import Diagnostic, Finding, SourceLocation
    from vhlo_tools.interpreter import (
        Buffer,
        CustomCall,
        DonationWarning,
        Executable,
        Execution,
        ParallelExecutable,
        Probe,
        ProbedValue,
        ProbeSite,
        RunReport,
        read_probes,
    )
    from vhlo_tools.migration import MigrationRecord, MigrationSummary, StoreFile
    from vhlo_tools.verification import Drawing, Tolerance, VerificationReport
    from vhlo_tools.version import Version
    from vhlo_tools.weights import Constant, Externalized, Extracted

__all__ = [
    "Alias",
    "AliasConfig",
    "AliasError",
    "Artifact",
    "Buffer",
    "BufferDeletedError",
    "Constant",
    "CustomCall",
    "Diagnostic",
    "Difference",
    "DonationWarning",
    "Donor",
    "DowngradeError",
    "Drawing",
    "EngineCrashError",
    "EngineError",
    "EngineStartError",
    "EngineTimeoutError",
    "Executable",
    "Execution",
    "Externalized",
    "Extracted",
    "Finding",
    "GoldenError",
    "InvalidInputError",
    "InvalidProgramError",
    "InvalidSpecificationError",
    "InvalidVersionError",
    "MalformedArtifactError",
    "MigrationError",
    "MigrationRecord",
    "MigrationSummary",
    "MissingExtraError",
    "ParallelExecutable",
    "Probe",
    "ProbeSite",
    "ProbedValue",
    "ProviderError",
    "RunReport",
    "SettingsError",
    "SourceLocation",
    "StoreFile",
    "Tolerance",
    "UnknownTargetError",
    "UnsupportedFeatureError",
    "VerificationError",
    "VerificationReport",
    "Version",
    "VhloToolsError",
    "check",
    "check_golden",
    "constants",
    "deserialize",
    "diff",
    "draw_inputs",
    "externalize_constants",
    "extract_constants",
    "load_executable",
    "load_parallel_executable",
    "migrate",
    "open_artifact",
    "plan_migration",
    "read_probes",
    "record_golden",
    "require",
    "resolve_target",
    "restore_constants",
    "retarget",
    "run",
    "run_parallel",
    "serialize",
    "store_status",
    "strip",
    "verify",
]

_HOME_OF = {
    **dict.fromkeys(["Alias", "AliasConfig", "Donor"], "aliasing"),
    **dict.fromkeys(
        ["check", "check_golden", "record_golden", "deserialize", "open_artifact", "require", "resolve_target"], "api"
    ),
    **dict.fromkeys(
        [
            "Buffer",
            "CustomCall",
            "DonationWarning",
            "Executable",
            "Execution",
            "ParallelExecutable",
            "Probe",
            "ProbeSite",
            "ProbedValue",
            "RunReport",
            "read_probes",
        ],
        "interpreter",
    ),
    **dict.fromkeys(["load_executable", "retarget", "run", "serialize", "strip", "verify", "draw_inputs"], "api"),
    **dict.fromkeys(["constants", "diff", "externalize_constants", "extract_constants", "restore_constants"], "api"),
    **dict.fromkeys(["load_parallel_executable", "run_parallel"], "api"),
    **dict.fromkeys(["migrate", "plan_migration", "run_parallel", "store_status"], "api"),
    **dict.fromkeys(["MigrationRecord", "MigrationSummary", "StoreFile"], "migration"),
    **dict.fromkeys(["Artifact", "Difference"], "artifact"),
    "Version": "version",
    **dict.fromkeys(["Drawing", "Tolerance", "VerificationReport"], "verification"),
    **dict.fromkeys(["Constant", "Externalized", "Extracted"], "weights"),
    **dict.fromkeys(["Diagnostic", "Finding", "SourceLocation"], "findings"),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("vhlo-tools")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOME_OF.get(name, 'errors')}")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
