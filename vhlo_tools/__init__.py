"""vhlo_tools: StableHLO programs as versioned portable artifacts.

``import vhlo_tools as vt`` is sufficient; the names below are imported on first use, and the MLIR bindings only by
functions that need a compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vhlo_tools.lazy import lazy_exports

if TYPE_CHECKING:
    from vhlo_tools.aliasing import Alias as Alias, AliasConfig as AliasConfig, Donor as Donor
    from vhlo_tools.api import (
        ExpandedProgram as ExpandedProgram,
        check as check,
        check_golden as check_golden,
        compile_for as compile_for,
        confirm as confirm,
        constants as constants,
        deserialize as deserialize,
        diff as diff,
        draw_graph as draw_graph,
        draw_inputs as draw_inputs,
        expand as expand,
        externalize_constants as externalize_constants,
        extract_constants as extract_constants,
        load_executable as load_executable,
        load_parallel_executable as load_parallel_executable,
        matrix as matrix,
        migrate as migrate,
        open_artifact as open_artifact,
        plan_migration as plan_migration,
        record_golden as record_golden,
        report as report,
        require as require,
        resolve_target as resolve_target,
        restore_constants as restore_constants,
        retarget as retarget,
        run as run,
        run_parallel as run_parallel,
        serialize as serialize,
        store_status as store_status,
        strip as strip,
        verify as verify,
        verify_stores as verify_stores,
    )
    from vhlo_tools.artifact import (
        Artifact as Artifact,
        CertificateSigner as CertificateSigner,
        Constant as Constant,
        Difference as Difference,
        Externalized as Externalized,
        Extracted as Extracted,
        KeySigner as KeySigner,
        Manifest as Manifest,
        ManifestDifference as ManifestDifference,
        Verifier as Verifier,
        sign as sign,
        verify_signature as verify_signature,
    )
    from vhlo_tools.errors import (
        AliasError as AliasError,
        BufferDeletedError as BufferDeletedError,
        DowngradeError as DowngradeError,
        EngineCrashError as EngineCrashError,
        EngineError as EngineError,
        EngineStartError as EngineStartError,
        EngineTimeoutError as EngineTimeoutError,
        GoldenError as GoldenError,
        InvalidInputError as InvalidInputError,
        InvalidProgramError as InvalidProgramError,
        InvalidSpecificationError as InvalidSpecificationError,
        InvalidUrlError as InvalidUrlError,
        InvalidVersionError as InvalidVersionError,
        LayoutError as LayoutError,
        MalformedArtifactError as MalformedArtifactError,
        ManifestError as ManifestError,
        MigrationError as MigrationError,
        MissingExtraError as MissingExtraError,
        ObjectChangedError as ObjectChangedError,
        ProviderError as ProviderError,
        ReleaseEnvironmentError as ReleaseEnvironmentError,
        ResultsError as ResultsError,
        RevisionError as RevisionError,
        SettingsError as SettingsError,
        SignatureError as SignatureError,
        StoreError as StoreError,
        UnknownReleaseWarning as UnknownReleaseWarning,
        UnknownTargetError as UnknownTargetError,
        UnsupportedFeatureError as UnsupportedFeatureError,
        VerificationError as VerificationError,
        VhloToolsError as VhloToolsError,
        WorkerError as WorkerError,
    )
    from vhlo_tools.execution import (
        Buffer as Buffer,
        CustomCall as CustomCall,
        DonationWarning as DonationWarning,
        Executable as Executable,
        Execution as Execution,
        ParallelExecutable as ParallelExecutable,
        Probe as Probe,
        ProbedValue as ProbedValue,
        ProbeSite as ProbeSite,
        RunReport as RunReport,
        read_probes as read_probes,
    )
    from vhlo_tools.findings import Diagnostic as Diagnostic, Finding as Finding, SourceLocation as SourceLocation
    from vhlo_tools.gate import check_store as check_store
    from vhlo_tools.releases import Compilation as Compilation, CompiledAlias as CompiledAlias
    from vhlo_tools.stores import (
        MigrationRecord as MigrationRecord,
        MigrationSummary as MigrationSummary,
        PairRecord as PairRecord,
        StoreFile as StoreFile,
    )
    from vhlo_tools.verification import (
        Drawing as Drawing,
        Tolerance as Tolerance,
        VerificationReport as VerificationReport,
    )
    from vhlo_tools.version import Version as Version
    from vhlo_tools.viewing import Page as Page

    __all__: list[str]
    __version__: str
else:
    _load, __dir__ = lazy_exports(__name__)
    __all__ = __dir__()

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            return version("vhlo-tools")
        return _load(name)
