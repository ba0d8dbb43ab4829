"""Every error that the toolkit raises on purpose.

A message says what was found, what was expected and what to do. Errors of the operating system (a missing file, a full
disk, a file that exists and may not be replaced) stay what Python makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vhlo_tools.findings import Diagnostic, Finding

__all__ = [
    "AliasError",
    "BufferDeletedError",
    "DowngradeError",
    "EngineCrashError",
    "EngineError",
    "EngineStartError",
    "EngineTimeoutError",
    "GoldenError",
    "InvalidInputError",
    "InvalidProgramError",
    "InvalidSpecificationError",
    "InvalidVersionError",
    "MalformedArtifactError",
    "MigrationError",
    "MissingExtraError",
    "ProviderError",
    "SettingsError",
    "UnknownTargetError",
    "UnsupportedFeatureError",
    "VerificationError",
    "VhloToolsError",
]


class VhloToolsError(Exception):
    """The base of all errors of this package."""


class InvalidVersionError(VhloToolsError, ValueError):
    """A text that is not a StableHLO version."""


class UnknownTargetError(VhloToolsError, ValueError):
    """A target that names no version, or one that the installed library cannot write."""


class InvalidSpecificationError(VhloToolsError, ValueError):
    """A folder of dialect specifications that cannot be read, or a change to it that cannot be made."""


class SettingsError(VhloToolsError, ValueError):
    """Settings of the gate, or its baseline, that cannot be used; the message names the file and the key."""


class ProviderError(VhloToolsError):
    """The MLIR bindings are missing, or lack what is asked of them."""


class MissingExtraError(VhloToolsError, ImportError):
    """A framework that an integration needs is not installed; the message names the extra that installs it."""


class InvalidProgramError(VhloToolsError, ValueError):
    """An input that is not a program of a kind this toolkit reads.

    Attributes:
        diagnostics: What MLIR said, if it got that far.
    """

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


class MalformedArtifactError(VhloToolsError, ValueError):
    """Bytes that are not a portable artifact, or a damaged one.

    Attributes:
        offset: Where in the bytes the damage was noticed, if that is known.
        section: The bytecode section it was noticed in, if that is known.
        diagnostics: What MLIR said, if it got that far.
    """

    def __init__(
        self,
        message: str,
        *,
        offset: int | None = None,
        section: str | None = None,
        diagnostics: Sequence[Diagnostic] = (),
    ) -> None:
        where = [f"{section} section"] if section else []
        where += [f"offset {offset}"] if offset is not None else []
        super().__init__(f"{message} ({', '.join(where)})" if where else message)
        self.offset = offset
        self.section = section
        self.diagnostics = tuple(diagnostics)


class _FindingsError(VhloToolsError):
    def __init__(self, message: str, findings: Sequence[Finding]) -> None:
        # Findings hold versions, whose module needs this one.
        from vhlo_tools.findings import findings_lines

        self.summary = message
        self.findings = tuple(findings)
        super().__init__("\n".join([message, *findings_lines(self.findings)]))

    def __reduce__(self) -> tuple[type[_FindingsError], tuple[str, tuple[Finding, ...]]]:
        return type(self), (self.summary, self.findings)


class AliasError(_FindingsError, ValueError):
    """An alias or a donor that XLA would refuse, or that a spelling of aliases cannot say.

    Attributes:
        findings: What was found, if a whole program was looked at.
        summary: The message without the findings.
    """

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message, findings)


class BufferDeletedError(AliasError):
    """A buffer that was given away to an execution, or deleted, and is used again."""


class UnsupportedFeatureError(_FindingsError):
    """A program holds what has no form in a portable artifact at any version.

    Attributes:
        findings: What was found, at least the first.
        summary: The message without the findings.
    """


class DowngradeError(_FindingsError):
    """A program cannot be written at the target version, because it needs a newer one.

    Attributes:
        findings: What stands in the way, at least the first.
        summary: The message without the findings.
    """


class EngineError(VhloToolsError):
    """A program cannot be evaluated, or not with these inputs.

    Attributes:
        diagnostics: What the engine said, with locations.
    """

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


class EngineCrashError(EngineError):
    """The child process that ran a program died.

    Attributes:
        signal: The name of the signal it died of, such as ``SIGSEGV``, if it died of one.
        exit_code: What it exited with, if it did.
        op: What it was doing, if it had said.
        output: The last that it wrote on stdout and stderr.
    """

    def __init__(
        self,
        message: str,
        *,
        signal: str | None = None,
        exit_code: int | None = None,
        op: str | None = None,
        output: str = "",
    ) -> None:
        super().__init__(message)
        self.signal = signal
        self.exit_code = exit_code
        self.op = op
        self.output = output


class EngineStartError(EngineError):
    """No child process can be started in which a program could run."""


class EngineTimeoutError(EngineError):
    """A program ran longer than it may, and was ended.

    Attributes:
        seconds: How long it might run.
        op: What it was doing, if it had said.
    """

    def __init__(self, message: str, *, seconds: float | None = None, op: str | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.op = op


class InvalidInputError(EngineError, ValueError):
    """Inputs that are not what a program takes."""


class VerificationError(VhloToolsError):
    """Two programs do not compute the same, or cannot be compared."""


class GoldenError(VhloToolsError):
    """A record of a program and its outputs that cannot be used, or a folder that holds none."""


class MigrationError(VhloToolsError):
    """A migration of many files that cannot begin or go on as it is asked for; no file is at fault."""
